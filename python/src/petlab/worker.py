"""A training script as a worker of petlab (docs/reference/worker-protocol.md, docs/python.md)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeAlias

from .errors import Error, Stopped, TrialFailed, WorkerError
from .events import bounded_reason
from .trial import Trial, reset_peak_memory

_PROTOCOL = 1
# As docs/reference/worker-protocol.md says; anything else is a crash.
_DONE, _CRASHED, _USAGE, _STOPPED = 0, 1, 2, 3

Train: TypeAlias = Callable[[Trial], None]


class Worker:
    """What a script does to train the trials that petlab gives it.

        def train(trial: petlab.Trial) -> None: ...
        petlab.Worker("my-script", version="1", numerics="1").run(train)

    `numerics` changes whenever the same trial would get other numbers: petlab then calls earlier
    results stale. A mapping with `version` adds what else decides them, `{"version": "1", "torch":
    torch.__version__}`; it is recorded with each attempt. `devices` is what the script computes on,
    of `cpu` and `cuda`; None: whatever it is given.
    """

    def __init__(
        self,
        name: str,
        *,
        numerics: str | Mapping[str, str | int | float | bool],
        version: str = "",
        devices: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.numerics: dict[str, Any] = (
            {"version": numerics} if isinstance(numerics, str) else dict(numerics)
        )
        if not isinstance(self.numerics.get("version"), str):
            raise ValueError(f"numerics is {numerics!r}, must be a text or have a text 'version'")
        if devices is not None and (
            isinstance(devices, str) or not set(devices) <= {"cpu", "cuda", "rocm"} or not devices
        ):
            raise ValueError(f"devices is {devices!r}, must be a list of 'cpu', 'cuda', 'rocm'")
        self.devices = devices
        self._stop = False
        self._wake = -1

    def describe(self) -> dict[str, Any]:
        """What `--describe` prints."""
        known: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "protocol": _PROTOCOL,
            "numerics": self.numerics["version"],
        }
        if self.devices is not None:
            known["devices"] = list(self.devices)
        return known

    def run(self, train: Train, arguments: Sequence[str] | None = None) -> NoReturn:
        """Does what the command line says and ends the process; it does not return.

        `--describe` tells what the worker is; `-` trains the attempts whose folders standard input
        names, a line each, and a gang's (several on a line) one after the other; else the arguments
        are such folders. Whatever `train` keeps outside of itself, a backbone for one, is there for
        the next trial. `train` ends with Trial.finish or Trial.fail; an exception is a failure.

        On SIGTERM, SIGINT or SIGHUP (unless ignored at the start) Trial.stopping becomes true; the
        process ends with exit code 3 after the next checkpoint, or between two trials. More of them
        change nothing; SIGQUIT ends the process at once. Output that nobody
        reads any more is thrown away: petlab may be gone when the checkpoint is to be written.
        """
        words = list(sys.argv[1:] if arguments is None else arguments)
        if words == ["--describe"]:
            print(json.dumps(self.describe()), flush=True)
            sys.exit(_DONE)
        if not words or any(word.startswith("--") for word in words):
            print(
                f"usage: {sys.argv[0]} DIR... | - | --describe\n"
                f"found {' '.join(words) or 'nothing'}; petlab starts this script: "
                f'petlab run SWEEP --worker "python3 {sys.argv[0]}"',
                file=sys.stderr,
            )
            sys.exit(_USAGE)
        _keep_output()
        wake = self._listen()
        try:
            for line in _lines(wake, self._stopping) if words == ["-"] else words:
                for folder in filter(None, line.split("\t")):
                    if self._stop:
                        sys.exit(_STOPPED)
                    if words == ["-"]:
                        _announce(folder)
                    self._train(Path(folder), train)
        except Stopped:
            sys.exit(_STOPPED)
        except Error as error:
            print(f"{self.name}: {error}", file=sys.stderr, flush=True)
            sys.exit(_CRASHED)
        sys.exit(_STOPPED if self._stop else _DONE)

    def _stopping(self) -> bool:
        return self._stop

    def _listen(self) -> int:
        """Installs the handlers. Returns a descriptor that can be read once a stop was asked."""
        wake, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self._on_signal)
        except ValueError as error:
            raise WorkerError(
                f"Worker.run was not called in the main thread, which alone hears signals: {error}"
            ) from error
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return wake

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake, b"\0")

    def _train(self, folder: Path, train: Train) -> None:
        """One trial, to its end. Raises Stopped, and WorkerError where events cannot be written."""
        trial = Trial(folder, self._stopping)
        reset_peak_memory()
        try:
            try:
                trial.load()
            finally:
                # Also before it is told that trial.json cannot be read.
                trial.started(self.name, self.version, self.numerics)
            train(trial)
            if not trial.is_over:
                trial.fail("the training function returned without finish or fail")
        except TrialFailed as error:
            self._fail(trial, error.reason, error.kind)
        except WorkerError as error:
            self._fail(trial, str(error), "error")
        except Exception as error:
            traceback.print_exc()
            kind = _kind_of(error)
            text = str(error).partition("\n")[0]
            named = type(error).__name__
            self._fail(trial, f"{named}: {text}" if text else named, kind)
        finally:
            trial.close()
        if trial.device_failed:
            for file in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    file.flush()
            # What Python would free at exit lies on a device that failed: it may wait for ever.
            os._exit(_CRASHED)

    @staticmethod
    def _fail(trial: Trial, reason: str, kind: str) -> None:
        if trial.is_over:  # what came after its end does not change it
            print(f"after the trial's end: {bounded_reason(reason)}", file=sys.stderr, flush=True)
            trial.device_failed = trial.device_failed or kind == "device"
        else:
            trial.fail(reason, kind)


# PyTorch is not imported for its own classes, and what they derive from is RuntimeError.
_MEMORY_WORDS = ("can't allocate memory", "error: out of memory", "STATUS_ALLOC_FAILED")
_DEVICE_WORDS = ("CUDA error: ", "HIP error: ", "cuDNN error: ")


def _kind_of(error: Exception) -> str:
    """The kind of failure that an exception is, as petlab-trainer tells them apart."""
    line = str(error).partition("\n")[0]
    from_torch = isinstance(error, RuntimeError)
    if (
        isinstance(error, MemoryError)
        or any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
        or (from_torch and any(words in line for words in _MEMORY_WORDS))
    ):
        return "out_of_memory"
    return "device" if from_torch and line.startswith(_DEVICE_WORDS) else "error"


class _PatientFile(io.FileIO):
    """Standard output or error; what nobody reads any more is thrown away."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


