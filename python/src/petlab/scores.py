"""Which values count, asked of the views; one reader's moment, made by Database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from .conditions import Condition
from .errors import QuestionError
from .words import CONFIGURATION, Word, nearest

# SQLite binds no more than 32,766 values.
_MOST_BOUND = 30_000
HISTORY: Mapping[str, str] = {
    "split": "text",
    "task": "text",
    "metric": "text",
    "attempt": "integer",
    "seq": "integer",
    "step": "integer",
    "value": "number",
}
# What `progress` events say of the loss, as if it were a metric of a split of its own.
PROGRESS = "progress"
LOSS = "loss"
# A score counts where its task is one of the trial's, or no trial's: as the view `scores` has it.
_TASK_BELONGS = (
    "(instr(',' || r.tasks || ',', ',' || r.task || ',') "
    "OR r.task NOT IN (SELECT task FROM task_names))"
)


class Scores:
    """The trials and scores of a database, by conditions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        columns = connection.execute("SELECT name FROM pragma_table_info('trials')").fetchall()
        self._columns = {row[0] for row in columns}
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'sweep_tags'"
        self._has_tags = connection.execute(tables).fetchone() is not None

    def default_words(self) -> list[Word]:
        """The fields that may tell trials apart, those of the free group each by itself."""
        words = [Word("variant", scope="member")]
        words += [word for word in CONFIGURATION if word.name in self._columns]
        keys: dict[str, None] = {}
        users = "SELECT DISTINCT user FROM trials WHERE user <> '{}'"
        for (text,) in self._connection.execute(users):
            keys.update(dict.fromkeys(json.loads(text)))
        return words + [Word(f"user.{key}", user_key=key) for key in keys if '"' not in key]

    def check_metrics(self, metrics: Sequence[str]) -> None:
        """Raises QuestionError for one that nobody reported."""
        rows = self._connection.execute("SELECT DISTINCT name FROM series ORDER BY 1")
        known = [row[0] for row in rows]
        for name in metrics:
            if name not in known and known:
                raise QuestionError(f"unknown metric {name!r}{nearest(name, known)}")

    def explain_nothing(self, conditions: Sequence[Condition]) -> None:
        """Raises QuestionError for a text that a condition asks for and that no trial has."""
        for condition in conditions:
            if condition.operator != "=":
                continue
            known = self._known(condition.word)
            for value in condition.values:
                if isinstance(value, str) and value not in known:
                    raise QuestionError(
                        f"no trial has {condition.word.name} {value}{nearest(value, known)}"
                    )

    def _known(self, word: Word) -> list[str]:
        parameters: list[object] = []
        if word.scope == "tag":
            sql = "SELECT tag FROM trial_tags UNION SELECT tag FROM sweep_tags"
        elif word.scope == "score":
            sql = f"SELECT DISTINCT {word.name} FROM series"
        else:
            value = word.sql(parameters)
            sql = f"SELECT DISTINCT {value} FROM trials t{_joins([word])}"
        found = self._connection.execute(sql + " ORDER BY 1 LIMIT 1000", parameters)
        return [str(row[0]) for row in found if row[0] is not None]

    def selected(
        self,
        words: Sequence[Word],
        conditions: Sequence[Condition],
        metrics: Sequence[str] | None,
        splits: Sequence[str],
    ) -> list[dict[str, Any]]:
        """One row for each trial, task, split and metric: the value that counts."""
        bound: dict[str, object] = {}
        sql = (
            "SELECT r.task, r.split, r.name AS metric, r.step, r.value FROM scores r "
            f"WHERE {_which(conditions, metrics, splits, bound)} ORDER BY r.split, r.task, r.name"
        )
        return self._of_trials(words, conditions, sql, bound)

    def every(
        self,
        words: Sequence[Word],
        conditions: Sequence[Condition],
        metrics: Sequence[str] | None,
        splits: Sequence[str],
    ) -> list[dict[str, Any]]:
        """One row for each value of a trial's result, by step."""
        bound: dict[str, object] = {}
        sql = (
            "SELECT r.task, r.split, r.name AS metric, r.step, r.value FROM results r "
            f"WHERE {_which(conditions, metrics, splits, bound)} AND {_TASK_BELONGS} "
            "ORDER BY r.split, r.task, r.name, r.step, r.attempt, r.seq"
        )
        return self._of_trials(words, conditions, sql, bound)

    def _of_trials(
        self,
        words: Sequence[Word],
        conditions: Sequence[Condition],
        sql: str,
        bound: Mapping[str, object],
    ) -> list[dict[str, Any]]:
        """Asks trial by trial, as the values of one lie together: nothing large is sorted."""
        rows: list[dict[str, Any]] = []
        for trial_id, fields in self._fields(words, conditions).items():
            for row in self._connection.execute(sql, {**bound, "trial": trial_id}):
                rows.append({"trial_id": trial_id, **fields, **dict(row)})
        return rows

    def history(self, trial_id: str) -> list[dict[str, Any]]:
        """The values of a trial's result, else of its last attempt, by series and step."""
        # Of the attempts themselves: the view of results leaves out what is hidden from reports.
        sql = (
            "SELECT r.split, r.task, r.name AS metric, r.attempt, r.seq, r.step, r.value "
            "FROM trials t JOIN attempts a ON a.trial = t.key "
            "JOIN metrics r ON r.trial_id = t.trial_id AND r.attempt = a.number "
            "WHERE t.trial_id = ? AND CASE WHEN t.result_attempt IS NULL "
            "THEN a.number = (SELECT max(number) FROM attempts WHERE trial = t.key) "
            "ELSE a.counts_to IS NOT NULL AND r.seq <= a.counts_to END "
            "ORDER BY 1, 2, 3, r.step, r.attempt, r.seq"
        )
        return [dict(row) for row in self._connection.execute(sql, [trial_id])]

    def losses(self, trial_id: str) -> list[dict[str, Any]]:
        """The losses that a trial told of while it trained, as history() has the metric `loss`.

        A point may be the mean over several steps, of which it has the last. Empty where an earlier
        petlab read the events.
        """
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'loss_points'"
        if self._connection.execute(tables).fetchone() is None:
            return []
        attempts = self._connection.execute(
            "SELECT a.key, a.number, a.parent, a.resume_seq, a.key IS t.result_attempt AS result "
            "FROM trials t JOIN attempts a ON a.trial = t.key WHERE t.trial_id = ? "
            "ORDER BY a.number",
            [trial_id],
        ).fetchall()
        by_number = {row["number"]: row for row in attempts}
        at = next((row for row in attempts if row["result"]), attempts[-1] if attempts else None)
        found: list[dict[str, Any]] = []
        to = None  # of what an attempt resumed from that counts which came before its checkpoint
        while at is not None:
            points = self._connection.execute(
                "SELECT seq, step, loss FROM loss_points WHERE attempt = ? "
                "AND seq <= coalesce(?, seq) ORDER BY place DESC",
                [at["key"], to],
            )
            found += [
                {"split": PROGRESS, "task": "", "metric": LOSS, "attempt": at["number"]}
                | {"seq": seq, "step": step, "value": loss}
                for seq, step, loss in points
            ]
            to = at["resume_seq"] or 0
            # A parent comes before its child, so this ends.
            at = by_number.get(min(at["parent"] or 0, at["number"] - 1))
        return found[::-1]

    def _check_column(self, word: Word) -> None:
        lacking = word in CONFIGURATION and word.name not in self._columns
        if lacking or (word.scope == "tag" and not self._has_tags):
            raise QuestionError(
                f"{word.name}: the database was made by an earlier petlab and lacks it; "
                "petlab run, or petlab db import, adds it"
            )

    def _fields(
        self, words: Sequence[Word], conditions: Sequence[Condition]
    ) -> dict[str, dict[str, Any]]:
        """Of each selected trial, in the order in which they were recorded."""
        members = [word for word in words if word.scope == "member"]
        others = [word for word in words if word.scope != "member"]
        of_trials = [one for one in conditions if one.word.scope != "score"]
        asked = [*words, *(one.word for one in of_trials)]
        for word in asked:
            self._check_column(word)
        parameters: list[object] = []
        columns = "".join(f", {word.sql(parameters)}" for word in [*others, *members])
        where = "".join(f" AND {one.sql(parameters)}" for one in of_trials)
        if len(parameters) > _MOST_BOUND:
            raise QuestionError(
                f"where: found {len(parameters)} values to compare with, wanted at most "
                f"{_MOST_BOUND}"
            )
        sql = (
            f"SELECT t.trial_id{columns} FROM trials t{_joins(asked)} "
            f"WHERE t.result_attempt IS NOT NULL{where} "
            f"ORDER BY t.key{', m.sweep, m.place' if members else ''}"
        )
        found: dict[str, dict[str, Any]] = {}
        names: dict[tuple[str, str], list[str]] = {}
        for row in self._connection.execute(sql, parameters):
            values = {word.name: row[at] for at, word in enumerate(others, 1)}
            for word in others:
                if word.kind == "boolean" and values[word.name] is not None:
                    values[word.name] = bool(values[word.name])
            for at, word in enumerate(members, 1 + len(others)):
                known = names.setdefault((row[0], word.name), [])
                if row[at] is not None and row[at] not in known:
                    known.append(row[at])
                values[word.name] = ", ".join(known) or None
            found[row[0]] = values
        return found


