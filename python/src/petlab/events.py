"""Writes an attempt's `events.jsonl` (docs/reference/worker-protocol.md)."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

from .errors import WorkerError

# A longer line breaks the protocol, and petlab ends the worker.
_MAX_LINE = 1 << 20
# The limit in bytes for a failure's reason, as in protocol/events.cpp.
_MAX_REASON = 4096
_KEPT_OF_REASON = _MAX_REASON // 2 - 32
_LAST = {"finished", "failed", "stopped"}
_SYNCED = {"checkpoint", *_LAST}


def number_or_none(value: object) -> float | None:
    """A number of Python, NumPy or PyTorch as a float; None if it is None or not finite."""
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


def plain_scalar(value: object) -> object:
    """For json.dumps: a scalar of NumPy or PyTorch as Python's. Raises TypeError for the rest."""
    item = getattr(value, "item", None)
    if getattr(value, "shape", None) == () and callable(item):
        return item()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def bounded_reason(text: str) -> str:
    """The text in the form of a failed event: the middle of texts over 4,096 bytes is left out,
    and invalid UTF-8, such as in a file's name, is written with backslashes."""
    data = text.encode(errors="backslashreplace")
    if len(data) <= _MAX_REASON:
        return data.decode()
    begin = data[:_KEPT_OF_REASON].decode(errors="ignore")
    end = data[-_KEPT_OF_REASON:].decode(errors="ignore")
    left_out = len(data) - len(begin.encode()) - len(end.encode())
    return f"{begin} … ({left_out} bytes left out) … {end}"


class EventLog:
    """Numbers, timestamps and appends events, and syncs after checkpoints and the last event.

    A failed write leaves the file as it was, so that later events start on a new line. If that
    fails too, or after a failed sync, all later calls raise. Thread-safe, but a forked process must
    not write.
    """

    def __init__(self, file: Path) -> None:
        """Raises WorkerError if the file cannot be created or already holds events."""
        self._file = file
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._seq = 0
        self._size = 0
        self._broken = ""
        self.is_over = False
        """True once a finished, failed or stopped event was written."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._descriptor = os.open(file, flags, 0o644)
        except OSError as error:
            raise WorkerError(f"{file}: cannot be opened: {error.strerror}") from error
        if os.fstat(self._descriptor).st_size != 0:
            self.close()
            raise WorkerError(
                f"{file}: already contains events, must be new: an attempt runs only once"
            )

    def close(self) -> None:
        """Closes the file; later writes fail."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def write(self, kind: str, /, **fields: Any) -> None:
        """Appends an event. Raises WorkerError with the file, and ValueError for invalid fields."""
        with self._lock:
            self._write(kind, fields)

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        if self._broken:
            raise WorkerError(self._broken)
        if self._pid != os.getpid():
            raise WorkerError(
                f"{self._file}: process {os.getpid()} was forked by the worker {self._pid}, "
                "which alone may write events"
            )
        if self.is_over:
            raise WorkerError(f"{self._file}: the trial is over, a {kind} cannot follow")
        event = {"v": 1, "seq": self._seq, "time": time.time(), "type": kind, **fields}
        try:
            text = json.dumps(
                event,
                ensure_ascii=False,
                allow_nan=False,
                separators=(",", ":"),
                default=plain_scalar,
            )
            line = text.encode() + b"\n"
        except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
            raise ValueError(f"a {kind} event cannot be written as JSON: {error}") from error
        if len(line) > _MAX_LINE:
            raise ValueError(f"a {kind} event has {len(line)} bytes, must have at most {_MAX_LINE}")
        self._append(line)
        self._size += len(line)
        self._seq += 1
        self.is_over = kind in _LAST
        if kind not in _SYNCED:
            return
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            # After a failed sync, it is unknown which lines reached the disk.
            self._broken = f"{self._file}: cannot be synced: {error.strerror}"
            raise WorkerError(self._broken) from error

    def _append(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            problem = f"{self._file}: cannot be written: {error.strerror}"
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                self._broken = problem
            raise WorkerError(problem) from error
