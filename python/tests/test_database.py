from __future__ import annotations

import builtins
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from conftest import PACKAGE, World

import petlab


@pytest.fixture
def db(swept: World) -> petlab.Database:
    return petlab.open(swept.root / "sweep.db", program=swept.petlab_program)


def program_rows(swept: World, *words: str) -> list[dict[str, Any]]:
    """The program's answer."""
    out, _ = swept.petlab(*words, "--db", "sweep.db", "--format", "jsonl")
    return [json.loads(line) for line in out.splitlines()]


def test_a_row_is_a_trial_and_a_metric(db: petlab.Database) -> None:
    frame = db.results()
    assert list(frame.columns[:3]) == ["trial_id", "variant", "seed"]
    assert list(frame.columns[-5:]) == ["task", "split", "metric", "step", "value"]
    assert len(frame) == 24
    assert frame.trial_id.nunique() == 24
    assert set(frame.split) == {"test"} and set(frame.metric) == {"score"}
    # Only fields that differ between trials are columns.
    assert {"module_kind", "module_share", "module_rank", "user.steps"} <= set(frame.columns)
    assert not {"backbone", "training_epochs", "user.metrics"} & set(frame.columns)
    assert frame.step.dtype == "int64" and frame.value.dtype == "float64"
    assert frame.module_share.dtype == "bool" and frame.module_rank.dtype == "Int64"
    # Variants of both sweeps are in one row.
    assert set(frame.variant) == {"vanilla, plain", "shared", "masked", "low_rank"}


def test_values_match_the_program(swept: World, db: petlab.Database) -> None:
    for split in ("test", "validation", "train"):
        expected = {
            (row["trial_id"], metric): row[f"{metric}_mean"]
            for row in program_rows(swept, "results", "--by", "trial_id,task", "--split", split)
            for metric in ("score", "accuracy", "loss", "extra_1")
            if f"{metric}_mean" in row
        }
        rows = db.rows(split=split)
        assert {(row["trial_id"], row["metric"]): row["value"] for row in rows} == expected
        assert len(rows) == len(expected) > 0


@pytest.mark.parametrize(
    "where",
    [
        "task=cola",
        "task = cola , rte and seed=42..43",
        "module_kind=lora",
        "module.share=true and module.mask=none",
        "module_share!=true",
        "module_rank=null",
        "module_rank!=null, seed=44",
        "module_rank>=8",
        "training_learning_rate<=1e-3 AND seed!=42",
        "variant=vanilla",
        "variant!=vanilla",
        "sweep=again",
        "sweep=again and variant='plain'",
        "user.steps=6",
        'user.steps>6 and task="cola"',
        "bls_bits>1000",
        "launcher=local and attempt=1",
        "metric=score",
    ],
)
def test_conditions_match_the_program(swept: World, db: petlab.Database, where: str) -> None:
    expected = program_rows(swept, "results", "--by", "trial_id,task", "--where", where)
    rows = db.rows(where)
    assert {row["trial_id"] for row in rows} == {row["trial_id"] for row in expected}
    assert rows


@pytest.mark.parametrize(
    "where",
    [
        "task=colla",
        "sed=42",
        "seed=x",
        "seed",
        "seed=",
        "seed<1,2",
        "seed=1 or seed=2",
        "task='c",
        "seed=1..99999",
        "module_share=maybe",
        "split=test",
        "module_rank<null",
        "and",
        "seed=42 x",
    ],
)
def test_the_package_refuses_what_the_program_refuses(
    swept: World, db: petlab.Database, where: str
) -> None:
    swept.petlab("results", "--db", "sweep.db", "--where", where, code=2)
    with pytest.raises(petlab.QuestionError):
        db.rows(where)


def test_conditions_as_a_mapping(db: petlab.Database) -> None:
    as_text = db.rows("task=cola and seed=42,43 and module_share=true")
    assert db.rows({"task": "cola", "seed": [42, 43], "module.share": True}) == as_text
    assert db.rows({"seed": range(42, 44), "task": ["cola"], "module_share": [True]}) == as_text
    assert db.rows({"module_rank": None, "seed": 42}) == db.rows("module_rank=null and seed=42")
    assert db.rows({"seed": "42"}) == db.rows("seed=42")
    assert db.rows({"variant": ["it's", "vanilla"], "task": "cola"}) == db.rows(
        "variant=vanilla and task=cola"
    )
    with pytest.raises(petlab.QuestionError, match="seed: found no values, expected at least one"):
        db.rows({"seed": []})
    with pytest.raises(petlab.QuestionError, match="seed: found b'42', expected a text"):
        db.rows({"seed": b"42"})


