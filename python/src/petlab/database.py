"""petlab's results in Python (docs/python.md, docs/reference/sql.md)."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .conditions import Where, where_text
from .config import GROUPS, Config, config_from_json
from .errors import Error, QuestionError
from .program import NoteWarning, ask, find_program
from .reading import check_file, connect, reading

if TYPE_CHECKING:
    import pandas

__all__ = ["AttemptRecord", "Database", "NoteWarning", "Row", "TrialRecord", "open"]

Row: TypeAlias = "dict[str, Any]"
"""A row by column name. Fields that do not apply to the trial are None."""
Names: TypeAlias = "str | Sequence[str] | None"
Steps = Literal["selected", "all"]

_SPLITS = ("train", "validation", "test")
_VALUES = ["trial_id", "task", "split", "metric", "step", "value"]
_HISTORY = ["split", "task", "metric", "attempt", "seq", "step", "value"]


@dataclass(frozen=True)
class AttemptRecord:
    """One try at a trial. Times are seconds since 1970; None: not yet, or not reported."""

    number: int
    outcome: str
    """`open`, `finished`, `failed`, `crashed` … (docs/reference/running.md)."""
    reason: str | None
    folder: Path | None
    """None if the database has no runs folder."""
    host: str | None
    device: str | None
    worker: str | None
    worker_version: str | None
    numerics: Mapping[str, Any]
    begun_at: float | None
    ended_at: float | None
    train_seconds: float | None
    peak_memory_mib: float | None
    device_memory_mib: float | None
    examples: Mapping[str, Mapping[str, int]]
    """Numbers of training and scored examples, by task and split; empty if not reported."""


@dataclass(frozen=True)
class TrialRecord:
    """The record of a trial in the database."""

    trial_id: str
    config: Config
    sweeps: tuple[tuple[str, str | None], ...]
    """The names of its sweeps, each with the trial's variant there."""
    attempts: tuple[AttemptRecord, ...]
    result: AttemptRecord | None
    """The attempt whose result counts; None if there is none yet."""
    artifact: Path | None
    bls_bits: float | None
    stored_bits: int | None
    cancelled: bool
    stopped_early: str | None
    """Why a rule of its sweep stopped the trial; None if it did not, or the trial continues or
    finished."""
    scores: tuple[Row, ...]
    """The values at the selected step: `task`, `split`, `metric`, `step`, `value`."""


def open(
    database: str | os.PathLike[str], *, program: str | os.PathLike[str] | None = None
) -> Database:
    """Opens a petlab database for reading. This never disturbs a running petlab.

    `program` is the program petlab, for the queries that need it; by default PETLAB_PROGRAM or the
    one on PATH. A database of an earlier version is read through a copy that the program updates,
    with a NoteWarning. Raises DatabaseError if the file is missing, is not a petlab database, or
    has a newer version.
    """
    return Database(Path(database), program)


