"""A server that shows a run to the token that created it, and to no other of its principal."""

from dataclasses import dataclass, replace

from reattach_mockserver.bearer import Caller, Tokens, digest
from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


@dataclass(frozen=True, slots=True)
class _ByToken(Tokens):
    """Each token is a principal."""

    right: Tokens

    def caller(self, token: str) -> Caller | None:
        """Return the caller, as nobody else."""
        found = self.right.caller(token)
        return None if found is None else replace(found, principal=digest(token))


class BindsToToken(WrongServer):
    """See the module."""

    id = "binds-to-token"
    words = "shows a run to the token that created it, and to no other of its principal"
    breaks = ("RS-66",)
    unseen = "no client under test renews its token in a chaos run"

    def given(self, settings: Settings) -> Settings:
        """Take each token for somebody else."""
        return settings if settings.tokens is None else replace(settings, tokens=_ByToken({}, settings.tokens))
