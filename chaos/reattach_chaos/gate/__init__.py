"""The gate: a small TCP relay that knows HTTP/1.1 and event streams well enough to cut at a meaning.

It stands between a client under test and any server, in a process of its own, changes no byte, writes down what passed, and
ends a connection exactly where a plan says: after an event's blank line, with a FIN, a RST or silence; or instead of the answer
to a create. Start with `relay.py`; `python -m reattach_chaos.gate` runs it.

Never here: a byte of our own in either direction, a verdict, anything of the client's. The parsers are the gate's own, so that a
fault of the client's decoder cannot hide itself.
"""
