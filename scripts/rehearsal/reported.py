"""petlab's reports on a rehearsal's database: the cells with their values, trials and texts."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Reports of the paper; all others are of other sweeps.
TABLES = tuple(f"table{n}" for n in range(1, 17))
FIGURES = ("figure3", "figure4")
_FEWER_SEEDS = re.compile(r" \(\d+/\d+\)$")


@dataclass(frozen=True)
class Shown:
    """A cell as shown in the Markdown."""

    text: str  # without marks
    best: bool
    second: bool
    significant: bool

    @property
    def number(self) -> float | None:
        """The shown mean; None if it is not a number."""
        plain = self.text.partition(" ")[0].replace(",", "").replace("−", "-")
        try:
            return float(plain)
        except ValueError:
            return None


@dataclass(frozen=True)
class Cell:
    report: str
    section: str  # key; empty for the only table
    row: str
    column: str
    json: Mapping[str, Any]
    shown: Shown

    def __str__(self) -> str:
        return f"{self.report} {self.section}, {self.row}, {self.column}".replace(" ,", ",")

    @property
    def kind(self) -> str:
        return str(self.json["kind"])

    @property
    def trials(self) -> set[str]:
        return {trial for sample in self.json["samples"] for trial in sample["trials"]}


@dataclass
class Section:
    report: str
    key: str
    kind: str  # table or figure
    sweeps: list[str]
    rows: list[str]
    columns: list[str]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    id: str
    config: Mapping[str, Any]
    sweeps: tuple[str, ...]

    @property
    def seed(self) -> int:
        return int(self.config["seed"])


class Petlab:
    """The built program and one database."""

    def __init__(self, program: pathlib.Path, database: pathlib.Path) -> None:
        self.program, self.database = program.resolve(), database

    def _say(self, *words: str) -> str:
        command = [str(self.program), *words, "--db", str(self.database)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def trials(self) -> list[Trial]:
        """All trials of all sweeps, without repeats."""
        rows = json.loads(
            self._say(
                "query",
                "SELECT t.trial_id, t.config, group_concat(DISTINCT s.name) AS sweeps FROM trials t"
                " JOIN sweep_trials m ON m.trial = t.key JOIN sweeps s ON s.key = m.sweep"
                " GROUP BY t.key",
                "--format",
                "json",
            )
        )
        made = []
        for row in rows:
            config = row["config"]
            config = json.loads(config) if isinstance(config, str) else config
            made.append(Trial(row["trial_id"], config, tuple(row["sweeps"].split(","))))
        return made

    def report(self, name: str) -> list[Section]:
        """The sections of a shipped report, or of a definition's file."""
        found = json.loads(self._say("report", name, "--format", "json"))
        sections = found.get("sections") or [found | {"kind": "table", "key": ""}]
        sweeps = [sweep["sweep"] for sweep in found["sweeps"]]
        texts = _markdown_tables(
            self._say("report", name, "--format", "markdown", "--show", "measured"),
        )
        made = []
        for section, lines in zip(sections, texts, strict=True):
            columns = [column["key"] for column in section["columns"]]
            if section["kind"] == "figure":  # reports list only its measured points
                rows = [row for row in section["rows"] if _measured(row)]
                columns = columns[:1]
            else:
                rows = section["rows"]
            one = Section(
                found["report"],
                section["key"],
                section["kind"],
                sweeps,
                [row["key"] for row in rows],
                columns,
            )
            for row, shown in zip(rows, lines, strict=True):
                for cell, text in zip(row["cells"][: len(columns)], shown, strict=True):
                    key = row["key"], cell["column"]
                    one.cells[key] = Cell(one.report, one.key, *key, cell, _shown(text))
            made.append(one)
        return made


def _measured(row: Mapping[str, Any]) -> bool:
    return bool(row["cells"][0]["kind"] != "text")


def _shown(text: str) -> Shown:
    best = text.startswith("**")
    second = text.startswith("<ins>")
    plain = re.sub(r"\*\*|</?ins>", "", text)
    significant = re.search(r"\\?\*", plain) is not None
    return Shown(re.sub(r"\\?\*", "", plain).strip(), best, second, significant)


def _markdown_tables(text: str) -> Iterator[list[list[str]]]:
    """The rows of each table: the texts after the row's name, without group headings."""
    table: list[list[str]] | None = None
    for line in [*text.splitlines(), ""]:
        if not line.startswith("| "):
            if table is not None:
                yield table
            table = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if table is None:
            table = []  # the head
        elif not set(cells[0]) <= {"-", " "} and any(cells[1:]):
            table.append(cells[1:])
