"""Profiles: a vendor's dialect as pure functions and capability flags, one file each.

Start with `base.py` (the seam) and `native.py` (the reference server's own protocol); `polled.py` is the base for a server that
keeps no log.
"""

from __future__ import annotations

from reattach.profiles.base import Profile
from reattach.profiles.native import Native
from reattach.profiles.polled import Polled

__all__ = ["Native", "Polled", "Profile", "named"]


def named(profile: str | Profile) -> Profile:
    """Return the profile of this name.

    Raises:
        ValueError: There is none; the text lists those that there are.
    """
    if not isinstance(profile, str):
        return profile
    if profile == "native":
        return Native()
    raise ValueError(f"profile={profile!r} is not known; there is 'native'")