def test_fields_metric_and_steps_are_chosen(db: petlab.Database) -> None:
    frame = db.results("task=cola", by="module.kind,seed,user.steps", metric="score")
    assert list(frame.columns) == [
        "trial_id", "module_kind", "seed", "user.steps", "task", "split", "metric", "step", "value",
    ]  # fmt: skip
    every = db.results("seed=42", metric="loss", split="train", steps="all")
    assert len(every) == 2 * (3 * 8 + 6)
    last = db.results("seed=42", metric="loss", split="train")
    assert set(last.step) == {6, 8} and len(last) == 8
    with pytest.raises(petlab.QuestionError, match='unknown metric "scor"; did you mean "score"'):
        db.results(metric="scor")
    with pytest.raises(petlab.QuestionError, match='unknown field "rank"; did you mean "module_'):
        db.results(by="rank")
    with pytest.raises(petlab.QuestionError, match="no trial has task colla; did you mean cola"):
        db.results("task=colla")
    assert db.results("seed=7").empty


def test_table_and_best_match_the_program(swept: World, db: petlab.Database) -> None:
    table = db.table(by="variant,task", where={"seed": [42, 43]}, metric="score")
    assert list(table.columns) == [
        "variant", "task", "score_mean", "score_sd", "score_n", "pending",
        "stopped_early",
    ]  # fmt: skip
    assert set(table.score_n) == {2}
    rows = db.rows("variant=shared and task=cola and seed=42,43")
    mean = math.fsum(row["value"] for row in rows) / 2
    shared = table[(table.variant == "shared") & (table.task == "cola")]
    assert shared.score_mean.item() == pytest.approx(mean, rel=1e-15)
    pivoted = db.table(by="variant", pivot="task")
    assert {"cola score_mean", "rte score_mean"} <= set(pivoted.columns)
    with pytest.warns(petlab.NoteWarning, match="has no artifact"):
        best = db.best(metric="accuracy")
    assert list(best.task) == ["cola", "rte"]
    for row in best.itertuples():
        scores = db.results(f"task={row.task}", metric="accuracy", split="validation")
        assert row.validation == scores.value.max()
    with pytest.raises(petlab.QuestionError, match="unknown field"):
        db.table(by="varian")
    with pytest.raises(petlab.ProgramError, match=r"petlab is not found as './none'"):
        petlab.open(db.file, program="./none").table()


def test_notes_of_the_program_are_warnings(db: petlab.Database) -> None:
    with pytest.warns(petlab.NoteWarning, match="over") as caught:
        db.table(by="seed,task")
        db.table_rows(by="seed,task")
    assert {warning.filename for warning in caught} == {__file__}


def test_history_follows_steps(db: petlab.Database, swept: World) -> None:
    trial = db.rows("variant=shared")[0]["trial_id"]
    frame = db.history(trial[:8], metric="loss")
    assert list(frame.step) == list(range(1, 9))
    expected = program_rows(swept, "history", trial, "--metric", "loss")
    assert list(frame.value) == [row["value"] for row in expected]
    assert set(db.history(trial).metric) == {"loss", "extra_1", "accuracy", "score"}
    losses = db.history_rows(trial, split="progress")
    assert losses == [
        row | {"metric": "loss"}
        for row in program_rows(swept, "history", trial, "--split", "progress")
        if row.pop("name") == "loss"
    ]
    assert len(losses) > 0
    with pytest.raises(petlab.QuestionError, match='unknown metric "los"; did you mean "loss"'):
        db.history(trial, metric="los")
    with pytest.raises(petlab.QuestionError, match="trial zzz is not in"):
        db.history("zzz")
    with pytest.raises(petlab.QuestionError, match="is a prefix of several trial ids"):
        db.history("")


