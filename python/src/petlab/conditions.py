"""Conditions on trials and scores, for the program's `--where`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from .errors import QuestionError

Where: TypeAlias = "str | Mapping[str, object] | None"
"""`"task=cola and seed=42..44"`, or `{"task": "cola", "seed": [42, 43, 44]}`."""


def where_text(where: Where) -> str:
    """The conditions in the program's syntax; empty if there are none. Raises QuestionError."""
    if where is None or isinstance(where, str):
        return where or ""
    parts = []
    for field, given in where.items():
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        values = [_value_text(field, one) for one in (given if several else [given])]  # type: ignore[attr-defined]
        if not values:
            raise QuestionError(f"{field}: found no values, expected at least one")
        parts.append(f"{field}={','.join(values)}")
    return " and ".join(parts)


def _value_text(field: str, value: object) -> str:
    if hasattr(value, "item"):  # a number of NumPy or pandas
        value = value.item()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise QuestionError(f"{field}: found {value!r}, expected a text, a number, a bool or None")
