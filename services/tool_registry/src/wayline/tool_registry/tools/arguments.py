"""Check a call's arguments against its tool's schema, and say which field is wrong."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import Any

import orjson

VALIDATORS_MAX = 2_000
PROBLEMS_MAX = 5
PROBLEM_MAX_CHARS = 300


class Arguments:
    """Compiled schemas, by the hash of their text."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[str, Any] = OrderedDict()

    def problem(self, schema: dict[str, Any], arguments: dict[str, Any], *, digest: str | None = None) -> str | None:
        """Return what is wrong, field by field, or None; `digest` is the schema's, where the caller has it."""
        from referencing.exceptions import Unresolvable

        try:
            wrong = sorted(
                self._validator(schema, digest).iter_errors(arguments), key=lambda error: [str(p) for p in error.path]
            )
        except Unresolvable as error:
            return f"cannot be checked: the tool's schema refers to {error.ref!r}, which is not in it"
        except RecursionError:
            return "cannot be checked: the tool's schema refers to itself without end"
        return "; ".join(_explain(error) for error in wrong[:PROBLEMS_MAX]) or None

    def check_schema(self, schema: dict[str, Any]) -> str | None:
        """Return why nothing could ever be checked against this schema, or None."""
        from jsonschema.exceptions import SchemaError

        try:
            self._validator(schema)
        except SchemaError as error:
            return f"{error.json_path}: {error.message[:PROBLEM_MAX_CHARS]}"
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            # Not of the kind that the library takes it to be, or nothing that a model could be sent: it is too deep, or
            # has a number of more than 64 bits.
            return f"cannot be used ({type(error).__name__}: {str(error)[:PROBLEM_MAX_CHARS]})"
        return None

    def _validator(self, schema: dict[str, Any], digest: str | None = None) -> Any:
        known = digest or digest_of(schema)
        if known in self._compiled:
            self._compiled.move_to_end(known)
            return self._compiled[known]
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
        # An empty registry of our own: the library's default would fetch a `$ref` that a server names.
        validator = self._compiled[known] = kind(schema, registry=EMPTY_REGISTRY)
        if len(self._compiled) > VALIDATORS_MAX:
            self._compiled.popitem(last=False)
        return validator


def digest_of(schema: dict[str, Any]) -> str:
    """Return what a compiled schema is known by."""
    return sha256(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _explain(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= PROBLEM_MAX_CHARS else f"{error.message[:PROBLEM_MAX_CHARS]}…"
    return f"{where}: {message}" if where else message