def test_a_trial_has_all_its_details(db: petlab.Database, swept: World) -> None:
    row = db.rows("variant=plain and task=rte and seed=43")[0]
    trial = db.trial(row["trial_id"])
    assert trial.trial_id == row["trial_id"]
    assert trial.sweeps == (("again", "plain"), ("scripted", "vanilla"))
    assert trial.config.task == "rte" and trial.config.seed == 43
    assert trial.config.module.share is False and trial.config.module.rank is None
    assert trial.config.user == {
        "steps": 8, "metrics": 2, "validate_every": 2, "checkpoint_every": 4,
    }  # fmt: skip
    (attempt,) = trial.attempts
    assert attempt == trial.result and attempt.outcome == "finished"
    assert attempt.worker == "scripted-worker" and attempt.numerics == {"version": "1"}
    assert attempt.folder == swept.root.resolve() / "sweep.runs" / trial.trial_id / "1"
    assert (attempt.folder / "events.jsonl").is_file()
    assert attempt.examples == {"rte": {"train": 90, "validation": 12}}
    assert trial.artifact is None
    assert {score["metric"] for score in trial.scores} == {"score", "accuracy", "loss", "extra_1"}


def test_running_trials_are_read_too(world: World) -> None:
    world.write(
        "sweep.yaml",
        "sweep: gated\nbase: {backbone: ./backbone, task: cola, module.kind: adapter}\n"
        f"variants:\n  one: {{user: {{steps: 4, checkpoint_every: 2, gate: {world.root}/gate}}}}\n",
    )
    worker = world.programs / "scripted-worker"
    process = world.start(
        [world.petlab_program, "run", "sweep.yaml", "--slots", "1", "--worker", worker]
    )
    try:
        rows: list[dict[str, Any]] = []
        while len(rows) < 2:
            assert process.poll() is None
            if (world.root / "sweep.db").exists():
                db = petlab.open(world.root / "sweep.db")
                ids = db.connect().execute("SELECT trial_id FROM trials").fetchall()
                rows = db.history_rows(ids[0][0]) if ids else []
        assert [row["step"] for row in rows] == [1, 2]
        assert db.rows(split=["train", "test"]) == []
        assert db.trial(ids[0][0]).result is None
        world.write("gate", "")
        assert process.wait(60) == 0
        assert [row["metric"] for row in db.rows(split=["train", "test"])] == ["score", "loss"]
    finally:
        process.kill()
        process.communicate()


def test_nothing_can_be_written(db: petlab.Database) -> None:
    connection = db.connect()
    for sql in ("DELETE FROM trials", "CREATE TABLE t (a)", "PRAGMA user_version = 7"):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute(sql)
    connection.close()
    frame = pandas.read_sql("SELECT count(*) AS n FROM sweep_results", db.connect())
    assert frame.n.item() > 0


def _set(file: Path, sql: str) -> None:
    connection = sqlite3.connect(file)
    connection.execute(sql)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: file.unlink(), "there is no such file"),
        (lambda file: (file.unlink(), file.mkdir()), "it is a folder"),
        (lambda file: file.write_bytes(b""), "the file is empty"),
        (lambda file: file.write_bytes(b"no database" * 99), "file is not a database"),
        (lambda file: _set(file, "PRAGMA application_id = 7"), "of another program"),
        (lambda file: _set(file, "PRAGMA user_version = 9"), "9, this package reads 3; use a"),
        (lambda file: _set(file, "PRAGMA user_version = 0"), "petlab db rebuild"),
    ],
)  # fmt: skip
def test_other_files_are_refused_with_their_name(
    copied: Path, make: Callable[[Path], Any], message: str
) -> None:
    make(copied)
    with pytest.raises(petlab.DatabaseError, match=message) as caught:
        petlab.open(copied)
    assert str(copied) in str(caught.value)


def test_a_database_of_version_1_is_read_through_an_updated_copy(tmp_path: Path) -> None:
    schemas = Path(__file__).parents[2] / "tests/results/schemas"
    for name in ("first", "last_of_version_1"):
        file = tmp_path / f"{name}.db"
        connection = sqlite3.connect(file)
        connection.executescript((schemas / f"{name}.sql").read_text())
        connection.close()
        before = file.read_bytes()
        with pytest.warns(petlab.NoteWarning, match="petlab db update --db") as warned:
            db = petlab.open(file)
            trial = db.trial("t1")
            rows = db.rows(split="train")
            own = db.connect()
        assert all(Path(one.filename) == Path(__file__) for one in warned)
        assert (trial.bls_bits, len(trial.attempts), len(trial.scores)) == (990.0, 2, 2)
        assert [row["value"] for row in rows] == [0.125]
        assert own.execute("SELECT count(*) FROM sweep_scores").fetchone()[0] == 2
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            own.execute("DELETE FROM trials")
        own.close()
        assert file.read_bytes() == before
        assert [one.name for one in tmp_path.glob(f"{name}.*")] == [file.name]