def _keep_output() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        with contextlib.suppress(OSError, ValueError):
            getattr(sys, name).flush()
        with contextlib.suppress(OSError):
            file = _PatientFile(descriptor, "w", closefd=False)
            # By lines: what a killed worker printed last is in its log.
            text = io.TextIOWrapper(
                io.BufferedWriter(file),
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=True,
            )
            setattr(sys, name, text)


def _announce(folder: str) -> None:
    """Separates the output of two attempts (docs/reference/worker-protocol.md)."""
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            file.flush()
    # All at once, so that nothing that a child prints stands in it; nobody may be there to read it.
    with contextlib.suppress(OSError):
        os.write(1, b"\x1e" + os.fsencode(folder) + b"\n")


def _lines(wake: int, stopping: Callable[[], bool]) -> Iterator[str]:
    """Lines of standard input without their newline, until it closes or a stop is asked for."""
    waited = select.poll()
    waited.register(0, select.POLLIN)
    waited.register(wake, select.POLLIN)
    buffer = b""
    while not stopping():
        line, newline, rest = buffer.partition(b"\n")
        if newline:
            buffer = rest
            yield os.fsdecode(line)
            continue
        if all(descriptor != 0 for descriptor, _ in waited.poll()):
            continue
        got = os.read(0, 1 << 16)
        if not got:
            if buffer:
                yield os.fsdecode(buffer)
            return
        buffer += got
