"""Toxiproxy in this process: an asyncio proxy with its HTTP API and its toxics, measured against 2.12.0.

From the outside in: `server` (a port for the API), `http`, `api`, `bodies`; `proxies`, `proxy`; `connection` (two sockets, `end`)
and `link` (one direction), which leads chunks through a `stage` for each toxic. Never here: metrics; TLS; anything of the client's.

Where the original hangs or dies, this one goes on: a toxic can be changed while a client does not read; no order of removals ends
the process; a slow upstream holds up no other connection; a slicer without a size is declined.
"""
