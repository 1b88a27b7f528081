"""Imports all of a package at once, for a nursery: what it forks then need not import anything at its first use."""

import contextlib
import importlib
import pkgutil
from types import ModuleType


def import_all(package: ModuleType) -> None:
    """Import what the package would import at its first use, the libraries below it too."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # What an extra is missing for is not used by a client either.
        with contextlib.suppress(ImportError):
            importlib.import_module(found.name)
