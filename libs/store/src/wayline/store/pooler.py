"""Postgres behind a pooler of transactions, such as PgBouncer with `pool_mode = transaction`.

Between two transactions a session may be another one. So nothing is set for a session, no statement is prepared for a
later transaction, and each statement runs in a transaction that begins with its context.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

POOL_MODE = "pool_mode"
"""The parameter of an address that says so."""
TRANSACTION = "transaction"


def read_pool_mode(dsn: str) -> tuple[str, bool]:
    """Return an address as Postgres knows it, and whether a pooler of transactions is there. Raises ValueError."""
    parts = urlsplit(dsn)
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    modes = [value for name, value in parameters if name == POOL_MODE]
    if not modes:
        return dsn, False
    if set(modes) - {TRANSACTION, "session"}:
        raise ValueError(f"{POOL_MODE} is `transaction` or `session`")
    others = [(name, value) for name, value in parameters if name != POOL_MODE]
    return urlunsplit(parts._replace(query=urlencode(others))), modes[-1] == TRANSACTION
