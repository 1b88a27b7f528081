"""A server that shows a run to whoever has any token."""

from dataclasses import dataclass, replace

from reattach_mockserver.bearer import Caller, Tokens
from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


@dataclass(frozen=True, slots=True)
class _Everybody(Tokens):
    """All callers are one principal."""

    right: Tokens

    def caller(self, token: str) -> Caller | None:
        """Return the caller, as the same as all others."""
        found = self.right.caller(token)
        return None if found is None else replace(found, principal="everybody")


class HasOnePrincipal(WrongServer):
    """See the module."""

    id = "has-one-principal"
    words = "shows a run to whoever has any token"
    breaks = ("RS-65",)
    unseen = "no client under test asks for a run that is not its own"

    def given(self, settings: Settings) -> Settings:
        """Take everybody for the same."""
        return settings if settings.tokens is None else replace(settings, tokens=_Everybody({}, settings.tokens))
