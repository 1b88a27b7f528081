"""The stage of these tests."""

from toxiproxy_stage import server

__all__ = ["server"]
