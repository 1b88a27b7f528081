"""The reference server."""
