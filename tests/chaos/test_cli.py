"""The chaos package's command: flags, and what is said where an extra is missing."""

import argparse
import importlib.util
import subprocess
import sys

import pytest

from reattach_chaos import cli


def parsed(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cli.demo(parser.add_subparsers())
    return parser.parse_args(["demo", *args])


def test_the_defaults_are_the_main_job():
    """132 events, seed 7, our own client."""
    args = parsed()
    assert (args.events, args.seed, args.client, args.recording) == (132, 7, "reattach", None)
    assert args.run is cli.run


def test_a_missing_extra_is_named_with_the_install_line(monkeypatch, capsys):
    """64 and one line, not a traceback."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "starlette" else object())
    assert cli.run(parsed()) == 64
    assert capsys.readouterr().err == "reattach demo: starlette not installed. Run: pip install 'reattach[chaos]'\n"


@pytest.mark.parametrize("args", [["demo", "--client", "other"], ["demo", "--seed", "x"], []])
def test_wrong_arguments_exit_with_64(args, capsys):
    """Argparse's own code is 2; ours is that of the surface page."""
    with pytest.raises(SystemExit) as exit_:
        cli.main(args)
    assert exit_.value.code == 64
    assert "usage:" in capsys.readouterr().err


def test_importing_the_command_is_light():
    """The client's command line imports it at every start: neither server nor client comes with it."""
    code = "import sys, reattach_chaos.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"starlette", "uvicorn", "httpx", "reattach", "reattach_mockserver", "asyncio"} & set(
        done.stdout.split()
    )
