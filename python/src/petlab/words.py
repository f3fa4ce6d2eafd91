"""The words for what trials and scores have: those of `petlab help fields`, and the SQL for each.

A test holds the list equal to the program's.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .config import GROUPS
from .errors import QuestionError

Kind = Literal["text", "integer", "number", "boolean"]
Scope = Literal["trial", "member", "attempt", "artifact", "score", "tag"]

TAGS_OF_TRIAL = (
    "SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM "
    "sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key"
)
"""The tags of the trial t, its own and those of its sweeps."""


@dataclass(frozen=True)
class Word:
    """One word: its name in the database's views, and where its value stands."""

    name: str
    kind: Kind = "text"
    scope: Scope = "trial"
    user_key: str = ""
    """The key of the free group, of `user.KEY`."""

    def sql(self, parameters: list[object]) -> str:
        """The value as SQL on the tables t, m, w, a and f; adds what it binds."""
        if self.user_key:
            # SQLite's JSON paths have no way to write a quote.
            if '"' in self.user_key:
                raise QuestionError(f"{self.name}: a key with a quotation mark cannot be asked for")
            # A key is compared as it stands in the JSON, backslashes and all.
            parameters.append("$." + json.dumps(self.user_key, ensure_ascii=False))
            return "json_extract(t.user, ?)"
        if self.scope == "member":
            return "w.name" if self.name == "sweep" else "nullif(m.variant, '')"
        if self.scope == "attempt":
            return "a.number" if self.name == "attempt" else f"a.{self.name}"
        if self.scope == "artifact":
            return f"coalesce(f.{self.name}, t.{self.name})"
        if self.scope == "tag":
            return f"(SELECT group_concat(tag) FROM ({TAGS_OF_TRIAL} ORDER BY 1))"
        if self.scope == "score":
            return f"r.{self.name}"
        return f't."{self.name}"'


def _kind_of(hint: object) -> Kind:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number")):
        if hint is kind or kind in typing.get_args(hint):
            return typing.cast(Kind, name)
    return "text"


def _configuration_words() -> list[Word]:
    words = [Word("backbone"), Word("seed", "integer")]
    for group, kind in GROUPS.items():
        hints = typing.get_type_hints(kind)
        words += [
            Word(f"{group}_{row.name}", _kind_of(hints[row.name]))
            for row in dataclasses.fields(kind)
        ]
    return words


CONFIGURATION: tuple[Word, ...] = tuple(_configuration_words())
WORDS: tuple[Word, ...] = (
    Word("trial_id"),
    Word("sweep", scope="member"),
    Word("variant", scope="member"),
    Word("task", scope="score"),
    Word("name", scope="score"),
    Word("tasks"),
    Word("tag", scope="tag"),
    Word("attempt", "integer", "attempt"),
    Word("host", scope="attempt"),
    Word("device", scope="attempt"),
    Word("launcher", scope="attempt"),
    Word("worker", scope="attempt"),
    Word("worker_version", scope="attempt"),
    Word("train_seconds", "number", "attempt"),
    Word("peak_memory_mib", "number", "attempt"),
    Word("device_memory_mib", "number", "attempt"),
    Word("bls_bits", "number", "artifact"),
    Word("stored_bits", "integer", "artifact"),
    Word("user"),
    *CONFIGURATION,
)
_BY_NAME = {word.name: word for word in WORDS}


def nearest(word: str, known: Sequence[str]) -> str:
    """`; did you mean X?`, or what there is where it is not much, or nothing."""
    close = difflib.get_close_matches(word, known, 1, 0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 20 else ""


def word_named(text: str) -> Word:
    """As a view's column, or as sweep files spell it; `metric` is `name`.

    Raises QuestionError naming the nearest.
    """
    if text.startswith("user.") and len(text) > 5:
        return Word(text, user_key=text[5:])
    name = {"metric": "name", "tags": "tag"}.get(text, text)
    group, dot, field = name.partition(".")
    if dot and group in GROUPS:
        name = f"{group}_{field}"
    if name in _BY_NAME:
        return _BY_NAME[name]
    known = [*_BY_NAME, "metric", "user.NAME"]
    # A bare `learning_rate` is the last part of a field's name.
    ends = [word for word in known if word.endswith(f"_{text}")]
    hint = f"; did you mean {ends[0]!r}?" if ends else nearest(text, known)
    raise QuestionError(f"unknown field {text!r}{hint}")


def words_named(by: str | Sequence[str]) -> list[Word]:
    """A list of words, or a text with commas between them. Raises QuestionError."""
    texts = [part.strip() for part in by.split(",")] if isinstance(by, str) else list(by)
    words: list[Word] = []
    for text in texts:
        if not text:
            raise QuestionError("by: found an empty word, wanted fields divided by commas")
        word = word_named(text)
        if word in words:
            raise QuestionError(f"by: found {text} twice, wanted it once")
        words.append(word)
    return words
