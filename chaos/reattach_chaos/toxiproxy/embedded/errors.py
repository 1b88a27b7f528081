"""What the API answers when it declines: a status and a sentence, as Toxiproxy words them."""


class ApiError(Exception):
    """The request is declined.

    Args:
        status: HTTP's.
        text: What the body says.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def proxy_not_found() -> ApiError:
    """Return the refusal of a name that no proxy has."""
    return ApiError(404, "proxy not found")


def toxic_not_found() -> ApiError:
    """Return the refusal of a name that no toxic of the proxy has."""
    return ApiError(404, "toxic not found")
