"""Errors between a client and the gateway.

ApiError
├── NotReachable     nothing answers at the address
├── NotWayline       what answers is no gateway of Wayline
└── WrongVariable    a variable with the gateway's address cannot be used
"""

from __future__ import annotations


class ApiError(Exception):
    """The gateway refused a request; `code` and `detail` are those of its problem (RFC 9457)."""

    def __init__(self, detail: str, *, code: str = "error", status: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status
        """The HTTP status; None where nothing answered."""


class NotReachable(ApiError):
    """Nothing answers at the address."""

    def __init__(self, *, url: str, cause: str) -> None:
        super().__init__(
            f"nothing answers at {url} ({cause}): start Wayline with `wayline up`. Where one runs from "
            "another directory, set WAYLINE_DATA_DIR to its data directory, else WAYLINE_URL to where it runs",
            code="not_reachable",
        )


class NotWayline(ApiError):
    """The program at the address is not a gateway of Wayline."""

    def __init__(self, *, url: str, status: int) -> None:
        super().__init__(f"{url} answered {status}, not as Wayline does: is WAYLINE_URL right?", status=status)


class WrongVariable(ApiError):
    """A variable with the gateway's address cannot be used."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{variable}: {problem}", code="wrong_setting")
