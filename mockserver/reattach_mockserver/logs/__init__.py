"""Event logs: the seam and its law (`base`), memory, SQLite."""
