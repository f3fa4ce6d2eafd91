#!/usr/bin/env python3
"""Compares means, deviations, intervals, tests and marks of petlab's reports with numpy and scipy.

usage: check_statistics.py PETLAB DATABASE FEED

Every score in the paper's reports is recomputed from the worker's answers. Tables are reported
with tests against one of their rows or columns (Holm's correction over the table).
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from collections import Counter

import answers
import numpy
import reported
from cells import BEST_OF_ROW, Cells, is_score, metrics_of
from reported import Cell, Petlab, Section, Trial
from scipy import stats

# The row (with BEST_OF_ROW the column) that the others of a table are tested against.
AGAINST = {
    "table1": "adapter bn=64",
    "table2": "multi-task adapter bn=64",
    "table3": "adapter bn=64",
    "table4": "propetl",
    "table5": "vanilla",
    "table11": "or",
    "table13": "propetl",
    "table16": "adapter bn=64",
}


class Check:
    def __init__(self, petlab: Petlab, feed: str) -> None:
        trials = petlab.trials()
        self.trials = {trial.id: trial for trial in trials}
        self.of_cells = Cells(trials)
        printed = answers.Printed()
        self.answers = {t.id: answers.answer(printed, feed, t.config) for t in trials}
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
            for name in (*reported.TABLES, *reported.FIGURES):
                source = answers.SOURCE / f"reports/definitions/{name}.yaml"
                text = source.read_text(encoding="utf-8")
                asked = name
                if name in AGAINST:
                    line = f"  published: {name}\n"
                    assert text.count(line) == 1, f"{name}: where is its table?"
                    file = pathlib.Path(folder) / source.name
                    file.write_text(text.replace(line, f"{line}  against: {AGAINST[name]}\n"))
                    asked = str(file)
                for section in petlab.report(asked):
                    self._section(section)

    def _near(self, cell: Cell, what: str, found: float | None, wanted: float) -> None:
        self.counts[what] += 1
        if found is None or not numpy.isclose(found, wanted, rtol=1e-9, atol=1e-9):
            self.problems.append(f"{cell}: {what} is {found}, numpy and scipy have {wanted}")

    def _equal(self, cell: Cell, what: str, found: object, wanted: object) -> None:
        self.counts[what] += 1
        if found != wanted:
            self.problems.append(f"{cell}: {what} is {found}, expected {wanted}")

    def _values(self, cell: Cell) -> dict[int, float]:
        """The printed score of each seed, computed from the worker's answers."""
        by_seed: dict[int, list[float]] = {}
        for one in self.of_cells.of(cell):
            trial: Trial = self.trials[one]
            for key in metrics_of(cell, trial):
                value = self.answers[one].scores[key] * answers.scale_of(key[1])
                by_seed.setdefault(trial.seed, []).append(value)
        return {seed: float(numpy.mean(values)) for seed, values in sorted(by_seed.items())}

    def _mean_seconds(self, cell: Cell) -> float:
        return float(
            numpy.mean([self.answers[one].train_seconds for one in self.of_cells.of(cell)])
        )

    def _section(self, section: Section) -> None:
        scores = {
            place: self._values(cell)
            for place, cell in section.cells.items()
            if is_score(cell) and cell.kind != "missing"
        }
        for place, values in scores.items():
            self._cell(section.cells[place], list(values.values()))
        for place, cell in section.cells.items():
            if cell.report == "table9" or place[0] == "training_time_a100":
                unit = 60.0 if cell.report == "table9" else 3600.0
                if place[1] == "relative":
                    unit = self._mean_seconds(section.cells["mnli", "minutes"])
                self._near(cell, "time", cell.json["mean"], self._mean_seconds(cell) / unit)
        if section.kind == "figure":
            return
        of_row = section.report in BEST_OF_ROW
        lines = section.rows if of_row else section.columns
        p_values: dict[tuple[str, str], float] = {}
        for line in lines:
            there = {place: v for place, v in scores.items() if place[0 if of_row else 1] == line}
            self._marks([section.cells[place] for place in there], list(there.values()))
            if section.report in AGAINST:
                at = AGAINST[section.report]
                base = (line, at) if of_row else (at, line)
                p_values |= self._p_values(base, there)
        if section.report in AGAINST:
            self._tests(section, scores, p_values)

    def _cell(self, cell: Cell, values: list[float]) -> None:
        n = len(values)
        mean = float(numpy.mean(values))
        self._equal(cell, "n", cell.json["n"], n)
        self._near(cell, "mean", cell.json["mean"], mean)
        samples = [sample["value"] for sample in cell.json["samples"]]
        for found, wanted in zip(samples, values, strict=True):
            self._near(cell, "value of a seed", found, wanted)
        text = f"{mean:.2f} (1)"
        if n > 1:
            deviation = float(numpy.std(values, ddof=1))
            error = float(stats.sem(values))
            self._near(cell, "deviation", cell.json["deviation"], deviation)
            self._near(cell, "standard error", cell.json["standard_error"], error)
            low, high = stats.t.interval(0.95, n - 1, loc=mean, scale=error)
            self._near(cell, "interval", cell.json["ci_low"], float(low))
            self._near(cell, "interval", cell.json["ci_high"], float(high))
            text = f"{mean:.2f} ± {deviation:.2f} ({n})"
        else:
            for name in ("deviation", "standard_error", "ci_low", "ci_high"):
                self._equal(cell, f"{name} of one seed", cell.json[name], None)
        self._equal(cell, "text", cell.shown.text, text)

    def _marks(self, cells: list[Cell], values: list[dict[int, float]]) -> None:
        """Bold is the best mean of at least two, underlined the second of at least three."""
        means = [float(numpy.mean(list(one.values()))) for one in values]
        order = numpy.argsort(means)[::-1]
        for place, at in enumerate(order):
            self._equal(cells[at], "mark best", cells[at].shown.best, place == 0 and len(means) > 1)
            second = place == 1 and len(means) > 2
            self._equal(cells[at], "mark second", cells[at].shown.second, second)

    def _p_values(
        self, base: tuple[str, str], scores: dict[tuple[str, str], dict[int, float]]
    ) -> dict[tuple[str, str], float]:
        """Two-sided paired t tests over the seeds; none with fewer than three seeds."""
        if base not in scores or len(scores[base]) < 3:
            return {}
        against = list(scores[base].values())
        return {
            place: float(stats.ttest_rel(list(values.values()), against).pvalue)
            for place, values in scores.items()
            if place != base
        }

    def _tests(
        self,
        section: Section,
        scores: dict[tuple[str, str], dict[int, float]],
        p_values: dict[tuple[str, str], float],
    ) -> None:
        adjusted = holm(p_values)
        for place in scores:
            cell = section.cells[place]
            found = cell.json.get("comparison")
            self._equal(cell, "test", found is not None, place in p_values)
            if found is None or place not in p_values:
                self._equal(cell, "mark *", cell.shown.significant, False)
                continue
            self._equal(cell, "n of the test", found["n"], len(scores[place]))
            self._near(cell, "p", found["p"], p_values[place])
            self._near(cell, "p after Holm", found["adjusted_p"], adjusted[place])
            significant = adjusted[place] < 0.05
            self._equal(cell, "significant", found["significant"], significant)
            self._equal(cell, "mark *", cell.shown.significant, significant)
            self.counts["significant after Holm"] += significant


def holm(p_values: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """S. Holm: A simple sequentially rejective multiple test procedure, 1979."""
    adjusted = {}
    largest = 0.0
    for rank, (place, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        adjusted[place] = largest
    return adjusted


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[3] not in answers.FEEDS:
        sys.exit(__doc__)
    check = Check(Petlab(*map(pathlib.Path, sys.argv[1:3])), sys.argv[3])
    print(
        "equal to numpy and scipy: " + ", ".join(f"{n} {what}" for what, n in check.counts.items())
    )
    if check.problems:
        sys.exit("\n".join(check.problems))
    if sys.argv[3] == "noise" and not check.counts["significant after Holm"]:
        sys.exit("no difference is significant: these numbers try no mark")


if __name__ == "__main__":
    main()
