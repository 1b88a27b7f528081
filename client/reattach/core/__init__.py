"""Sans-IO: decides, never waits. No clock, no randomness, no logging, no third-party import.

Start with `subscription.py`: the machine, its transition table and its one step function.
"""
