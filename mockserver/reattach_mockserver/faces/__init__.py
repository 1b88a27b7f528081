"""What HTTP clients see: one file a resource or a form. Start with `sse.py`."""
