"""An agent loop as work of a run: its session is its log. Start with `loop.py`; the seams are `model.py` and `tool.py`."""
