"""I8, one run: however often a create is asked for, the server has one run for it; every retry carries the same key."""

from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Created, History, Request


def check(history: History) -> Ruling:
    """Count the runs, and compare the keys of creates with the same body."""
    runs = list({record.run: record for record in history.of(Created)}.values())
    allowed = history.case.runs
    found: list[Invalid] = []
    if len(runs) > allowed:
        many = "once" if allowed == 1 else f"{allowed} times"
        sentence = f"the work was asked for {many} and the server made {len(runs)} runs"
        found.append(Invalid(anomaly="second run", sentence=sentence, witness=tuple(runs[-2:])))
    first: dict[str | None, Request] = {}
    creates = [record for record in history.of(Request) if record.route == "create"]
    for create in creates:
        earlier = first.setdefault(create.sha256, create)
        if create.sha256 is not None and earlier.key != create.key:
            sentence = f"the create was repeated under another key ({earlier.key}, then {create.key})"
            found.append(Invalid(anomaly="second run", sentence=sentence, witness=(earlier, create)))
    return ruled(found, len(runs) + len(creates))
