"""Bytes to frames, pure: the event-stream decoder."""
