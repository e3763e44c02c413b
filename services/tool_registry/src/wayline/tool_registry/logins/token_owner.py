"""The owner of tokens of a server: the tenant, or one user."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """The tenant or the user that tokens of a server were given to."""

    tenant: str
    server: str
    user_id: str = ""
    """Empty: the tenant itself."""

    @property
    def row(self) -> tuple[str, str, str]:
        """Return the key of the owner's row."""
        return self.tenant, self.server, self.user_id

    @property
    def bound_to(self) -> str:
        """Return what the owner's tokens are sealed for, beside the tenant: in another row they cannot be opened."""
        return f"{self.server}/tokens/{self.user_id}" if self.user_id else f"{self.server}/tokens"

    def login_bound_to(self, state_sha256: str) -> str:
        """Return what a login of the owner that is under way is sealed for."""
        bound_to = f"{self.server}/login/{state_sha256}"
        return f"{bound_to}/{self.user_id}" if self.user_id else bound_to