def _bind(bound: dict[str, object], value: object) -> str:
    name = f"p{len(bound)}"
    bound[name] = value
    return f":{name}"


def _which(
    conditions: Sequence[Condition],
    metrics: Sequence[str] | None,
    splits: Sequence[str],
    bound: dict[str, object],
) -> str:
    """Which values of the trial `:trial` are asked for, as SQL."""
    parts = ["r.trial_id = :trial"]
    parts.append(f"r.split IN ({', '.join(_bind(bound, split) for split in splits)})")
    if metrics is not None:
        parts.append(f"r.name IN ({', '.join(_bind(bound, name) for name in metrics)})")
    for condition in conditions:
        if condition.word.scope == "score":
            parameters: list[object] = []
            text = condition.sql(parameters)
            for value in parameters:
                text = text.replace("?", _bind(bound, value), 1)
            parts.append(text)
    return " AND ".join(parts)


def _joins(words: Sequence[Word]) -> str:
    scopes = {word.scope for word in words}
    text = ""
    if "member" in scopes:
        text += " LEFT JOIN sweep_trials m ON m.trial = t.key LEFT JOIN sweeps w ON w.key = m.sweep"
    if "attempt" in scopes:
        text += " LEFT JOIN attempts a ON a.key = t.result_attempt"
    if "artifact" in scopes:
        text += " LEFT JOIN artifacts f ON f.attempt = t.result_attempt"
    return text
