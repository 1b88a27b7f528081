"""Toxiproxy, two backends behind one API: the real server where there is one, and one of our own in asyncio.

`control` is the door of the chaos kit: servers, proxies, cuts. `embedded` is our server, `toxics` what it does to connections,
`command` the words of `reattach proxy`. `control` imports nothing of `embedded` but where it starts one: both backends are
driven alike, through toxiproxy-python and HTTP. One suite holds both to the same facts: tests/contracts/test_toxiproxy.py.
"""
