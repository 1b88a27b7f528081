"""The admin interface: a hand on a running server, for tests, on a port of its own. Start with `calls.py`; see README.md here."""
