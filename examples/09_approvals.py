"""A run that asks: it pauses, you answer all of it, and it goes on in another run of the same job.

reattach serve --log server.db &
python examples/09_approvals.py
"""

import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"


def decide(action: reattach.RequiredAction) -> reattach.Answer:
    """Stand in for the person, or the program, whose word it is."""
    who = f" (asked by {action.thread})" if action.thread else ""
    print(f"\n{action.kind} of {action.tool}{who}: {action.arguments}")
    return action.answer({"value": 42}) if action.kind == "client_tool" else action.approve()


with reattach.Client(URL, JOURNAL) as client:
    run = client.start({"scenario": "approvals"}, key="approvals-1")  # run again: the newest run of this job
    while True:
        for event in run:
            print(event.text, end="", flush=True)
        outcome = run.wait()
        if not outcome.required_actions:
            break
        # On disk before it is sent; killed here and run again, the same answers are the same run.
        run = run.respond(*[decide(action) for action in outcome.required_actions])
    print(f"\n{outcome.status}: {outcome.result}")
    for operation in outcome.operations:
        print(f"  {operation.tool} {operation.id}: {operation.status}")