def test_a_folder_that_cannot_be_written(copied: Path, monkeypatch: Any) -> None:
    # root can write to every folder, so the check is that no file is created next to the database.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    before = sorted(copied.parent.iterdir())
    db = petlab.open(copied)
    connection = db.connect()
    assert connection.execute("SELECT count(*) FROM results").fetchone()[0] > 0
    assert sorted(copied.parent.iterdir()) == before
    connection.close()


def test_a_writer_that_starts_during_a_read_is_noticed(copied: Path, monkeypatch: Any) -> None:
    from petlab.reading import reading

    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    db = petlab.open(copied)
    writer = sqlite3.connect(copied)
    writer.execute("PRAGMA journal_mode = DELETE")

    def noticed() -> Any:
        return pytest.raises(petlab.DatabaseError, match="written while it was read")

    with noticed(), reading(copied) as connection:
        connection.execute("SELECT count(*) FROM trials").fetchone()
        writer.execute("UPDATE trials SET bls_bits = 1")
        writer.commit()
    # An error caused by the writer must not be reported as damage.
    with noticed(), reading(copied):
        writer.execute("UPDATE trials SET bls_bits = 2")
        writer.commit()
        raise sqlite3.DatabaseError("database disk image is malformed")
    assert len(db.rows()) == 24
    # A log next to the file shows that there is a writer, so the next read uses its locks.
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE trials SET stored_bits = 77")
    writer.commit()
    with reading(copied) as connection:
        found = connection.execute("SELECT DISTINCT stored_bits FROM trials").fetchall()
        assert [tuple(row) for row in found] == [(77,)]
        writer.execute("UPDATE trials SET stored_bits = 78")
        writer.commit()
        found = connection.execute("SELECT DISTINCT stored_bits FROM trials").fetchall()
        assert [tuple(row) for row in found] == [(77,)]
    writer.close()


def test_the_transaction_of_a_killed_process_is_rolled_back(copied: Path) -> None:
    killed = f"""
import os, sqlite3
database = sqlite3.connect({str(copied)!r})
database.execute("PRAGMA journal_mode = DELETE")
database.execute("PRAGMA cache_size = 1")
database.execute("UPDATE trials SET bls_bits = 4711")
database.execute("CREATE TABLE large AS SELECT randomblob(1000000)")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", killed], check=True)
    journal = Path(f"{copied}-journal")
    assert journal.stat().st_size > 0
    connection = petlab.open(copied).connect()
    changed = connection.execute("SELECT count(*) FROM trials WHERE bls_bits = 4711").fetchone()
    connection.close()
    assert changed[0] == 0
    assert not journal.exists()


def test_a_name_with_odd_characters(copied: Path) -> None:
    odd = copied.with_name("a?b%20#'c.db")
    shutil.move(copied, odd)
    assert len(petlab.open(odd).rows()) == 24


def test_without_pandas_dicts_are_left(db: petlab.Database, monkeypatch: Any) -> None:
    real = builtins.__import__

    def without(name: str, *words: Any, **named: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *words, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(petlab.Error, match="pip install pandas"):
        db.results()
    assert len(db.rows()) == 24
    assert db.table_rows(by="variant,task")


def test_importing_is_quick_and_brings_no_pandas() -> None:
    code = "import sys, petlab; assert 'pandas' not in sys.modules and 'numpy' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_defaults_match_the_program(world: World) -> None:
    """Compares the package's defaults with a configuration that has only defaults."""
    world.write(
        "sweep.yaml",
        "sweep: plain\nbase: {backbone: ./backbone, task: cola}\nvariants: {one: {seed: 42}}\n",
    )
    out, _ = world.petlab("plan", "sweep.yaml", "--json")
    config = json.loads(out)["trials"][0]["config"]
    assert petlab.TrainingConfig(**config["training"]) == petlab.TrainingConfig()
    assert petlab.DataConfig(**config["data"]) == petlab.DataConfig()
    assert petlab.ModuleConfig(**config["module"]).kind == petlab.ModuleConfig().kind
