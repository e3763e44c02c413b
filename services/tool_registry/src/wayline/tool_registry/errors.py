"""What can go wrong between the registry and a tool.

CallError
├── NotBegun        the request never reached the tool: nothing happened
│   ├── NeedsLogin      because nobody is logged in to its server
│   ├── Withheld        because its server shows this user another tool than was approved
│   └── CannotIsolate   because this machine cannot confine a tenant's program
├── AnswerLost      it was sent, no answer came: the outcome is unknown
│   ├── TimedOut        because the tool took too long
│   └── SessionEnded    because the server does not know the session any more, or says so
├── LeaseLost       another process took our lease before the request was sent: nothing happened here
└── Unusable        the server refused it: in its words; it may have acted all the same
    ├── LoginRefused    because of its login
    └── Busy            because it takes no more requests for a while

TriesFull           a Full: as many servers are being tried as may be; ask again
TooMuchOffered      a server offers more definitions than are kept
LedgerUnavailable   an Unavailable: the ledger did not answer, so the key's state is unknown; ask again
ToolKeyConflict     a Conflict: the key stands for a call with other content
"""

from typing import ClassVar

from wayline.contracts.errors import Conflict, Full, Retry, Unavailable


class CallError(Exception):
    """A call that brought no result."""


class NotBegun(CallError):
    """The request never reached the tool."""

    code: ClassVar[str] = "unavailable"
    """Of the reply to a call that ends with this."""


class NeedsLogin(NotBegun):
    """The server needs a login first."""

    code: ClassVar[str] = "needs_authorization"


class Withheld(NotBegun):
    """The server shows one user another definition of the tool than was approved."""

    code: ClassVar[str] = "refused"


class CannotIsolate(NotBegun):
    """A tenant's program was not started."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"programs of tenants do not run here, because they cannot be isolated: {why}. The operator can let them "
            "run unconfined, with the registry's own rights: WAYLINE_TOOL_REGISTRY_PROGRAMS=unconfined"
        )


class LeaseLost(CallError):
    """Another process took the lease before the request was sent."""


class AnswerLost(CallError):
    """The request was sent and no answer came."""


class TimedOut(AnswerLost):
    """The tool took too long."""

    def __init__(self, *, after_s: float) -> None:
        super().__init__(f"no answer within {after_s:g} s")


class SessionEnded(AnswerLost):
    """The server does not know the session any more, or says so."""


class Unusable(CallError):
    """The server refused the request, in its words; it may have acted all the same."""

    code: ClassVar[str] = "tool_failed"
    """Of the reply to a call that ends with this."""


class LoginRefused(Unusable):
    """The server refused the login that the request was sent with."""

    code: ClassVar[str] = "needs_authorization"


class Busy(Unusable):
    """The server takes no more requests for a while."""

    def __init__(self, why: str, *, after_s: float | None) -> None:
        """Take how long the server asks to be left alone; None: it does not say."""
        super().__init__(why)
        self.after_s = after_s


class LedgerUnavailable(Unavailable):
    """The ledger did not answer, whatever the reason.

    The tool may have acted under this key, now or earlier, so this is never reported as a failed call.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__("the ledger", detail=str(cause) or type(cause).__name__)


class ToolKeyConflict(Conflict):
    """The key stands for a call of another tool, with other arguments, or for another user."""

    code = "tool_key_conflict"

    def __init__(self, *, key: str) -> None:
        super().__init__(f"key {key!r} stands for a call with other content; a new call needs a new key")


class TriesFull(Full):
    """As many servers are being tried as may be."""

    def __init__(self, why: str) -> None:
        Retry.__init__(self, f"{why}: try again once one of them has ended", after_s=5.0)


class TooMuchOffered(Exception):
    """A server offers more definitions than are kept for one."""
