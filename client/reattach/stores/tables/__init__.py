"""The journal's tables in SQL that SQLite and PostgreSQL both speak: `runs`, `batches`, `leases`.

Here is what a statement says and what its rows mean; never how a transaction begins, ends or locks, nor which driver is used: that
is each store's own. Each function works on the connection, and in the transaction, that it is given. The columns are those of
surface.md section 5.
"""
