"""The schema's version, as `reattach_meta` says it."""

from __future__ import annotations

from reattach.stores.base import StoreDamaged, StoreNewer


def checked(found: str | None, known: int) -> int:
    """Return the version that was found, None being no row.

    Raises:
        StoreNewer: It is above the one that we know.
        StoreDamaged: It is no number.
    """
    if found is None or not str(found).isdecimal():
        raise StoreDamaged("without a schema version in reattach_meta")
    version = int(found)
    if version > known:
        raise StoreNewer(
            f"of schema {version}, newer than this version of reattach knows ({known}); it was not changed"
        )
    return version
