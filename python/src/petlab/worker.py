"""Runs a training script as a petlab worker (docs/reference/worker-protocol.md, docs/python.md)."""

from __future__ import annotations

import contextlib
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

from .catalog import Catalog
from .errors import Error, Stopped, TrialFailed, WorkerError
from .events import bounded_reason
from .output import announce, keep_output, settle_output
from .ran import Ran
from .trial import Trial, reset_peak_memory

_PROTOCOL = 1
# See docs/reference/worker-protocol.md. Any other exit code is a crash.
_DONE, _CRASHED, _USAGE, _STOPPED = 0, 1, 2, 3

Train: TypeAlias = Callable[[Trial], None]


class Worker:
    """Trains the trials that petlab assigns to a script.

        def train(trial: petlab.Trial) -> None: ...
        petlab.Worker("my-script", version="1", numerics="1").run(train)

    Change `numerics` whenever the same trial would get different numbers: petlab then marks
    earlier results as stale. A mapping with `version` can add other versions that affect them, such
    as `{"version": "1", "torch": torch.__version__}`; it is recorded with each attempt. `devices`
    lists the devices that the script supports; None: any. `catalog` declares kinds of module,
    fields, metrics and tasks of its own, which sweep files may then use; None: petlab-trainer's.
    """

    def __init__(
        self,
        name: str,
        *,
        numerics: str | Mapping[str, str | int | float | bool],
        version: str = "",
        devices: Sequence[str] | None = None,
        catalog: Catalog | None = None,
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
        self.catalog = catalog
        self._ran = Ran()
        self._stop = False
        self._wake = -1

    def describe(self) -> dict[str, Any]:
        """Returns the object that `--describe` prints."""
        description: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "protocol": _PROTOCOL,
            "numerics": self.numerics["version"],
            "provenance": self._ran.provenance(),
            "stops_trials": True,
        }
        if self.devices is not None:
            description["devices"] = list(self.devices)
        if self.catalog is not None:
            description["catalog"] = self.catalog.declaration()
        return description

    def run(self, train: Train, arguments: Sequence[str] | None = None) -> NoReturn:
        """Executes the command line and ends the process; it does not return.

        `--describe` prints a description of the worker. `-` trains the attempts whose folders are
        on the lines of standard input; a gang's folders share a line and are trained one after
        another. Otherwise, the arguments are the folders. Global state of the script, such as a
        loaded backbone, is kept between trials. `train` must end with Trial.finish or Trial.fail;
        an exception fails the trial.

        On SIGTERM, SIGINT or SIGHUP (unless ignored at the start), Trial.stopping becomes true, and
        the process exits with code 3 after the next checkpoint, or between two trials. Further
        signals change nothing; SIGQUIT ends the process immediately. If petlab stops one trial,
        Trial.stopping becomes true, and the next trial follows after the checkpoint. Output is
        discarded once its reader is gone: petlab may have exited before the checkpoint is written.
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
        keep_output()
        wake = self._listen()
        try:
            for line in _lines(wake, self._stopping) if words == ["-"] else words:
                for folder in filter(None, line.split("\t")):
                    if self._stop:
                        sys.exit(_STOPPED)
                    if words == ["-"]:
                        announce(folder)
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
        """Installs the handlers. Returns a descriptor that becomes readable on a stop request."""
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
        """Trains a trial. Raises Stopped if the whole worker is to stop, and WorkerError if events
        cannot be written."""
        trial = Trial(folder, self._stopping)
        reset_peak_memory()
        try:
            try:
                trial.load()
            finally:
                # The failure to read trial.json must be reported after a started event, too.
                trial.started(self.name, self.version, self.numerics, self._ran.provenance)
            train(trial)
            if not trial.is_over:
                trial.fail("the training function returned without finish or fail")
        except Stopped:
            if self._stop:
                raise
            if not trial.is_over:
                trial.stopped()
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
            settle_output()
            trial.close()
        if trial.device_failed:
            # Skip Python's cleanup: freeing memory on a failed device may block for ever.
            os._exit(_CRASHED)

    @staticmethod
    def _fail(trial: Trial, reason: str, kind: str) -> None:
        if trial.is_over:  # later failures do not change its outcome
            print(f"after the trial's end: {bounded_reason(reason)}", file=sys.stderr, flush=True)
            trial.device_failed = trial.device_failed or kind == "device"
        else:
            trial.fail(reason, kind)


# PyTorch's exceptions derive from RuntimeError; importing PyTorch for its classes is not worth it.
_MEMORY_WORDS = ("can't allocate memory", "error: out of memory", "STATUS_ALLOC_FAILED")
_DEVICE_WORDS = ("CUDA error: ", "HIP error: ", "cuDNN error: ")


def _kind_of(error: Exception) -> str:
    """Classifies an exception as a kind of failure, by the same rules as petlab-trainer."""
    line = str(error).partition("\n")[0]
    from_torch = isinstance(error, RuntimeError)
    if (
        isinstance(error, MemoryError)
        or any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
        or (from_torch and any(words in line for words in _MEMORY_WORDS))
    ):
        return "out_of_memory"
    return "device" if from_torch and line.startswith(_DEVICE_WORDS) else "error"


def _lines(wake: int, stopping: Callable[[], bool]) -> Iterator[str]:
    """Lines of standard input without their newlines, until it closes or a stop is requested."""
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
