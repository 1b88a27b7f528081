"""`reattach record`: a real run, followed by the public client, as a file that the server plays. Start with `recorder.py`."""
