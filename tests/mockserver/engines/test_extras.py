"""The engines of others are extras: without one nothing else suffers, and who wants it is told what to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("engine", "package", "extra"), [("dbos", "dbos", "dbos"), ("temporal", "temporalio", "temporal")]
)
def test_a_missing_extra_is_named_with_its_install_line(monkeypatch, engine, package, extra):
    name = f"reattach_mockserver.engines.{engine}"
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'reattach\[{extra}\]'"):
        importlib.import_module(name)


def test_the_server_imports_neither():
    """Only who names an engine pays for it."""
    importlib.import_module("reattach_mockserver.app")
    importlib.import_module("reattach_mockserver.agent.loop")
    for name in ("app", "agent.loop", "engine.engine"):
        module = sys.modules[f"reattach_mockserver.{name}"]
        assert not {"dbos", "temporalio"} & set(vars(module))
