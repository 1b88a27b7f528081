"""Cases: plays schedules on real sockets: a server, the gate, a client under test, and what is written down of it.

Start with `player.py`; `README.md` says what each file is. Never here: where a cut comes (`gate/`), what a history means
(`checkers/`), how it looks (`report/`).
"""
