"""What the pytest plugin hands out: a test of one's own client, once for each cut. Its door is `pytest_plugin.py`."""
