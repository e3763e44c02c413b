"""JSON Schemas that strangers wrote, evaluated within a budget."""

from wayline.schemas.evaluate import Schema, compile_schema
from wayline.schemas.limits import Budget, OverBudget, UnusableSchema
from wayline.schemas.patterns import UnsupportedPattern, compile_pattern

__all__ = [
    "Budget",
    "OverBudget",
    "Schema",
    "UnsupportedPattern",
    "UnusableSchema",
    "compile_pattern",
    "compile_schema",
]
