"""Drives runs: creates, plays, cancels and restarts them, and wakes their readers. Start with `publisher.py`."""
