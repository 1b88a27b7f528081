"""The journal in a PostgreSQL database, for a fleet. Start with `store`; `line` is how a lost connection is survived.

Needs psycopg 3, the extra `postgres`; nothing else of the SDK imports it. The statements are `stores.tables`'.
"""

from reattach.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
