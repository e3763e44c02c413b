"""What a program may use."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE_BYTES_MAX = 64 * 1024
EXECUTION_S_MAX = 10.0
"""Seconds in which a program computes; those in which it waits for its calls are not counted."""
MEMORY_BYTES_MAX = 64 * 1024 * 1024
CALLS_MAX = 100
ARGUMENTS_BYTES_MAX = 64 * 1024
"""Of one call, as JSON."""
PRINTED_BYTES_MAX = 64 * 1024
VALUE_BYTES_MAX = 1024 * 1024
"""Of a program's value as JSON; what is beyond is left out, and the value says so."""
SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024
RECURSION_MAX = 500
SUSPENSIONS_MAX = 1_000
"""Questions of a program to its host between two answers: calls, undefined names, imports, files."""
MESSAGE_CHARS_MAX = 4_000
"""Of what a model is told about a program that failed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    source_bytes_max: int = SOURCE_BYTES_MAX
    execution_s_max: float = EXECUTION_S_MAX
    memory_bytes_max: int = MEMORY_BYTES_MAX
    calls_max: int = CALLS_MAX
    arguments_bytes_max: int = ARGUMENTS_BYTES_MAX
    printed_bytes_max: int = PRINTED_BYTES_MAX
    value_bytes_max: int = VALUE_BYTES_MAX
    snapshot_bytes_max: int = SNAPSHOT_BYTES_MAX
    recursion_max: int = RECURSION_MAX
    suspensions_max: int = SUSPENSIONS_MAX
