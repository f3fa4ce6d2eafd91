#!/usr/bin/env python3
"""Checks that every cell has its trials, and that every trial has a cell.

usage: check_trials.py PETLAB DATABASE

In all reports of the paper, each cell must consist of exactly the trials that belong to it,
finished and with the same numerics. Each trial of each sweep must be part of a score in a report
about that sweep.
"""

from __future__ import annotations

import pathlib
import sys

import reported
from cells import Cells, is_score
from reported import Cell, Petlab, Trial


def faults_of(cell: Cell, wanted: set[str], trials: dict[str, Trial]) -> list[str]:
    """The faults of a cell that must consist of the trials `wanted`."""
    if cell.kind == "missing":
        if not wanted and cell.json.get("reason") == "the sweep has no such trial":
            return []
        return [f"{cell}: is missing ({cell.json.get('reason')}), has {len(wanted)} trials"]
    if cell.kind == "text":
        return []
    found = []
    if cell.trials != wanted:
        found.append(
            f"{cell}: is of {len(cell.trials)} trials, expected {len(wanted)}; wrong:"
            f" {sorted(cell.trials - wanted)[:3]}, lacking: {sorted(wanted - cell.trials)[:3]}"
        )
    if is_score(cell):
        seeds = {trials[one].seed for one in wanted}
        if {sample["seed"] for sample in cell.json["samples"]} != seeds:
            found.append(f"{cell}: its seeds are not {sorted(seeds)}")
        if cell.json["n"] != len(seeds) or cell.json["planned"] != len(seeds):
            n = f"{cell.json['n']} of {cell.json['planned']}"
            found.append(f"{cell}: n is {n}, expected {seeds}")
    for flag in ("partial", "stale", "mixed_fields", "undefined"):
        if cell.json[flag]:
            found.append(f"{cell}: {flag} is {cell.json[flag]}")
    if len(cell.json["numerics"]) > 1:
        found.append(f"{cell}: its numerics are mixed")
    return found


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    petlab = Petlab(*map(pathlib.Path, sys.argv[1:]))
    trials = {trial.id: trial for trial in petlab.trials()}
    of_cells = Cells(list(trials.values()))
    faults: list[str] = []
    shown: dict[str, set[str]] = {}  # by sweep
    number = 0
    for name in (*reported.TABLES, *reported.FIGURES):
        for section in petlab.report(name):
            for cell in section.cells.values():
                faults += faults_of(cell, of_cells.of(cell), trials)
                number += cell.kind != "missing"
                if is_score(cell):
                    for sweep in section.sweeps:
                        shown.setdefault(sweep, set()).update(cell.trials)
    for trial in trials.values():
        for sweep in trial.sweeps:
            if trial.id not in shown.get(sweep, ()):
                faults.append(f"{sweep}, trial {trial.id}: no report shows it: {trial.config}")
    members = sum(len(trial.sweeps) for trial in trials.values())
    print(
        f"cells and points with their trials: {number}; trials: {len(trials)}, in sweeps: {members}"
    )
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