class Database:
    """A petlab database, created by petlab.open. No file stays open between two queries.

    Fields and `where` are written as on the command line (`petlab help fields`). Methods that
    return data frames need pandas; `rows` and `…_rows` do not.
    """

    def __init__(self, file: Path, program: str | os.PathLike[str] | None) -> None:
        check_file(file)
        self.file = file
        self._program = program
        with reading(file, program):
            pass

    def __repr__(self) -> str:
        return f"petlab.open({str(self.file)!r})"

    def rows(
        self,
        where: Where = None,
        by: Names = None,
        metric: Names = None,
        split: str | Sequence[str] = "test",
        steps: Steps = "selected",
    ) -> list[Row]:
        """Like results(), but returns dicts."""
        words = ["results", "--values", "--steps", steps]
        words += ["--split", split if isinstance(split, str) else ",".join(split)]
        return self._ask(words + _option("--by", by) + _option("--metric", metric), where)

    def results(
        self,
        where: Where = None,
        by: Names = None,
        metric: Names = None,
        split: str | Sequence[str] = "test",
        steps: Steps = "selected",
    ) -> pandas.DataFrame:
        """Returns a row for each trial and metric, in the order in which trials were recorded.

        Columns: `trial_id`, the fields of `by`, `task`, `split`, `metric`, `step`, `value`. By
        default, `by` is the variant, the seed, and the fields in which the trials differ. If a
        trial has several variants, or is in several sweeps, one cell lists the names with commas.

        `where`: `"task=cola and seed=42..44"`, or `{"task": "cola", "seed": [42, 43, 44]}`.
        `steps`: `selected` for the value at the selected step (the step of the test scores; without
        it, or if the metric was not reported there, the last), or `all`. Scores that a trial
        reported for another trial's task are left out.

        Raises QuestionError for an unknown word, and if nothing is selected because no trial has a
        value in `where`.
        """
        return _frame(self.rows(where, by, metric, split, steps), _VALUES)

    def history(
        self,
        trial: str,
        metric: str | None = None,
        split: str | None = None,
        task: str | None = None,
    ) -> pandas.DataFrame:
        """Returns every value that a trial reported, by step.

        They come from the trial's result, including the attempts it resumed, or else from its last
        attempt. `trial` is an id or the beginning of one. Split `progress` has the loss reported
        during training; the metric `loss` also selects it, unless a metric has that name. Columns:
        `split`, `task`, `metric`, `attempt`, `seq`, `step`, `value`.
        """
        return _frame(self.history_rows(trial, metric, split, task), _HISTORY)

    def history_rows(
        self,
        trial: str,
        metric: str | None = None,
        split: str | None = None,
        task: str | None = None,
    ) -> list[Row]:
        """Like history(), but returns dicts."""
        words = ["history", trial]
        for option, value in (("--metric", metric), ("--split", split), ("--task", task)):
            words += _option(option, value)
        rows = self._ask(words, None)
        return [{"metric" if name == "name" else name: row[name] for name in row} for row in rows]

    def trial(self, trial: str) -> TrialRecord:
        """Returns a trial's record, by its id or the beginning of it."""
        with reading(self.file, self._program) as connection:
            trial_id = self._id(connection, trial)
            row = connection.execute(
                "SELECT t.*, r.number AS result_number, f.path, "
                "coalesce(f.bls_bits, t.bls_bits) AS size, "
                "coalesce(f.stored_bits, t.stored_bits) AS stored, "
                "(SELECT why FROM early_stops e WHERE e.trial = t.key AND t.cancelled "
                "AND e.after_attempt > coalesce(r.number, 0)) AS stop "
                "FROM trials t "
                "LEFT JOIN attempts r ON r.key = t.result_attempt "
                "LEFT JOIN artifacts f ON f.attempt = t.result_attempt WHERE t.trial_id = ?",
                [trial_id],
            ).fetchone()
            attempts = connection.execute(
                "SELECT * FROM attempts WHERE trial = ? ORDER BY number", [row["key"]]
            ).fetchall()
            examples = self._examples(connection, row["key"])
            sweeps = connection.execute(
                "SELECT w.name, nullif(m.variant, '') FROM sweep_trials m "
                "JOIN sweeps w ON w.key = m.sweep WHERE m.trial = ? ORDER BY 1, 2",
                [row["key"]],
            ).fetchall()
            runs = self._runs(connection)
        scores = self.rows({"trial_id": trial_id}, by="trial_id", split=_SPLITS)
        records = tuple(
            _attempt(one, runs and runs / trial_id, examples.get(one["key"], {}))
            for one in attempts
        )
        result = next((one for one in records if one.number == row["result_number"]), None)
        folder = result.folder if result else None
        return TrialRecord(
            trial_id=trial_id,
            config=config_from_json(json.loads(row["config"])),
            sweeps=tuple((name, variant) for name, variant in sweeps),
            attempts=records,
            result=result,
            artifact=folder / row["path"] if folder and row["path"] else None,
            bls_bits=row["size"],
            stored_bits=row["stored"],
            cancelled=bool(row["cancelled"]) and row["stop"] is None,
            stopped_early=row["stop"],
            scores=tuple({k: v for k, v in one.items() if k != "trial_id"} for one in scores),
        )

    def table(
        self,
        by: Names = None,
        pivot: str | None = None,
        where: Where = None,
        metric: Names = None,
        split: str = "test",
    ) -> pandas.DataFrame:
        """Returns means over seeds, from `petlab results`.

        Columns: the fields of `by`; for each metric (or value of `pivot`) `…_mean`, `…_sd` (the
        sample standard deviation) and `…_n`; `pending` and `stopped_early`, the numbers of trials
        without a result. Caveats are NoteWarnings. Raises QuestionError, ProgramError.
        """
        return _frame(self.table_rows(by, pivot, where, metric, split))

    def table_rows(
        self,
        by: Names = None,
        pivot: str | None = None,
        where: Where = None,
        metric: Names = None,
        split: str = "test",
    ) -> list[Row]:
        """Like table(), but returns dicts."""
        words = ["results", "--split", split]
        words += _option("--by", by) + _option("--metric", metric) + _option("--pivot", pivot)
        return self._ask(words, where)

    def best(
        self,
        where: Where = None,
        metric: str | None = None,
        split: str = "validation",
        top: int = 1,
        highest: bool | None = None,
    ) -> pandas.DataFrame:
        """Returns the best trials of each task, from `petlab best`.

        They are selected on the validation split by default, so that the test scores shown next to
        it are unbiased. `metric` defaults to the one that the task selects by. For a metric that
        petlab does not know, `highest` tells whether higher is better. Raises QuestionError,
        ProgramError.
        """
        return _frame(self.best_rows(where, metric, split, top, highest))

    def best_rows(
        self,
        where: Where = None,
        metric: str | None = None,
        split: str = "validation",
        top: int = 1,
        highest: bool | None = None,
    ) -> list[Row]:
        """Like best(), but returns dicts."""
        words = ["best", "--split", split, "--top", str(top), *_option("--metric", metric)]
        if highest is not None:
            words.append("--highest" if highest else "--lowest")
        return self._ask(words, where)

    def _ask(self, words: list[str], where: Where) -> list[Row]:
        text = where_text(where)
        rows = ask(
            find_program(self._program),
            words + (["--where", text] if text else []),
            self.file,
        )
        return [
            {
                name: bool(value) if _KINDS.get(name) is bool and value is not None else value
                for name, value in row.items()
            }
            for row in rows
        ]

    def _id(self, connection: sqlite3.Connection, beginning: str) -> str:
        found = connection.execute(
            "SELECT trial_id FROM trials WHERE substr(trial_id, 1, ?) = ? ORDER BY 1 LIMIT 6",
            [len(beginning), beginning],
        ).fetchall()
        ids = [str(row[0]) for row in found]
        if len(ids) == 1 or beginning in ids:
            return beginning if beginning in ids else ids[0]
        if not ids:
            raise QuestionError(f"trial {beginning} is not in {self.file}")
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise QuestionError(
            f"{beginning} is a prefix of several trial ids; give a longer one: {shown}"
        )

    def _runs(self, connection: sqlite3.Connection) -> Path | None:
        row = connection.execute("SELECT value FROM settings WHERE name = 'runs'").fetchone()
        return None if row is None else self.file.resolve().parent / row[0]

    def _examples(self, connection: sqlite3.Connection, trial: int) -> dict[int, Any]:
        """The numbers of examples, by the attempt's key."""
        rows = connection.execute(
            "SELECT e.attempt, x.text FROM attempts a JOIN examples e ON e.attempt = a.key "
            "JOIN example_texts x ON x.key = e.text WHERE a.trial = ?",
            [trial],
        )
        return {attempt: json.loads(text) for attempt, text in rows}

    def connect(self) -> sqlite3.Connection:
        """Opens a read-only connection for your own SQL on the views (docs/reference/sql.md).

        Close it after use. It works with `pandas.read_sql("SELECT … FROM sweep_results",
        db.connect())`. In a read-only folder, this connection locks nothing and does not detect a
        writer that starts later; the other methods do.
        """
        return connect(self.file, self._program)


