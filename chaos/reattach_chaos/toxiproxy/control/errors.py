"""What can go wrong with a Toxiproxy, by whose fault it is.

ToxiproxyError
├── Unsafe               we refuse to send it: it would hang or end a real server, or could not do what it says
├── Declined             the server said no, and nothing was changed
└── InfrastructureError  no answer, a broken one, or one that was not carried out: never a verdict about who is tested
"""


class ToxiproxyError(Exception):
    """The root."""


class Unsafe(ToxiproxyError, ValueError):
    """The request was not sent; the text says why, and what to do instead."""


class Declined(ToxiproxyError):
    """The server answered with an error.

    Attributes:
        status: HTTP's.
        text: The server's words.
    """

    def __init__(self, what: str, status: int, text: str) -> None:
        super().__init__(f"{what}: {text} ({status})")
        self.status = status
        self.text = text


class InfrastructureError(ToxiproxyError):
    """The server cannot be trusted any more: it hangs, is gone, or does not do what it says. Start another."""
