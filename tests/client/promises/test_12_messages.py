"""Promise 12: failures have names, and their texts are the surface's (section 4), word for word; the facts are attributes."""

import inspect

import pytest

import reattach
from client_stage import collected, in_memory
from reattach import errors
from reattach.core.messages import Failure, Mark, Refusal, Why
from reattach.model import Gap, Outcome, Status
from reattach.runtime.failures import Place, error_of, of_fault
from reattach.stores import MemoryStore
from reattach.stores.base import StoreDamaged, StoreFailed
from reattach.testing import FailingStore

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:8700"
MARK = Mark(position=413, epoch="e1", sequence=412, id="evt_412", cursor="e1.412")
PLACE = Place(URL, "runs.db", "R", "K", MARK, reattach.Policy(), "e1.413")

TEXTS = [
    (
        Failure("reconnect_exhausted", "connection refused by 127.0.0.1:8700", attempts=17),
        "ReconnectExhausted: run 'R' could not be reached for 600 s (17 attempts, last: connection refused by 127.0.0.1:8700). "
        "The run itself may still be going on. Cursor e1.412. Iterate again whenever you like, or raise Policy.give_up_after.",
    ),
    (
        Failure("not_found", refusal=Refusal(Why.NOT_FOUND, status=404, code="run_not_found"), attempts=1),
        f"NotFound: {URL} knows no run 'R' (404 run_not_found). Nothing was changed; the journal holds it up to e1.412. "
        "Check the server's address and whose token it is.",
    ),
    (
        Failure("not_authorized", refusal=Refusal(Why.UNAUTHENTICATED, status=401), attempts=2),
        f"NotAuthorized: {URL} refused the token for run 'R' twice (401; the token was asked for again in between). "
        "The run is untouched, cursor e1.412. Renew the token, then iterate again.",
    ),
    (
        Failure(
            "cursor_expired", reason="expired", refusal=Refusal(Why.EXPIRED, status=410, first_sequence=500), attempts=1
        ),
        "CursorExpired: run 'R' can no longer be replayed from e1.412: the server keeps events from 500 on; 413 to 499 "
        '(87 events) cannot be had. The journal is unchanged. Attach with on_gap="snapshot" to go on from the server\'s '
        'state, or "continue".',
    ),
    (
        Failure("epoch_changed", reason="epoch", refusal=Refusal(Why.EPOCH, epoch="e2"), attempts=1),
        "EpochChanged: the log of run 'R' was replaced: the journal holds epoch e1 up to 412, the server now has e2; their "
        'numbers must not be mixed. Attach with on_gap="snapshot".',
    ),
    (
        Failure("commit_failed", "no space left on device"),
        "CommitFailed: the journal runs.db could not be written at e1.413 of run 'R' (no space left on device). "
        "Nothing that is not on disk was shown. Free space, then iterate again.",
    ),
    (
        Failure(
            "remote_protocol_error",
            '200 with text/html instead of text/event-stream ("<html><title>Sign in")',
            attempts=3,
        ),
        f"RemoteProtocolError: run 'R': {URL} answered 200 with text/html instead of text/event-stream "
        '("<html><title>Sign in"), as a login page or a proxy does. 3 attempts, cursor e1.412. '
        "Open the address in a browser, then iterate again.",
    ),
]


@pytest.mark.parametrize(("failure", "text"), TEXTS, ids=[text.partition(":")[0] for _, text in TEXTS])
def test_the_text_is_the_surfaces(failure, text):
    """What happened, to which run, at which cursor, what was tried, what to do now; and all of it as attributes."""
    error = error_of(failure, PLACE)
    assert f"{type(error).__name__}: {error}" == text
    assert (error.run_id, error.key, error.cursor) == ("R", "K", "e1.412")
    assert str(error).endswith(error.hint)
    assert error.tried in ("", f"{failure.attempts} attempts", "1 attempt")


async def test_a_disk_that_fails_names_the_first_event_that_is_not_on_it(face):
    """In both faces: where it was, why, and what to do about it; a disk that is not full is not told to be emptied."""
    for detail, hint in (("no space left on device", "Free space"), ("input/output error", "Mend the disk")):
        _server, args = in_memory(beats=2)
        store = FailingStore(MemoryStore())
        store.fail("commit", StoreFailed(detail))
        async with face.client(journal=store, **args) as client:
            run = await client.start("work", key="k")
            with pytest.raises(errors.CommitFailed) as caught:
                await collected(run)
            assert str(caught.value) == (
                f"the journal {store.name} could not be written at e1.1 of run 'run_1' ({detail}). "
                f"Nothing that is not on disk was shown. {hint}, then iterate again."
            )
            assert [event.sequence for event in await collected(run)] == [1, 2, 3, 4]


async def test_a_key_conflict_and_a_busy_run_are_the_surfaces(face):
    """Both are refused before anything is sent."""
    server, args = in_memory(story=[reattach.testing.Beat()], jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="K")
        sent = len(server.wire.requests)
        with pytest.raises(errors.KeyConflict) as caught:
            await client.start("other work", key="K")
        assert len(server.wire.requests) == sent
        assert str(caught.value).startswith("key 'K' was used at 2")
        assert str(caught.value).endswith(
            " UTC for another input (run 'run_1'). Nothing was sent. Use the same input to go on with that run, or another "
            "key for new work."
        )
        await collected(run, 2)
        with pytest.raises(errors.RunBusy) as caught:
            await collected(client.attach("run_1"))
        assert str(caught.value).startswith("run 'run_1' is already followed as consumer 'main' by pid ")
        assert str(caught.value).endswith(
            'Use views() or after="beginning" to look on, consumer="…" for a second handler, or stop the other.'
        )