def _option(name: str, values: Names) -> list[str]:
    if values is None:
        return []
    return [name, values if isinstance(values, str) else ",".join(values)]


def _field_kinds() -> dict[str, type]:
    """The types of fields. A data frame cannot infer them if values are missing."""
    kinds: dict[str, type] = {"step": int, "value": float, "train_seconds": float}
    kinds.update(pending=int, stopped_early=int)
    for group, kind in GROUPS.items():
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            for known in (bool, int, float):
                hint = hints[field.name]
                if hint is known or known in typing.get_args(hint):
                    kinds[f"{group}_{field.name}"] = known
                    break
    return kinds


_KINDS = _field_kinds()


def _kind_of(name: str, values: list[Any]) -> type | None:
    if name in _KINDS:
        return _KINDS[name]
    if name.endswith(("_mean", "_sd")):
        return float
    found = {type(value) for value in values if value is not None}
    return found.pop() if len(found) == 1 else None


def _attempt(
    row: sqlite3.Row, trial_folder: Path | None, examples: Mapping[str, Mapping[str, int]]
) -> AttemptRecord:
    return AttemptRecord(
        number=row["number"],
        outcome=row["outcome"],
        reason=row["reason"],
        folder=trial_folder / str(row["number"]) if trial_folder else None,
        host=row["host"],
        device=row["device"],
        worker=row["worker"],
        worker_version=row["worker_version"],
        numerics=json.loads(row["numerics"] or "{}"),
        begun_at=row["begun_at"],
        ended_at=row["ended_at"],
        train_seconds=row["train_seconds"],
        peak_memory_mib=row["peak_memory_mib"],
        device_memory_mib=row["device_memory_mib"],
        examples=examples,
    )


def _frame(rows: list[Row], columns: list[str] | None = None) -> pandas.DataFrame:
    """Builds a data frame. `columns` are used if there are no rows."""
    try:
        import pandas
    except ImportError as error:
        raise Error(
            "data frames need pandas, which is not installed: pip install pandas; "
            "rows(), history_rows(), table_rows() and best_rows() give dicts without it"
        ) from error
    series: dict[str, Any] = {}
    for name in rows[0] if rows else columns or []:
        values = [row[name] for row in rows]
        kind = _kind_of(name, values)
        if kind is float:
            series[name] = pandas.Series(values, dtype="float64")
        elif kind in (bool, int) and None in values:
            series[name] = pandas.array(values, dtype="boolean" if kind is bool else "Int64")
        elif kind in (bool, int):
            series[name] = pandas.Series(values, dtype="bool" if kind is bool else "int64")
        else:
            series[name] = values
    return pandas.DataFrame(series)
