"""The main job: `reattach demo`, a run that survives every cut, with a verdict.

Server, gate and clients run in processes of their own. `stage.py` starts and ends them, `judge.py` compares what the clients showed
with the server's log and is a pure function, `screen.py` tells a person. Start with `judge.py`.

Never here: a rule that the client uses itself (admission, decoding), a wait without an end, a verdict of the client's own.
"""
