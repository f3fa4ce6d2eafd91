"""Conditions on trials and scores, as `petlab results --where` reads them, or as a mapping.

A test asks the program the same questions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .errors import QuestionError
from .words import TAGS_OF_TRIAL, Word, word_named

Value: TypeAlias = "str | int | float | None"
Where: TypeAlias = "str | Mapping[str, object] | None"
"""`"task=cola and seed=42..44"`, or `{"task": "cola", "seed": [42, 43, 44]}`."""

_LONGEST_RANGE = 10_000
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TOKEN = re.compile(r"\s*(?:(?P<word>[^\s=!<>]+)\s*(?P<operator>[=!<>]+)\s*)")
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"")
_BARE = re.compile(r"[^\s,]+")
_WHOLE = re.compile(r"\+?(-?\d+)")
_RANGE = re.compile(r"\+?(-?\d+)\.\.\+?(-?\d+)")
_NUMBER = re.compile(r"\+?-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Condition:
    """`seed=42`, `training_epochs>=3`: the operator is one of = != < <= > >=."""

    word: Word
    operator: str
    values: tuple[Value, ...]
    """Of =, one of which it must be, of !=, none of which; else one. None: it means nothing."""

    def sql(self, parameters: list[object]) -> str:
        """As SQL; adds what it binds."""
        if self.word.scope == "tag":
            return self._tag_sql(parameters)
        if self.operator not in ("=", "!="):
            value = self.word.sql(parameters)
            parameters.append(self.values[0])
            text = f"{value} {self.operator} ?"
            if not self.word.user_key:
                return text
            # To SQLite every text is larger than every number.
            of_text = "=" if isinstance(self.values[0], str) else "<>"
            return f"({text} AND typeof({self.word.sql(parameters)}) {of_text} 'text')"
        equal = self.operator == "="
        given = [value for value in self.values if value is not None]
        parts = []
        if len(given) < len(self.values):
            parts.append(f"{self.word.sql(parameters)} IS {'' if equal else 'NOT '}NULL")
        if given:
            text = self.word.sql(parameters)
            if not equal:
                # What means nothing for a trial is unequal to every value.
                text = f"{text} IS NULL OR {self.word.sql(parameters)}"
            parameters.extend(given)
            places = ", ".join("?" * len(given))
            parts.append(f"({text} {'' if equal else 'NOT '}IN ({places}))")
        return f"({(' OR ' if equal else ' AND ').join(parts)})"

    def _tag_sql(self, parameters: list[object]) -> str:
        """A trial may have several: one of the values must be there, or none."""
        if self.operator not in ("=", "!="):
            raise QuestionError("tag: found a comparison by size, wanted = or !=")
        given = [value for value in self.values if value is not None]
        parameters.extend(given)
        places = ", ".join("?" * len(given))
        text = f"EXISTS (SELECT 1 FROM ({TAGS_OF_TRIAL}) WHERE tag IN ({places}))"
        if len(given) < len(self.values):
            text += f" OR NOT EXISTS (SELECT 1 FROM ({TAGS_OF_TRIAL}))"
        return f"{'' if self.operator == '=' else 'NOT '}({text})"

    def text(self) -> str:
        """As the command line reads it."""
        return f"{self.word.name}{self.operator}" + ",".join(map(self._value_text, self.values))

    def _value_text(self, value: Value) -> str:
        if value is None:
            return "null"
        if self.word.kind == "boolean":
            return "true" if value else "false"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return repr(value)


def _typed(word: Word, text: str, quoted: bool, ordered: bool) -> list[Value]:
    """The values that a written one stands for: a range is several."""
    if not quoted and text == "null":
        return [None]
    if word.user_key:
        return _free(text, quoted)[: 1 if ordered else None]
    if word.kind == "text":
        return [text]
    if word.kind == "boolean":
        if text in ("true", "1", "false", "0"):
            return [int(text in ("true", "1"))]
        raise QuestionError(f"{word.name}: found {text!r}, wanted true or false")
    if word.kind == "integer":
        if match := _WHOLE.fullmatch(text):
            return [int(match[1])]
        if (match := _RANGE.fullmatch(text)) and int(match[1]) <= int(match[2]):
            first, last = int(match[1]), int(match[2])
            if last - first >= _LONGEST_RANGE:
                raise QuestionError(f"{word.name}: {text} has more than {_LONGEST_RANGE} numbers")
            return list(range(first, last + 1))
        raise QuestionError(
            f"{word.name}: found {text!r}, wanted a whole number, or several as 1..5"
        )
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return [float(text)]
    raise QuestionError(f"{word.name}: found {text!r}, wanted a number")


def _free(text: str, quoted: bool) -> list[Value]:
    # Of `user.KEY`, which may be of any type: an unquoted number may also mean the text.
    if quoted:
        return [text]
    try:
        found = json.loads(text)
    except ValueError:
        return [text]
    return (
        [int(found) if isinstance(found, bool) else found, text]
        if isinstance(found, (int, float))
        else [text]
    )


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> list[Condition]:
        found = [self._condition()]
        while rest := self._text[self._at :].lstrip():
            divider = re.match(r"(?:and\s+|,\s*)", rest, re.IGNORECASE)
            if divider is None:
                if re.match(r"or(\s|$)", rest, re.IGNORECASE):
                    raise QuestionError(
                        "where: found or, wanted `and`: one of several values is field=a,b"
                    )
                raise QuestionError(f"where: found {rest!r}, wanted `and`, a comma or the end")
            self._at = len(self._text) - len(rest) + divider.end()
            found.append(self._condition())
        return found

    def _condition(self) -> Condition:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].strip()
            raise QuestionError(
                f"where: found {rest or 'nothing'!r}, wanted a condition such as task=cola"
            )
        operator = _OPERATORS.get(match["operator"])
        if operator is None:
            raise QuestionError(f"where: found {match['operator']!r}, wanted one of = != < <= > >=")
        if match["word"] == "split":
            raise QuestionError("where: found split, wanted a field: split= chooses the split")
        word = word_named(match["word"])
        self._at = match.end()
        ordered = operator not in ("=", "!=")
        values = self._value(word, ordered)
        while self._comma():
            values += self._value(word, ordered)
        return _checked(Condition(word, operator, tuple(values)))

    def _value(self, word: Word, ordered: bool) -> list[Value]:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        if match := _QUOTED.match(self._text, self._at):
            self._at = match.end()
            single, double = match.groups()
            text = double.replace('""', '"') if single is None else single.replace("''", "'")
            return _typed(word, text, True, ordered)
        if self._text[self._at : self._at + 1] in ("'", '"'):
            raise QuestionError("where: found a quote that nothing ends, wanted another behind it")
        match = _BARE.match(self._text, self._at)
        if match is None:
            raise QuestionError(f"where: found no value for {word.name}, wanted one")
        self._at = match.end()
        return _typed(word, match[0], False, ordered)

    def _comma(self) -> bool:
        """Takes the comma where another value follows; one before a condition is left."""
        match = re.compile(r"\s*,\s*").match(self._text, self._at)
        if match is None:
            return False
        ahead = self._text[match.end() :]
        if ahead[:1] not in ("'", '"') and re.match(r"[^\s,=!<>]*\s*[=!<>]", ahead):
            return False
        self._at = match.end()
        return True


def _checked(condition: Condition) -> Condition:
    if condition.operator not in ("=", "!="):
        if len(condition.values) != 1:
            raise QuestionError(
                f"where: found {len(condition.values)} values of {condition.word.name}, wanted one "
                "for a comparison by size"
            )
        if condition.values[0] is None:
            raise QuestionError(
                f"{condition.word.name}: found null, wanted a value that has a size"
            )
    return condition


def _from_mapping(where: Mapping[str, object]) -> list[Condition]:
    found = []
    for name, given in where.items():
        word = word_named(name)
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        values = [_plain(word, one) for one in (given if several else [given])]  # type: ignore[attr-defined]
        if not values:
            raise QuestionError(f"{name}: found no values, wanted at least one")
        found.append(Condition(word, "=", tuple(values)))
    return found


def _plain(word: Word, value: object) -> Value:
    if hasattr(value, "item"):  # NumPy's and pandas' numbers
        value = value.item()
    wanted = {
        "text": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool, int),
    }[word.kind]
    if value is None or (word.user_key and isinstance(value, (str, int, float))):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, wanted) and (word.kind == "boolean" or not isinstance(value, bool)):
        return int(value) if isinstance(value, bool) else value  # type: ignore[return-value]
    raise QuestionError(f"{word.name}: found {value!r}, wanted a {word.kind}")


def parse_where(where: Where) -> list[Condition]:
    """The conditions, all of which must hold; none for None. Raises QuestionError."""
    if where is None or where == "":
        return []
    if isinstance(where, str):
        return _Reader(where).read()
    return _from_mapping(where)


def where_text(where: Where) -> str:
    """As the command line reads it."""
    if isinstance(where, str):
        return where
    return " and ".join(condition.text() for condition in parse_where(where))