def test_a_damaged_journal_is_the_surfaces():
    """And says what the contract asks beside it: that keys used before are unknown now."""
    lost = tuple(("s", "native", f"run_{number}") for number in range(3))
    damage = StoreDamaged("unreadable from byte 8192 (all zero)", moved_to="runs.db.damaged-T", lost=lost)
    assert str(of_fault(damage, "runs.db")) == (
        "the journal runs.db is unreadable from byte 8192 (all zero). It was moved to runs.db.damaged-T and a new one "
        'begun; 3 runs are listed as "repair". Attach them by id: the server replays. Keys used before are unknown now.'
    )


# the tree ----------------------------------------------------------------------------------------------------------------

CODES = [
    "reconnect_exhausted",
    "not_found",
    "not_authorized",
    "cursor_expired",
    "epoch_changed",
    "cursor_refused",
    "gap_unfillable",
    "event_conflict",
    "remote_protocol_error",
    "local_protocol_error",
    "commit_failed",
    "lease_lost",
    "attach_error",
]


@pytest.mark.parametrize("code", CODES)
def test_each_failure_of_a_subscription_says_all_five_things(code):
    """Whatever is missing of the facts, no text has a hole in it."""
    for refusal in (None, Refusal(Why.OTHER, "why", 418, code="teapot")):
        for mark in (MARK, Mark()):
            error = error_of(
                Failure(code, "the detail", refusal=refusal, attempts=1), PLACE._replace(mark=mark, at=None)
            )
            text = str(error)
            assert error.code == code
            assert "'R'" in text
            assert (mark.cursor or "the beginning") in text or code in ("not_found", "epoch_changed")
            assert error.hint
            assert text.endswith(error.hint)
            assert "None" not in text
            assert ".." not in text
            assert "  " not in text
            assert text[-1] in '."'


def every_error():
    found, rest = [], [errors.ReattachError]
    while rest:
        kind = rest.pop()
        found.append(kind)
        rest += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_each_class_carries_the_facts_and_says_what_it_is(kind):
    """The same attributes on all, one class a word of `code`, a docstring that is a sentence, and it survives a pickle's copy."""
    facts = {"run_id": "R", "key": "K", "cursor": "e1.4", "tried": "3 attempts", "hint": "Do it.", "problem": "p"}
    more = {}
    if issubclass(kind, errors.ResumeRejected):
        more["gap"] = Gap(run_id="R", reason="hole")
    if issubclass(kind, errors.RunNotCompleted):
        more["outcome"] = Outcome(run_id="R", status=Status.FAILED)
    error = kind("it happened.", **facts, **more)
    assert str(error) == "it happened. Do it."
    assert {name: getattr(error, name) for name in (*facts, *more)} == {**facts, **more}
    assert error.code == "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")
    assert kind.__dict__["__doc__"].strip().endswith((".", "`"))


# what every public name says about itself ----------------------------------------------------------------------------------

PUBLIC = [reattach, reattach.observe, reattach.profiles, reattach.stores, reattach.testing]


def members(value):
    """Return the public functions and properties that a class defines itself."""
    for name, member in vars(value).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_every_public_name_and_member_has_a_docstring_that_begins_with_a_sentence(module):
    """Walks `__all__`: classes, functions, their public methods and properties."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    silent = []
    for name in names:
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)):
            continue
        for label, member in [(name, value), *(members(value) if inspect.isclass(value) else ())]:
            text = inspect.getdoc(member)
            first = (text or "").split("\n\n")[0].strip()
            if not first or (text or "").startswith(f"{label}("):
                silent.append(f"{name}.{label}")
            elif first[-1] not in ".:`?" and not first.endswith("…"):
                silent.append(f"{name}.{label}: {first[-30:]!r}")
    assert not silent


TOLD = [reattach.Client, reattach.AsyncClient, reattach.Run, reattach.AsyncRun, reattach.Transaction, reattach.Policy]


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind.__name__)
def test_every_parameter_of_the_surface_is_told(kind):
    """In its own docstring, in the class's, or by naming the twin that tells it."""
    for name, member in [("__init__", kind.__init__), *members(kind)]:
        if not inspect.isfunction(member) or (name == "__init__" and "self, *args" in str(inspect.signature(member))):
            continue
        text = (inspect.getdoc(kind) or "") if name == "__init__" else inspect.getdoc(member) or ""
        if "; see `" in text or "See `" in text or "see `" in text:
            continue
        for parameter in list(inspect.signature(member).parameters)[1:]:
            if not parameter.startswith("_") and kind in (reattach.Client, reattach.AsyncClient, reattach.Run):
                told = (
                    f"{parameter}:" in text or f"`{parameter}`" in text or parameter in ("event", "answers", "client")
                )
                assert told or (name == "__init__" and kind is reattach.Run), f"{kind.__name__}.{name}: {parameter}"
