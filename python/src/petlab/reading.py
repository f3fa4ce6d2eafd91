"""Opens a database of petlab to read it: never to write, and beside a petlab that writes it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from .errors import DatabaseError

_APPLICATION_ID = 0x7065746C  # "petl"
_VERSION = 1
# As petlab's own readers; a writer that has the file alone for a moment is waited for.
_BUSY_SECONDS = 120.0


def check_file(file: Path) -> None:
    """Raises DatabaseError where it is no file, or empty."""
    if file.is_dir():
        raise DatabaseError(f"{file}: it is a folder, must be a database file")
    if not file.exists():
        raise DatabaseError(f"{file}: there is no such file; `petlab run` makes a database")
    if file.stat().st_size == 0:
        raise DatabaseError(f"{file}: the file is empty, no database")


def _uri(file: Path) -> str:
    real = file.resolve()
    wal = Path(f"{real}-wal")
    pending = wal.exists() and wal.stat().st_size > 0
    # In a folder that cannot be written SQLite cannot make the files beside it that readers share.
    alone = not pending and not os.access(real.parent, os.W_OK)
    return f"file:{quote(str(real))}?{'immutable=1' if alone else 'mode=ro'}"


def connect(file: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises DatabaseError naming the file and what it is."""
    check_file(file)
    try:
        connection = sqlite3.connect(
            _uri(file), uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )
    except sqlite3.Error as error:
        raise DatabaseError(f"{file}: cannot be opened: {error}") from error
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA temp_store = MEMORY")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION_ID:
            raise DatabaseError(f"{file}: it is a database of another program, not of petlab")
        if version != _VERSION:
            newer = "use a newer version of this package"
            older = "make it anew: petlab ingest --rebuild"
            raise DatabaseError(
                f"{file}: the database has version {version}, this package reads {_VERSION}; "
                f"{newer if version > _VERSION else older}"
            )
        there = connection.execute(
            "SELECT 1 FROM pragma_table_info('results') WHERE name = 'artifact'"
        ).fetchone()
        if there is None:
            raise DatabaseError(
                f"{file}: an earlier petlab made the database; `petlab ingest --db {file} "
                "--runs FOLDER`, or `petlab run` of its sweep, makes it fit this package"
            )
    except sqlite3.Error as error:
        connection.close()
        raise DatabaseError(f"{file}: cannot be read: {error}") from error
    except DatabaseError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection on which all statements see the same moment. Closed at the end."""
    connection = connect(file)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        yield connection
    except sqlite3.Error as error:
        raise DatabaseError(f"{file}: cannot be read: {error}") from error
    finally:
        connection.close()
