from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, SupportsIndex

import numpy
import pytest
from conftest import PACKAGE, World

import petlab
from petlab.output import LogText

LINE = Path(__file__).with_name("line.py")
SWEEP = """sweep: line
base: {backbone: ./backbone, task: cola, module.kind: adapter}
variants:
"""
METRICS = "SELECT trial_id, step, split, name, value FROM results ORDER BY 1, 2, 3, 4"


def write_sweep(world: World, *users: dict[str, Any]) -> None:
    rows = [f"  v{seed}: {{seed: {seed}, user: {json.dumps(user)}}}\n"
            for seed, user in enumerate(users, 1)]  # fmt: skip
    world.write("sweep.yaml", SWEEP + "".join(rows))


def query(world: World, sql: str, database: str = "sweep.db") -> list[dict[str, Any]]:
    out, _ = world.petlab("query", sql, "--db", database, "--format", "json")
    return json.loads(out)  # type: ignore[no-any-return]


def attempt(folder: Path, **changes: Any) -> Path:
    """Creates an attempt's directory as petlab does."""
    folder.mkdir(parents=True)
    trial = {
        "v": 1, "trial": "ab12", "attempt": 1,
        "config": {"backbone": "tiny", "task": "cola", "seed": 7,
                   "module": {"kind": "lora", "rank": 4, "alpha": 8, "new_field": 1},
                   "training": {"learning_rate": 1}, "data": {}, "user": {"steps": 20}},
        "tasks": [{"name": "cola"}], "backbone_folder": "/tiny", "data_folders": ["/data"],
        "digests": {"backbone": "sha256:1", "data": {"cola": "sha256:2"}},
        "threads": 2, "device": "cpu", **changes,
    }  # fmt: skip
    (folder / "trial.json").write_text(json.dumps(trial))
    return folder


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def run_line(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(LINE), *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_a_worker_describes_itself() -> None:
    done = run_line("--describe")
    assert done.returncode == 0
    described = json.loads(done.stdout)
    provenance = described.pop("provenance")
    assert described == {
        "name": "line.py", "version": "2", "protocol": 1, "numerics": "3", "stops_trials": True
    }  # fmt: skip
    assert provenance["python"] == platform.python_version() and provenance["modules"] == {}
    assert provenance["packages"]["petlab"] == petlab.__version__
    done = run_line()
    assert done.returncode == 2 and "petlab run SWEEP --worker" in done.stderr
    assert run_line("--deskribe").returncode == 2


def test_a_trial_from_started_to_finished(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "ab12/1")
    done = run_line(folder)
    assert done.returncode == 0, done
    found = events(folder)
    assert [event["seq"] for event in found] == list(range(len(found)))
    assert {event["v"] for event in found} == {1}
    first, *_, test, last = found
    assert first["type"] == "started" and first["worker"] == "line.py"
    assert first["numerics"] == {"version": "3", "kind": "test"}
    assert first["digests"] == {"backbone": "sha256:1", "data": {"cola": "sha256:2"}}
    assert (test["split"], test["name"], test["task"], test["step"]) == (
        "test",
        "slope",
        "cola",
        20,
    )
    assert last["type"] == "finished" and last["artifact"] == "line.txt" and last["step"] == 20
    assert last["stored_bits"] == 64 and last["train_seconds"] >= 0 and last["peak_memory_mib"] > 1
    assert [e["path"] for e in found if e["type"] == "checkpoint"] == ["checkpoint/step-10.ckpt"]
    assert list((folder / "checkpoint").iterdir()) == []
    # An attempt cannot be run twice.
    again = run_line(folder)
    assert again.returncode == 1 and "already contains events" in again.stderr


def test_the_configuration_has_types(tmp_path: Path) -> None:
    trial = petlab.Trial(attempt(tmp_path / "1"), lambda: False)
    trial.load()
    assert trial.config.module == petlab.ModuleConfig(kind="lora", rank=4, alpha=8.0)
    assert trial.config.training.learning_rate == 1.0
    assert isinstance(trial.config.training.learning_rate, float)
    assert trial.config.training.epochs == 20
    assert trial.config.raw["module"]["new_field"] == 1
    assert (trial.threads, trial.device, trial.resume) == (2, "cpu", None)
    with pytest.raises(petlab.TrialFailed, match="task cola: a layout of its files is in none of"):
        trial.tasks[0].files()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"v": 2}, "v is 2, must be 1"),
        ({"backbone_folder": 3}, "backbone_folder is 3, must be a folder"),
        ({"config": {"backbone": "b", "task": "t", "seed": "7"}},
         "config.seed is '7', must be a whole number"),
        ({"config": {"backbone": "b", "task": "t", "seed": 7, "training": {"epochs": 1.5}}},
         "config.training.epochs is 1.5, must be a whole number"),
    ],
)  # fmt: skip
def test_an_unreadable_trial_is_a_failure(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    folder = attempt(tmp_path / "1", **changes)
    assert run_line(folder).returncode == 0
    assert [event["type"] for event in events(folder)] == ["started", "failed"]
    assert events(folder)[1]["reason"] == f"{folder}/trial.json: {reason}"


@pytest.mark.parametrize(
    ("raised", "reason", "kind"),
    [
        ("error", "RuntimeError: the script says so", "error"),
        ("memory", "MemoryError", "out_of_memory"),
        ("device memory", "RuntimeError: CUDA error: out of memory", "out_of_memory"),
        pytest.param(
            "long",
            f"RuntimeError: {'a' * 1000}{'ü' * 501} … (3997982 bytes left out) … "
            f"{'ü' * 508}{'z' * 1000}",
            "error",
            id="long",
        ),
        ("not_finite", "the loss is not finite", "not_finite"),
        ("return", "the training function returned without finish or fail", "error"),
    ],
)
def test_exceptions_are_failures(tmp_path: Path, raised: str, reason: str, kind: str) -> None:
    bad, good = attempt(tmp_path / "1"), attempt(tmp_path / "2")
    trial = json.loads((bad / "trial.json").read_text())
    trial["config"]["user"] = {"raise": raised}
    (bad / "trial.json").write_text(json.dumps(trial))
    done = run_line("-", input=f"{bad}\t{good}\n")
    assert done.returncode == 0
    last = events(bad)[-1]
    assert (last["type"], last["reason"], last["kind"]) == ("failed", reason, kind)
    # The same process still trains the next trial.
    assert events(good)[-1]["type"] == "finished"
    assert "trial 2 of this process" in done.stdout


@pytest.mark.parametrize(
    ("raised", "last"),
    [
        ("device", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        ("named device", "the card is gone"),
        ("late device", None),
    ],
)
def test_a_failed_device_ends_the_worker(tmp_path: Path, raised: str, last: str | None) -> None:
    bad, good = attempt(tmp_path / "1"), attempt(tmp_path / "2")
    trial = json.loads((bad / "trial.json").read_text())
    trial["config"]["user"] = {"raise": raised}
    (bad / "trial.json").write_text(json.dumps(trial))
    done = run_line("-", input=f"{bad}\t{good}\n")
    assert done.returncode == 1
    end = events(bad)[-1]
    if last is None:
        assert end["type"] == "finished"
    else:
        assert (end["type"], end["reason"], end["kind"]) == ("failed", last, "device")
    assert not (good / "events.jsonl").exists()
    assert "trial 1 of this process" in done.stdout


def test_an_error_after_the_end_changes_nothing(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = json.loads((folder / "trial.json").read_text())
    trial["config"]["user"] = {"raise": "late"}
    (folder / "trial.json").write_text(json.dumps(trial))
    done = run_line(folder)
    assert done.returncode == 0 and "after the trial's end: RuntimeError" in done.stderr
    assert [event["type"] for event in events(folder)] == ["started", "finished"]


def made(
    folder: Path, stopping: bool = False, numerics: dict[str, Any] | None = None
) -> petlab.Trial:
    trial = petlab.Trial(folder, lambda: stopping)
    trial.load()
    trial.started("test", "1", {"version": "1"} if numerics is None else numerics)
    return trial


def test_numbers_of_every_kind(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder)
    with pytest.raises(ValueError, match="step is not given, and no progress was reported yet"):
        trial.metric("a", 1, split="test")
    trial.metric("a", float("nan"), split="train", step=1)
    trial.metric("b", None, split="train", step=True)
    trial.metric("c", 0.1 + 0.2, split="validation", step=2, task="other")
    for wrong in ({"split": "dev", "step": 1}, {"split": "test", "step": 1, "task": "\ud800"}):
        with pytest.raises(ValueError):
            trial.metric("a", 1, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        trial.metric("a", 1, split="test", step=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must have at most 1048576"):
        trial.metric("x" * (1 << 20), 1, split="test", step=1)
    recorded = [(e["name"], e["value"], e["step"], e["task"]) for e in events(folder)[1:]]
    assert recorded == [("a", None, 1, "cola"), ("b", None, 1, "cola"),
                    ("c", 0.30000000000000004, 2, "other")]  # fmt: skip


def test_progress_is_reported_a_few_times_a_second_and_before_other_events(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder)
    for step in range(1, 1001):
        trial.progress(step, 1000, 2.0 if step % 2 else 4.0)
    trial.checkpoint(1000, b"state")
    trial.progress(1001, 2000, float("inf"))
    trial.finish()
    reports = [event for event in events(folder) if event["type"] == "progress"]
    assert 2 <= len(reports) < 50
    assert reports[0]["step"] == 1 and reports[0]["loss"] == 2.0
    assert reports[-2]["step"] == 1000 and reports[-2]["of"] == 1000 and 2 < reports[-2]["loss"] < 4
    assert reports[-1]["loss"] is None
    assert [event["type"] for event in events(folder)][-3:] == [
        "checkpoint",
        "progress",
        "finished",
    ]


def test_checkpoints_are_whole_and_the_last_two_are_kept(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder)
    trial.checkpoint(1, {"step": 1})
    trial.checkpoint(2, lambda file: file.write_bytes(b"\0\1"))
    kept = ["step-1.ckpt", "step-2.ckpt"]
    assert sorted(file.name for file in (folder / "checkpoint").iterdir()) == kept
    assert (folder / "checkpoint/step-2.ckpt").read_bytes() == b"\0\1"

    def broken(file: Path) -> None:
        file.write_bytes(b"half")
        raise OSError("the disk is full")

    for state, error in ((broken, OSError), (lambda file: None, petlab.WorkerError),
                         ({1, 2}, petlab.WorkerError)):  # fmt: skip
        with pytest.raises(error):
            trial.checkpoint(3, state)
    # Failed checkpoints leave no files, and earlier ones stay.
    assert sorted(file.name for file in (folder / "checkpoint").iterdir()) == kept
    assert [event["step"] for event in events(folder) if event["type"] == "checkpoint"] == [1, 2]
    resumed = attempt(
        tmp_path / "2", attempt=2,
        resume={"attempt": 1, "step": 2, "seq": 2, "checkpoint": "../1/checkpoint/step-2.ckpt"},
    )  # fmt: skip
    later = made(resumed)
    assert later.resume is not None and later.resume.step == 2
    assert later.restore(Path.read_bytes) == b"\0\1"
    trial.checkpoint(4, 0)
    trial.checkpoint(4, 1)
    kept = ["step-2.ckpt", "step-4.ckpt"]
    assert sorted(file.name for file in (folder / "checkpoint").iterdir()) == kept


def test_the_error_about_an_invalid_checkpoint_names_value_and_fix(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder)
    with pytest.raises(petlab.WorkerError) as raised:
        trial.checkpoint(1, {"step": 1, "rates": [0.1, numpy.ones(2)]})
    assert "the checkpoint's state['rates'][1] is a numpy.ndarray, which JSON" in str(raised.value)
    assert "`.tolist()`" in str(raised.value)
    with pytest.raises(petlab.WorkerError) as raised:
        trial.checkpoint(1, {"counts": {numpy.int64(3): 1}})
    assert "state['counts'] has a key, np.int64(3), that is a numpy.int64, which JSON" in str(
        raised.value
    )
    assert list((folder / "checkpoint").iterdir()) == []


def test_scalars_of_numpy_are_numbers_everywhere(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder, numerics={"version": "1", "seed": numpy.int64(4)})
    trial.progress(numpy.int32(1), numpy.int64(3), numpy.float32(0.5))
    trial.metric("accuracy", numpy.float16(0.25), split="test", step=numpy.uint8(1))
    state = {
        "step": numpy.int64(1),
        "rates": (numpy.float32(0.5), numpy.array(2.5)),
        "done": numpy.bool_(False),
    }
    trial.checkpoint(numpy.int64(1), state)
    resume = {"attempt": 1, "step": 1, "seq": 3, "checkpoint": "../1/checkpoint/step-1.ckpt"}
    later = made(attempt(tmp_path / "2", attempt=2, resume=resume))
    assert later.restore() == {"step": 1, "rates": [0.5, 2.5], "done": False}
    trial.finish(stored_bits=numpy.int64(8), train_seconds=numpy.float32(1.5))
    found = {event["type"]: event for event in events(folder)}
    assert found["started"]["numerics"] == {"version": "1", "seed": 4}
    assert (found["progress"]["step"], found["progress"]["loss"]) == (1, 0.5)
    assert found["metric"]["value"] == 0.25
    assert (found["finished"]["stored_bits"], found["finished"]["train_seconds"]) == (8, 1.5)


def test_a_stop_comes_after_the_checkpoint(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder, stopping=True)
    with pytest.raises(petlab.Stopped):
        trial.checkpoint(5, [5])
    assert events(folder)[-1]["type"] == "checkpoint"
    with pytest.raises(petlab.Stopped):
        trial.stop_if_asked()
    assert not issubclass(petlab.Stopped, Exception)


class Whole:
    """A whole number type like those of other libraries."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_artifacts_must_be_inside_the_attempt(tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    trial = made(folder)
    (tmp_path / "out.txt").write_text("x")
    for named in ("../out.txt", tmp_path / "out.txt", "none.txt", "."):
        with pytest.raises(ValueError, match="artifact is"):
            trial.finish(1, artifact=named)
    with pytest.raises(ValueError, match="bls_bits is -1, must be a number >= 0"):
        trial.finish(1, bls_bits=-1)
    for examples, message in (
        ({"rte": {"train": 1}}, "examples has task 'rte', must be of the trial's: cola"),
        (
            {"cola": {"dev": 1}},
            "examples of cola has split 'dev', must be train, validation or test",
        ),
        ({"cola": {"test": -1}}, "examples of cola test is -1, must be a whole number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            trial.finish(1, examples=examples)
    (folder / "module").mkdir()
    (folder / "module/adapter.bin").write_bytes(b"w")
    numbers: dict[str, SupportsIndex] = {"train": Whole(8551), "test": 0}
    trial.finish(1, artifact=folder / "module/adapter.bin", examples={"cola": numbers})
    assert events(folder)[-1]["artifact"] == "module/adapter.bin"
    assert events(folder)[-1]["examples"] == {"cola": {"train": 8551, "test": 0}}
    with pytest.raises(petlab.WorkerError, match="the trial is over, a metric cannot follow"):
        trial.metric("a", 1, split="test", step=1)


def test_a_forked_process_must_not_write(tmp_path: Path) -> None:
    trial = made(attempt(tmp_path / "1"))
    child = os.fork()
    if child == 0:
        try:
            trial.metric("a", 1, split="test", step=1)
        except petlab.WorkerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_sweep_is_trained_with_an_interpreter(world: World) -> None:
    write_sweep(world, {"steps": 40}, {"steps": 40, "rate": 0.2}, {}, {"raise": "error"})
    (world.root / "my worker.py").write_text(LINE.read_text())
    world.sweep("python3 'my worker.py'", code=1)
    rows = query(
        world, "SELECT seed, step, value, artifact FROM results WHERE split = 'test' ORDER BY 1"
    )
    assert [row["step"] for row in rows] == [40, 40, 100]
    assert all(abs(row["value"] - 2) < 0.2 for row in rows)
    assert [(world.root / row["artifact"]).is_file() for row in rows] == [True] * 3
    attempts = query(
        world, "SELECT worker, worker_version, outcome, reason, note FROM attempts ORDER BY 3"
    )
    assert attempts[0] == {
        "worker": "line.py", "worker_version": "2", "outcome": "failed",
        "reason": "RuntimeError: the script says so", "note": None,
    }  # fmt: skip
    assert {row["outcome"] for row in attempts[1:]} == {"finished"}
    # One process trained several trials and kept its state, but each trial has a separate log.
    logs = [file.read_text() for file in world.root.glob("sweep.runs/*/1/log.txt")]
    assert sum("trial 2 of this process" in log for log in logs) >= 1
    assert [log.count(" of this process") for log in logs] == [1] * 4
    assert not any("\x1e" in log for log in logs)
    failed = next(log for log in logs if "Traceback" in log)
    assert "in two lines" in failed
    # The results are not stale, since the numerics version is recorded.
    assert (
        '"trained":0'
        in world.petlab(
            "run", "sweep.yaml", "--worker", "python3 'my worker.py'", "--json", code=1
        )[0]
    )


def test_it_stops_at_a_checkpoint_and_resumes(world: World) -> None:
    write_sweep(world, {"steps": 400, "step_ms": 5, "metrics": True})
    worker = f"python3 {LINE}"
    run = ["run", "sweep.yaml", "--slots", "1", "--worker", worker]
    process = world.start([world.petlab_program, *run])
    deadline = time.monotonic() + 60
    while not list(world.root.glob("sweep.runs/*/1/checkpoint/step-*.ckpt")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert query(world, "SELECT outcome FROM attempts") == [{"outcome": "stopped"}]
    world.sweep(worker)
    (again,) = query(world, "SELECT outcome, resume_step FROM attempts WHERE number = 2")
    assert again["outcome"] == "finished" and again["resume_step"] > 0
    # The curve has the first attempt up to its checkpoint, then the second one.
    losses = petlab.open(world.root / "sweep.db").history_rows(
        query(world, "SELECT trial_id FROM trials")[0]["trial_id"], "loss", "progress"
    )
    assert {row["attempt"] for row in losses} == {1, 2} and losses[-1]["step"] == 400
    assert [row["step"] for row in losses] == sorted({row["step"] for row in losses})
    assert all(row["step"] <= again["resume_step"] for row in losses if row["attempt"] == 1)
    world.sweep(worker, "--db", "whole.db", "--runs", "whole")
    assert query(world, METRICS) == query(world, METRICS, "whole.db")


def test_a_trial_that_is_stopped_alone_leaves_its_worker(world: World) -> None:
    write_sweep(world, {"steps": 400, "step_ms": 20}, {"steps": 20})
    worker = f"python3 {LINE}"
    process = world.start([world.petlab_program, "run", "sweep.yaml", "--slots", "1", "--worker",
                           worker])  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(world.root.glob("sweep.runs/*/1/checkpoint/step-*.ckpt")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    (folder,) = world.root.glob("sweep.runs/*/1/checkpoint")
    trial = folder.parent.parent.name
    world.petlab("cancel", trial)
    process.communicate(timeout=60)
    assert process.returncode == 0
    rows = query(world, "SELECT outcome, worker_pid FROM attempts ORDER BY outcome")
    assert [row["outcome"] for row in rows] == ["cancelled", "finished"]
    assert len({row["worker_pid"] for row in rows}) == 1
    checkpoint, last = events(world.root / "sweep.runs" / trial / "1")[-2:]
    assert (checkpoint["type"], last["type"]) == ("checkpoint", "stopped")
    assert checkpoint["step"] == last["step"]


@pytest.mark.parametrize("pause", [0, 0.002, 0.02, 0.2])
def test_a_signal_that_comes_again_does_not_cost_the_checkpoint(
    tmp_path: Path, pause: float
) -> None:
    # All signals come within one long step, and only they cause a checkpoint.
    user = {"steps": 100, "step_ms": 1000, "checkpoint_every": 1000}
    config = {"backbone": "tiny", "task": "cola", "seed": 7, "module": {"kind": "lora"},
              "training": {}, "data": {}, "user": user}  # fmt: skip
    folder = attempt(tmp_path / "1", config=config)
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    with subprocess.Popen([sys.executable, str(LINE), str(folder)], env=environment) as process:
        log = folder / "events.jsonl"
        while not log.exists() or '"progress"' not in log.read_text():
            assert process.poll() is None
            time.sleep(0.01)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
            time.sleep(pause)
        assert process.wait(30) == 3
    assert events(folder)[-1]["type"] == "checkpoint"


def test_signals_that_were_ignored_at_the_start_stay_ignored(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    folder = attempt(tmp_path / "1")
    words = [sys.executable, str(LINE), "-"]
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, text=True, preexec_fn=ignore
    ) as process:
        assert process.stdin
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        log = folder / "events.jsonl"
        while not log.exists() or '"finished"' not in log.read_text():
            assert process.poll() is None
            time.sleep(0.01)
        for number in (signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
        process.stdin.close()
        assert process.wait(30) == 0


def test_signals_between_trials_and_closed_output(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    words = [sys.executable, str(LINE), "-"]
    # While it waits for a line, it stops on SIGTERM.
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment, **pipes) as process:
        assert process.stdin and process.stdout
        process.stdin.write(f"{attempt(tmp_path / '1')}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"\x1e{tmp_path / '1'}\n"
        assert "trial 1" in process.stdout.readline()
        while events(tmp_path / "1")[-1]["type"] != "finished":
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 3
    # It finishes even if its output is closed.
    pipes["stderr"] = subprocess.STDOUT
    with subprocess.Popen(words, env=environment, **pipes) as process:
        assert process.stdin and process.stdout
        process.stdout.close()
        process.stdin.write(f"{attempt(tmp_path / '2')}\n")
        process.stdin.close()
        assert process.wait(30) == 0
    assert events(tmp_path / "2")[-1]["type"] == "finished"


def logged(*writes: str) -> str:
    """What a log gets of these writes to a terminal."""
    raw = io.BytesIO()
    text = LogText(raw, encoding="utf-8", line_buffering=True)
    for one in writes:
        assert text.write(one) == len(one)
        text.flush()
    text.settle()
    text.flush()
    return raw.getvalue().decode()


@pytest.mark.parametrize(
    ("writes", "log"),
    [
        (["a", "b\n", "c"], "ab\nc"),
        (["a\r\n", "b\n"], "a\nb\n"),
        # A bar that is drawn three times and closed, then text.
        (["\r  0%|", "\r 50%|", "\r100%|", "\n", "done\n"], "100%|\ndone\n"),
        # A bar that ends when the process does.
        (["\r  0%|", "\r 50%|"], " 50%|\n"),
        # Text between two states of a bar, with and without tqdm.write.
        (["\r 50%|", "loss 1\n", "\r100%|", "\n"], "loss 1\n100%|\n"),
        (["\r 50%|", "\r     \r", "loss 1", "\n", "\r 50%|", "\r100%|", "\n"], "loss 1\n100%|\n"),
        # A bar that is removed when it is closed.
        (["\r 50%|", "\r     \r", "x\n"], "x\n"),
        # A bar below another one.
        (
            [
                "\router 0",
                "\n",
                "\rinner 0",
                "\x1b[A",
                "\n",
                "\rinner 1",
                "\x1b[A",
                "\router 1",
                "\n\n",
                "x\n",
            ],
            "outer 1\ninner 1\nx\n",
        ),
    ],
)
def test_a_log_has_the_last_state_of_a_progress_bar(writes: list[str], log: str) -> None:
    assert logged(*writes) == log


def test_many_closed_bars_are_written_in_order() -> None:
    writes = [text for i in range(30) for text in (f"\r{i} 0%", f"\r{i} 100%", "\n")]
    assert logged(*writes).splitlines() == [f"{i} 100%" for i in range(30)]


def test_a_worker_reports_what_it_imports_and_when_it_was_loaded(tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    info = lib / "dotted_name-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dotted-name\nVersion: 1.5\n")
    (info / "top_level.txt").write_text("dotted\n")
    for name in ("dotted", "late", "own"):
        (lib / f"{name}.py").write_text("VALUE = 1\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import pathlib, petlab, own, numpy\n"
        "def train(trial):\n"
        "    import dotted, late\n"
        "    pathlib.Path(own.__file__).write_text('VALUE = 2\\n')\n"
        "    trial.progress(1, 1)\n"
        "    trial.finish()\n"
        "petlab.Worker('script', numerics='1').run(train)\n"
    )
    folders = [attempt(tmp_path / f"ab12/{number}") for number in (1, 2)]
    done = subprocess.run(
        [sys.executable, script, *folders],
        env=os.environ | {"PYTHONPATH": f"{PACKAGE}:{lib}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done
    one = f"sha256:{hashlib.sha256(b'VALUE = 1' + os.linesep.encode()).hexdigest()}"
    started, *_, finished = events(folders[0])
    said = started["provenance"]
    assert said["modules"] == {"own": one}
    assert said["packages"]["numpy"] == numpy.__version__ and "dotted-name" not in said["packages"]
    later = finished["provenance"]
    assert later["modules"] == {"dotted": one, "late": one, "own": one}
    assert later["packages"] == said["packages"] | {"dotted-name": "1.5"}
    started, *_, finished = events(folders[1])
    assert started["provenance"] == later and "provenance" not in finished
