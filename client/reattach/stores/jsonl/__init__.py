"""The journal in one JSONL file; see `store`."""

from reattach.stores.jsonl.store import JsonlStore

__all__ = ["JsonlStore"]
