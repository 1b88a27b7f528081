"""Performs effects; the only room that waits.

An `Engine` is one client at work: one server, one journal, in one event loop. It runs one `Subscription` per followed run, which
tells the core what happened and does what the core asks for. Start with `subscription.py`.
"""
