"""The public door: every name of the surface is there, found lazily, and costs nothing that it does not need."""

import importlib
import subprocess
import sys
import types

import reattach
from reattach import errors, model

SURFACE = """
Client Run Transaction AsyncClient AsyncRun AsyncTransaction Policy Fact
Event View Message ToolCall Outcome Status Connection Gap RequiredAction Answer Operation Problem
ReattachError UsageError KeyConflict RunBusy Closed WaitTimeout RunNotCompleted RunFailed RunCancelled ActionRequired
AttachError ReconnectExhausted NotFound NotAuthorized SessionBusy ResumeRejected CursorExpired EpochChanged CursorRefused
GapUnfillable ProtocolError LocalProtocolError RemoteProtocolError EventConflict StoreError CommitFailed LeaseLost StoreBusy
JournalDamaged RespondError ActionsUnanswered ActionResolved ApprovalStale AmbiguousOutcome
profiles stores observe testing
"""


def child(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)


def test_every_name_of_the_surface_is_exported_and_nothing_else():
    assert sorted(reattach.__all__) == sorted(SURFACE.split())
    for name in reattach.__all__:
        assert getattr(reattach, name) is not None


def test_the_lazy_names_are_those_of_all_and_live_where_the_door_says():
    assert set(reattach._HOME) | set(reattach._SUBMODULES) == set(reattach.__all__)
    for name, home in reattach._HOME.items():
        value = getattr(reattach, name)
        assert value is getattr(importlib.import_module(home), name)
        assert value.__module__ == home
    assert set(reattach.__all__) <= set(dir(reattach))


def test_every_error_and_every_noun_is_exported():
    """A new one that was forgotten in the door is found here."""
    for module, base in ((errors, errors.ReattachError), (model, object)):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                assert name in reattach.__all__, name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(reattach, "Nothing")
    assert not isinstance(getattr(reattach, "testing", None), types.FunctionType)


def test_importing_it_costs_no_httpx_no_sqlite_and_no_tenacity():
    done = child(
        "import sys, reattach; reattach.Event; reattach.Policy; reattach.UsageError; "
        "print([name for name in ('httpx', 'sqlite3', 'tenacity', 'anyio', 'asyncio') if name in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_star_import_works():
    done = child("from reattach import *; print(Client.__name__, profiles.__name__)")
    assert (done.stdout, done.stderr) == ("Client reattach.profiles\n", "")


def test_the_tree_of_errors_is_the_one_of_the_docstring():
    """What a user may catch: bases, and the built-in kin of three of them."""
    assert issubclass(errors.UsageError, ValueError)
    assert issubclass(errors.WaitTimeout, TimeoutError)
    children = {
        errors.UsageError: "KeyConflict RunBusy",
        errors.RunNotCompleted: "RunFailed RunCancelled ActionRequired",
        errors.AttachError: "ReconnectExhausted NotFound NotAuthorized SessionBusy",
        errors.ResumeRejected: "CursorExpired EpochChanged CursorRefused GapUnfillable",
        errors.ProtocolError: "LocalProtocolError RemoteProtocolError",
        errors.RemoteProtocolError: "EventConflict",
        errors.StoreError: "CommitFailed LeaseLost StoreBusy JournalDamaged",
        errors.RespondError: "ActionsUnanswered ActionResolved ApprovalStale",
    }
    for base, names in children.items():
        assert {child.__name__ for child in base.__subclasses__()} == set(names.split())
