"""The trial that a training function receives and reports to."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, overload

from .config import Config, config_from_json
from .errors import Stopped, TrialFailed, WorkerError
from .events import EventLog, bounded_reason, number_or_none, plain_scalar

_FORMAT = 1
_SPLITS = ("train", "validation", "test")
# More frequent events would only fill the file: petlab shows the last.
_PROGRESS_SECONDS = 0.2
# The time from one look for petlab's request to stop a trial to the next.
_LOOK_SECONDS = 0.2

_Value = TypeVar("_Value")

State: TypeAlias = "bytes | Callable[[Path], object] | Any"
"""A checkpoint's content: bytes, a function that writes a given file, or a JSON value."""


@dataclass(frozen=True)
class Resume:
    """The checkpoint that an attempt resumes from."""

    attempt: int
    """The number of the attempt that wrote the checkpoint."""
    step: int
    checkpoint: Path


@dataclass(frozen=True)
class TaskFiles:
    """The paths of a task's files; None for splits without a file."""

    layout: Mapping[str, Any]
    """How the files are read: `format`, `text_columns`, `target_column` and more."""
    train: Path | None
    validation: Path | None
    test: Path | None


@dataclass(frozen=True)
class Task:
    """A task's declaration (docs/reference/tasks.md)."""

    name: str
    raw: Mapping[str, Any]
    """All its fields."""
    data_folders: tuple[Path, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their numbers."""
        return tuple(self.raw.get("classes", ()))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics to report."""
        return tuple(self.raw.get("metrics", ()))

    @property
    def select_by(self) -> tuple[str, ...]:
        """The metrics whose mean on validation data selects the best step."""
        return tuple(self.raw.get("select_by", ()))

    def files(self) -> TaskFiles:
        """Searches the task's folder, then each data folder, for the first complete layout.

        Raises TrialFailed with the missing file and the folders that were searched.
        """
        task_folder = self.raw.get("folder")
        folders = ([Path(task_folder)] if task_folder else []) + list(self.data_folders)
        missing: list[list[str]] = []
        for layout in self.raw.get("layouts", ()):
            found: dict[str, Path | None] = dict.fromkeys(_SPLITS)
            missing_files = []
            for part in _SPLITS:
                name = layout.get(part, "")
                if not name:
                    continue
                found[part] = next((f / name for f in folders if (f / name).is_file()), None)
                if found[part] is None:
                    missing_files.append(name)
            if not missing_files:
                return TaskFiles(layout, found["train"], found["validation"], found["test"])
            missing.append(missing_files)
        first = min(missing, key=len)[0] if missing else "a layout of its files"
        searched = ", ".join(map(str, folders)) or "(none are set)"
        raise TrialFailed(
            f"task {self.name}: {first} is in none of the folders {searched} "
            "(PETLAB_DATA names another folder)"
        )


def _read_trial_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise WorkerError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WorkerError(f"{file}: found no JSON, expected a trial: {error}") from error
    if not isinstance(found, dict):
        raise WorkerError(f"{file}: is {found!r:.40}, must be an object")
    if found.get("v") != _FORMAT:
        raise WorkerError(f"{file}: v is {found.get('v')!r}, must be {_FORMAT}")
    for key, kind, wanted in (
        ("trial", str, "a text"),
        ("attempt", int, "a whole number"),
        ("tasks", list, "a list"),
        ("backbone_folder", str, "a folder"),
        ("data_folders", list, "a list of folders"),
    ):
        if key in ("tasks", "backbone_folder") and key not in found:
            continue  # written by hand, or a trial without a backbone
        if not isinstance(found.get(key), kind):
            raise WorkerError(f"{file}: {key} is {found.get(key)!r}, must be {wanted}")
    return found


class Trial:
    """The trial that a worker trains: its configuration, and methods to report results.

    Created by Worker, which writes `started` before it calls the training function.
    """

    def __init__(self, folder: Path, stop_asked: Callable[[], bool]) -> None:
        """Opens the attempt's events. load() reads the trial."""
        self.folder = folder
        """The attempt's directory."""
        self._stop_asked = stop_asked
        self._events = EventLog(folder / "events.jsonl")
        self._step: int | None = None
        self._checkpoints: list[Path] = []
        self._began = time.monotonic()
        self._progress_at = float("-inf")
        self._looked_at = float("-inf")
        self._told_to_stop = False
        self._losses: list[float | None] = []
        self._progress: dict[str, Any] | None = None
        self._provenance: Callable[[], dict[str, Any]] = dict
        self._said: dict[str, Any] = {}
        self.device_failed = False
        """True if the process must end without training another trial."""

    def load(self) -> None:
        """Reads trial.json. Raises WorkerError with the file and the field."""
        file = self.folder / "trial.json"
        found = _read_trial_json(file)
        self.json: Mapping[str, Any] = found
        """The whole of trial.json."""
        try:
            self.config: Config = config_from_json(found.get("config"))
        except WorkerError as error:
            raise WorkerError(f"{file}: {error}") from None
        self.trial_id: str = found["trial"]
        self.attempt: int = found["attempt"]
        folder = found.get("backbone_folder")
        self.backbone_folder: Path | None = None if folder is None else Path(folder)
        """None: the trial has no backbone."""
        self.data_folders = tuple(Path(folder) for folder in found["data_folders"])
        tasks = found.get("tasks", [{"name": name} for name in self.config.tasks])
        self.tasks = tuple(Task(task["name"], task, self.data_folders) for task in tasks)
        self.threads: int = found.get("threads", 1)
        self.device: str = found.get("device", "cpu")
        """`cpu`, `cuda` or `rocm`. The worker sees only its own GPU."""
        self.device_memory_mib: int | None = found.get("device_memory_mib")
        """MiB of GPU memory reserved for this worker, not enforced; 0: unknown; None: no GPU."""
        self.resume: Resume | None = None
        """The checkpoint to resume from; None in a fresh attempt."""
        if (resume := found.get("resume")) is not None:
            self.resume = Resume(
                resume["attempt"], resume["step"], self.folder / resume["checkpoint"]
            )
            self._step = self.resume.step

    @property
    def user(self) -> Mapping[str, Any]:
        """The sweep file's group of free fields, such as `user: {steps: 100}`."""
        return self.config.user

    @property
    def stopping(self) -> bool:
        """True if petlab asked to stop: write a checkpoint at the end of this step.

        Trial.checkpoint then does not return, so a loop only needs `if trial.stopping or step % 100
        == 0: trial.checkpoint(step, state)`. petlab may stop the worker, or this trial alone: the
        worker then trains the next one.
        """
        now = time.monotonic()
        if not self._told_to_stop and now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._told_to_stop = (self.folder / "stop").exists()
        return self._told_to_stop or self._stop_asked()

    @property
    def is_over(self) -> bool:
        """True once finish or fail was called, or the trial was stopped."""
        return self._events.is_over

    def stop_if_asked(self) -> None:
        """Ends the attempt without a checkpoint if petlab asked to stop.

        For loops that cannot write a checkpoint here. The trial resumes from its last one.
        """
        if self.stopping:
            raise Stopped

    def log(self, *words: object) -> None:
        """Writes a line to the attempt's log.txt. Printed output goes there too."""
        print(*words, flush=True)

    def started(
        self,
        worker: str,
        version: str,
        numerics: Mapping[str, Any],
        provenance: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """Writes the first event. Called by Worker. finish() calls `provenance` again."""
        fields: dict[str, Any] = {"worker": worker, "version": version, "numerics": dict(numerics)}
        self._provenance = provenance
        self._said = provenance()
        if self._said:
            fields["provenance"] = self._said
        digests = getattr(self, "json", {}).get("digests")
        if digests:
            fields["digests"] = digests
        self._events.write("started", pid=os.getpid(), **fields)

    def progress(
        self,
        step: SupportsIndex,
        of: SupportsIndex,
        loss: SupportsFloat | None = None,
        *,
        device_memory_mib: SupportsFloat | None = None,
    ) -> None:
        """Reports that `step` of `of` optimizer steps are done; `loss` is the last step's.

        Call it after each step: it writes a few lines per second, with the mean loss since the
        last. `device_memory_mib` is the process's peak GPU memory since the trial began.
        """
        self._step = operator.index(step)
        self._losses.append(number_or_none(loss))
        fields: dict[str, Any] = {"step": self._step, "of": operator.index(of)}
        if device_memory_mib is not None:
            fields["device_memory_mib"] = number_or_none(device_memory_mib)
        self._progress = fields
        now = time.monotonic()
        if now - self._progress_at >= _PROGRESS_SECONDS:
            self._progress_at = now
            self._write_progress()

    def _write_progress(self) -> None:
        if self._progress is None:
            return
        known = [loss for loss in self._losses if loss is not None]
        # A missing or infinite loss makes the mean undefined.
        whole = len(known) == len(self._losses)
        mean = number_or_none(sum(known) / len(known)) if whole else None
        fields, self._progress = self._progress, None
        self._losses.clear()
        self._events.write(
            "progress", step=fields.pop("step"), of=fields.pop("of"), loss=mean, **fields
        )

    def metric(
        self,
        name: str,
        value: SupportsFloat | None,
        *,
        split: str,
        step: SupportsIndex | None = None,
        task: str | None = None,
    ) -> None:
        """Reports a value, which is recorded in the database exactly once.

        A `value` of None, or one that is not finite, is undefined. `split` is `train`, `validation`
        or `test`; report final test scores at the selected step. `step` defaults to that of the
        last progress, `task` to the trial's only one. Raises ValueError without such a default.
        """
        if split not in _SPLITS:
            raise ValueError(f"split is {split!r}, must be train, validation or test")
        self._write_progress()
        self._events.write(
            "metric",
            step=self._step_or(step),
            split=split,
            task=self.config.task if task is None else task,
            name=name,
            value=number_or_none(value),
        )

    def _step_or(self, step: SupportsIndex | None) -> int:
        if step is not None:
            return operator.index(step)
        if self._step is None:
            raise ValueError("step is not given, and no progress was reported yet")
        return self._step

    def checkpoint(self, step: SupportsIndex, state: State) -> None:
        """Writes a checkpoint to resume from. Values reported before it count after a resume.

        `state` is bytes, a function that writes the file at a given path (`lambda file:
        torch.save(everything, file)`), or a JSON value, in which scalars of NumPy and
        PyTorch are numbers. The file is complete, synced and renamed
        before its event is written. The last two checkpoints are kept: petlab falls back to the
        earlier one if a trial that resumed from the last crashes. Raises Stopped afterwards if
        petlab asked to stop.
        """
        at = operator.index(step)
        self._step = at
        self._write_progress()
        folder = self.folder / "checkpoint"
        folder.mkdir(exist_ok=True)
        file = folder / f"step-{at}.ckpt"
        temporary = folder / f".{file.name}.new-{os.getpid()}"
        try:
            self._write_state(temporary, state)
            _sync(temporary)
            temporary.rename(file)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync(folder)
        self._events.write("checkpoint", step=at, path=f"checkpoint/{file.name}")
        self._checkpoints = [one for one in self._checkpoints if one != file] + [file]
        if len(self._checkpoints) > 2:
            self._checkpoints.pop(0).unlink(missing_ok=True)
        self.stop_if_asked()

    @staticmethod
    def _write_state(file: Path, state: State) -> None:
        if callable(state):
            state(file)
            mode = file.stat().st_mode if file.exists() else 0
            if not stat.S_ISREG(mode):
                raise WorkerError(f"{file}: the function of the checkpoint wrote no such file")
        elif isinstance(state, (bytes, bytearray, memoryview)):
            file.write_bytes(state)
        else:
            try:
                text = json.dumps(state, default=plain_scalar)
            except (TypeError, ValueError) as error:
                place, found = _not_json(state, "state")
                raise WorkerError(
                    f"the checkpoint's {place} is {found}, which JSON cannot hold ({error}): "
                    "convert it (`.tolist()` of an array), or pass a function that writes the "
                    "file: "
                    "trial.checkpoint(step, lambda file: torch.save(everything, file))"
                ) from error
            file.write_text(text, encoding="utf-8")

    @overload
    def restore(self) -> Any: ...
    @overload
    def restore(self, read: Callable[[Path], _Value]) -> _Value | None: ...
    def restore(self, read: Callable[[Path], Any] | None = None) -> Any:
        """Returns the state in the checkpoint that this attempt resumes; None in a fresh attempt.

        `read` receives its path (`torch.load`, `Path.read_bytes`). Without it, the file is read as
        JSON, as written by checkpoint(). JSON turns tuples into lists.
        """
        if self.resume is None:
            return None
        if read is not None:
            return read(self.resume.checkpoint)
        return json.loads(self.resume.checkpoint.read_text(encoding="utf-8"))

    def finish(
        self,
        step: SupportsIndex | None = None,
        *,
        artifact: str | os.PathLike[str] | None = None,
        bls_bits: SupportsFloat | None = None,
        stored_bits: SupportsIndex | None = None,
        device_memory_mib: SupportsFloat | None = None,
        train_seconds: SupportsFloat | None = None,
        examples: Mapping[str, Mapping[str, SupportsIndex]] | None = None,
    ) -> None:
        """Ends the trial with a result. `artifact` is the module's file in the attempt's folder.

        `train_seconds` defaults to the time since this attempt began; peak memory is reported
        automatically. `examples` has the numbers of training and scored examples by task and split:
        `{"cola": {"train": 8551, "validation": 521, "test": 522}}`. Raises ValueError if the
        artifact is missing or outside the folder, and for a task that the trial does not have.
        """
        self._write_progress()
        fields: dict[str, Any] = {"step": self._step_or(step)}
        if artifact is not None:
            fields["artifact"] = self._synced_artifact(Path(artifact))
        if bls_bits is not None:
            fields["bls_bits"] = _not_negative("bls_bits", bls_bits)
        if stored_bits is not None:
            fields["stored_bits"] = int(_not_negative("stored_bits", operator.index(stored_bits)))
        if (peak := peak_memory_mib()) is not None:
            fields["peak_memory_mib"] = peak
        if device_memory_mib is not None:
            fields["device_memory_mib"] = _not_negative("device_memory_mib", device_memory_mib)
        seconds = time.monotonic() - self._began if train_seconds is None else train_seconds
        fields["train_seconds"] = _not_negative("train_seconds", seconds)
        if examples:
            fields["examples"] = self._numbers(examples)
        # Some packages are imported only when they are needed.
        if (said := self._provenance()) != self._said:
            fields["provenance"] = said
        self._events.write("finished", **fields)
        # A finished trial is never resumed.
        for file in self._checkpoints:
            file.unlink(missing_ok=True)

    def _numbers(
        self, examples: Mapping[str, Mapping[str, SupportsIndex]]
    ) -> dict[str, dict[str, int]]:
        for task, splits in examples.items():
            if task not in self.config.tasks:
                known = ", ".join(self.config.tasks)
                raise ValueError(f"examples has task {task!r}, must be of the trial's: {known}")
            for split, number in splits.items():
                if split not in _SPLITS:
                    raise ValueError(
                        f"examples of {task} has split {split!r}, must be train, validation or test"
                    )
                if operator.index(number) < 0:
                    raise ValueError(
                        f"examples of {task} {split} is {number}, must be a whole number >= 0"
                    )
        return {
            task: {split: operator.index(number) for split, number in splits.items()}
            for task, splits in examples.items()
        }

    def _synced_artifact(self, named: Path) -> str:
        file = self.folder / named
        try:
            inside = file.resolve().relative_to(self.folder.resolve())
        except ValueError:
            raise ValueError(f"artifact is {named}, must lie in {self.folder}") from None
        if not file.is_file():
            raise ValueError(f"artifact is {named}, which is no file in {self.folder}")
        _sync(file)
        _sync(file.parent)
        return str(PurePosixPath(inside))

    def fail(self, reason: str, kind: str = "error") -> None:
        """Ends the trial without a result.

        `kind` is `error`, `out_of_memory`, `not_finite`, `device` or `gang`. After `device`, the
        worker's process exits without training another trial, since its GPU, or its context on it,
        is unusable. After `gang`, a failure of trials that were trained together, petlab retries
        each alone. An exception that leaves the training function also fails the trial.
        """
        if kind not in ("error", "out_of_memory", "not_finite", "device", "gang"):
            raise ValueError(
                f"kind is {kind!r}, must be error, out_of_memory, not_finite, device or gang"
            )
        text = bounded_reason(" ".join(str(reason).split()) or "no reason was given")
        print(f"failed: {text}", file=sys.stderr, flush=True)
        self._events.write("failed", reason=text, kind=kind)
        self.device_failed = self.device_failed or kind == "device"

    def stopped(self) -> None:
        """Ends an attempt that petlab asked to stop alone. Called by Worker."""
        print(f"stopped at step {self._step or 0}", flush=True)
        self._events.write("stopped", step=self._step or 0)

    def close(self) -> None:
        """Called by Worker after the trial."""
        self._events.close()


def _not_negative(name: str, value: SupportsFloat) -> float:
    number = number_or_none(value)
    if number is None or number < 0:
        raise ValueError(f"{name} is {value}, must be a number >= 0")
    return number


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reset_peak_memory() -> None:
    """Resets the kernel's record of peak memory, so that each trial reports its own peak."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mib() -> float | None:
    """The peak of this process's memory; None if the system does not record it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def _not_json(value: Any, place: str) -> tuple[str, str]:
    """The place (`state['rates'][2]`) and type of the first value that JSON cannot represent."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, (str, int, float, bool, type(None))):
                return f"{place} has a key, {key!r:.60}, that", f"a {_type_name(key)}"
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    for key, item in items:
        try:
            json.dumps(item, default=plain_scalar)
        except (TypeError, ValueError):
            return _not_json(item, f"{place}[{key!r:.60}]")
    return place, f"a {_type_name(value)}"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
