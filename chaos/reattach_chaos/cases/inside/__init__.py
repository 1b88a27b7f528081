"""Faults at instants that only a client's own process sees: it is a process of ours, and does them to itself."""
