"""The arrows of the architecture, held by the import graph; and the sizes of files."""

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"reattach": ROOT / "client", "reattach_mockserver": ROOT / "mockserver", "reattach_chaos": ROOT / "chaos"}


def modules():
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            found[name] = path
    return found


MODULES = modules()


@cache
def imports(name):
    """Return every module that a module imports, also where only a type checker or a function reads it."""
    tree = ast.parse(MODULES[name].read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            module = node.module or ""
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                found.add(whole if whole in MODULES else module)
    return frozenset(found)


def room(name):
    """Return the room of the client that a module lives in: the first folder, or the file."""
    return name.split(".")[1] if "." in name else ""


ROOMS = {
    # who            may import (of reattach)
    "model": set(),
    "policy": set(),
    "errors": {"model"},
    "observe": set(),
    "core": {"core", "model", "policy"},
    "wire": {"wire"},
    "transports": {"transports", "wire"},
    "profiles": {"profiles", "core", "model", "wire"},
    "stores": {"stores", "core", "model"},
    "runtime": {"runtime", "core", "errors", "model", "observe", "policy", "profiles", "stores", "transports"},
    "transaction": {"runtime", "model"},
    "async_transaction": {"runtime", "model"},
    "run": {"transaction", "runtime", "core", "errors", "model", "stores", "client"},
    "async_run": {"async_transaction", "runtime", "core", "errors", "model", "stores", "async_client"},
    "client": {"run", "runtime", "model", "observe", "policy", "profiles", "stores", "transports", "errors"},
    "async_client": {
        "async_run",
        "runtime",
        "model",
        "observe",
        "policy",
        "profiles",
        "stores",
        "transports",
        "errors",
    },
}


def test_the_arrows_inside_the_client():
    """But for `testing` and `cli`, which use every room by purpose."""
    wrong = []
    for name in MODULES:
        if not name.startswith("reattach.") or room(name) in ("testing", "cli"):
            continue
        for target in imports(name):
            if target == "reattach" or target.startswith("reattach."):
                # `from reattach import errors` is all that is taken from the door; what else is imported is named as a module
                told = room(target) or "errors"
                if told not in ROOMS[room(name)]:
                    wrong.append(f"{name} imports {target}")
    assert not wrong


def test_the_pure_rooms_import_nothing_but_the_standard_library():
    """No clock, no chance, no waiting, no log either."""
    banned = {"time", "random", "logging", "asyncio", "threading", "socket", "os", "sqlite3", "concurrent"}
    wrong = []
    for name in MODULES:
        if name.startswith(("reattach.core", "reattach.wire", "reattach.model")):
            tops = {target.partition(".")[0] for target in imports(name)} - {"reattach"}
            wrong += [f"{name} imports {top}" for top in tops if top in banned or top not in sys.stdlib_module_names]
    assert not wrong


def test_the_checkers_and_the_plans_are_pure():
    """A verdict needs a history and nothing else: no clock, no file, no thread, nothing of the client or the server."""
    banned = {"time", "logging", "asyncio", "threading", "socket", "os", "pathlib", "sqlite3", "subprocess", "http"}
    rooms = ("reattach_chaos.checkers", "reattach_chaos.history", "reattach_chaos.schedules")
    wrong = []
    for name in MODULES:
        if name.startswith((rooms[0], rooms[2])):
            wrong += [f"{name} imports {target}" for target in imports(name) if target.partition(".")[0] in banned]
        if name.startswith(rooms):
            ours = {target for target in imports(name) if target.startswith("reattach")}
            wrong += [f"{name} imports {target}" for target in ours if not target.startswith(rooms)]
    assert not wrong


def test_the_client_never_imports_the_other_packages():
    for name in MODULES:
        if name.split(".")[0] == "reattach":
            assert not {t for t in imports(name) if t.startswith(("reattach_mockserver", "reattach_chaos"))}, name


def test_the_server_uses_nouns_and_profiles_never_decisions():
    allowed = ("reattach.model", "reattach.profiles", "reattach.cli", "reattach_mockserver")
    for name in MODULES:
        if name.split(".")[0] == "reattach_mockserver":
            ours = {target for target in imports(name) if target.split(".")[0].startswith("reattach")}
            if name.startswith("reattach_mockserver.record"):
                # A user of the client, and no judge of it: it may follow a run, and tell why that failed.
                ours -= {"reattach.errors", "reattach"}
            wrong = {target for target in ours if not target.startswith(allowed)}
            assert not wrong, f"{name} imports {wrong}"


def test_the_chaos_kit_uses_nouns_the_public_door_and_testing():
    allowed = ("reattach.model", "reattach.testing", "reattach.cli", "reattach_mockserver", "reattach_chaos")
    for name in MODULES:
        if name.split(".")[0] == "reattach_chaos":
            ours = {target for target in imports(name) if target.split(".")[0].startswith("reattach")}
            wrong = {target for target in ours if target != "reattach" and not target.startswith(allowed)}
            assert not wrong, f"{name} imports {wrong}"


def test_sqlite_httpx_and_tenacity_are_each_named_in_one_room():
    homes = {
        "sqlite3": ("reattach.stores.sqlite",),
        "httpx": ("reattach.transports",),
        "httpcore": ("reattach.transports",),
        "tenacity": ("reattach.runtime.calls",),
        "psycopg": ("reattach.stores.postgres",),
    }
    for name in MODULES:
        if name.split(".")[0] != "reattach":
            continue
        for library in imports(name) & set(homes):
            assert name.startswith(homes[library]), f"{name} imports {library}"


def test_no_file_has_more_than_five_hundred_lines():
    """But for scenarios, which are data."""
    lines = {
        name: len(path.read_text().splitlines()) for name, path in MODULES.items() if ".scenarios.ready" not in name
    }
    assert not {name: count for name, count in lines.items() if count > 500}


def test_no_class_of_a_library_is_in_a_public_signature():
    faces = ("client", "run", "transaction")
    for name in [f"reattach.{each}{face}" for face in faces for each in ("", "async_")]:
        text = MODULES[name].read_text()
        assert "httpx." not in text.replace("httpx.AsyncClient, used", ""), name
        assert not {
            target for target in imports(name) if target.split(".")[0] in ("httpx", "sqlite3", "tenacity", "trio")
        } - {"trio"}


def test_there_are_no_drawers_for_everything():
    for name in MODULES:
        assert name.rpartition(".")[2] not in ("utils", "util", "helpers", "common", "misc"), name
