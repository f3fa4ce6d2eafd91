"""Opens petlab databases read-only, even while petlab writes them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from .errors import DatabaseError, Error
from .program import find_program, note

_APPLICATION_ID = 0x7065746C  # "petl"
_VERSION = 3
# The same as in petlab's own readers. A writer may lock the file for a moment.
_BUSY_SECONDS = 120.0


def check_file(file: Path) -> None:
    """Raises DatabaseError if the file is missing, a folder or empty."""
    if file.is_dir():
        raise DatabaseError(f"{file}: it is a folder, must be a database file")
    if not file.exists():
        raise DatabaseError(f"{file}: there is no such file; `petlab run` creates a database")
    if file.stat().st_size == 0:
        raise DatabaseError(f"{file}: the file is empty, no database")


def _state(file: Path) -> tuple[int, ...]:
    """A fingerprint of the file and its log, which any write changes. Empty without a file."""
    real = file.resolve()
    logs = (Path(f"{real}-wal"), Path(f"{real}-journal"))
    try:
        about = real.stat()
        pending = sum(log.stat().st_size for log in logs if log.exists())
        with real.open("rb") as opened:
            # SQLite's change counter: two changes may share a timestamp.
            changes = int.from_bytes(opened.read(28)[24:], "big")
    except OSError:
        return ()
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, changes, pending)


def _is_immutable(file: Path, state: tuple[int, ...]) -> bool:
    """True in a read-only folder without a writer's log, where SQLite cannot create the files that
    readers and writers share. SQLite then locks nothing, so _state() must detect a writer that
    starts later.
    """
    return state[-1:] == (0,) and not os.access(file.resolve().parent, os.W_OK)


def _updated_copy(
    file: Path, old: sqlite3.Connection, program: str | os.PathLike[str] | None
) -> sqlite3.Connection:
    """A connection to a copy that the program has updated. The copy's file is deleted already."""
    with tempfile.TemporaryDirectory(prefix="petlab-") as folder:
        copy = Path(folder) / file.name
        with contextlib.closing(sqlite3.connect(copy)) as target:
            old.backup(target)
        done = subprocess.run(
            [find_program(program), "db", "update", "--db", str(copy)],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            message = done.stderr.replace(str(copy), str(file))
            raise DatabaseError(message.removeprefix("petlab: ").strip())
        return _open(copy, "immutable=1")


def _open(file: Path, mode: str) -> sqlite3.Connection:
    real = quote(str(file.resolve()))

    def opened(mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{real}?{mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )

    try:
        if mode == "mode=ro" and Path(f"{file.resolve()}-journal").exists():
            # A killed process may have left it. Only a connection that may write can roll its
            # transaction back, and does so before it reads.
            with (
                contextlib.suppress(sqlite3.Error),
                contextlib.closing(opened("mode=rw")) as writer,
            ):
                writer.execute("PRAGMA user_version").fetchone()
        connection = opened(mode)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.Error as error:
        raise DatabaseError(f"{file}: cannot be opened: {error}") from error
    return connection


def connect(
    file: Path, program: str | os.PathLike[str] | None = None, immutable: bool | None = None
) -> sqlite3.Connection:
    """Opens a read-only connection. For an earlier version, it leads to an updated copy.

    Raises DatabaseError with the file and the problem, and ProgramError if the update fails to
    start.
    """
    check_file(file)
    if immutable is None:
        immutable = _is_immutable(file, _state(file))
    connection = _open(file, "immutable=1" if immutable else "mode=ro")
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION_ID:
            raise DatabaseError(f"{file}: it is a database of another program, not of petlab")
        if version > _VERSION:
            raise DatabaseError(
                f"{file}: the database has version {version}, this package reads {_VERSION}; "
                "use a newer version of this package"
            )
        if version < _VERSION:
            copy = _updated_copy(file, connection, program)
            connection.close()
            note(
                f"{file}: the database has version {version}, this package reads {_VERSION}; it "
                f"was read through an updated copy (petlab db update --db {file} updates it)"
            )
            return copy
    except sqlite3.Error as error:
        connection.close()
        raise DatabaseError(f"{file}: cannot be read: {error}") from error
    except Error:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def reading(
    file: Path, program: str | os.PathLike[str] | None = None
) -> Iterator[sqlite3.Connection]:
    """A connection whose statements all see the same state. It is closed at the end.

    Raises DatabaseError at the end if nothing could be locked and the file was written meanwhile.
    """
    check_file(file)
    before = _state(file)
    immutable = _is_immutable(file, before)

    def check_unchanged() -> None:
        if immutable and _state(file) != before:
            raise DatabaseError(
                f"{file}: it was written while it was read, and nothing can be locked in a folder "
                "that cannot be written: what was read may be wrong; ask again, or ask a copy"
            )

    connection = connect(file, program, immutable)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        yield connection
    except Exception as error:
        check_unchanged()
        if isinstance(error, sqlite3.Error):
            raise DatabaseError(f"{file}: cannot be read: {error}") from error
        raise
    finally:
        connection.close()
    check_unchanged()
