"""The trials of each cell of the paper's reports, derived only from their configurations."""

from __future__ import annotations

import answers
from answers import Place
from reported import Cell, Trial

# Columns that contain no scores.
_NO_SCORES = ("bls_percent", "ft_params_percent")
_SCORES = ("table1", "table2", "table3", "table4", "table5", "table11", "table13")
_CURVES = {"xsum": "table14", "ro-en": "table15", "glue": "table16"}
_SETTINGS = {"xsum": "table14", "ro-en": "table15", "glue": "table16"}
# Tables that mark the best value of each row instead of each column.
BEST_OF_ROW = ("table4", "table5", "table8", "table13")


def is_score(cell: Cell) -> bool:
    """True for cells with a mean of scores over seeds; others show settings, sizes and times."""
    if cell.report in ("figure3", "figure4"):
        return True
    if cell.report == "table8":
        return cell.column != "mask_learning_rate"
    return cell.report in (*_SCORES, *_CURVES.values()) and cell.column not in _NO_SCORES


def metrics_of(cell: Cell, trial: Trial) -> list[tuple[str, str]]:
    """The task and name of each metric whose mean a cell of scores shows."""
    tasks = trial.config.get("tasks") or [trial.config["task"]]
    if cell.column in answers.GLUE_COLUMNS:
        task, name = cell.column.split(".")
        return [(task, name)] if task in tasks else []
    if tasks[0] in answers.TEXTS:
        return [(tasks[0], answers.TEXTS[tasks[0]][0])]
    return [(task, name) for task in tasks for name in answers.GLUE[task]]


class Cells:
    """Finds the trials of cells among all trials of the paper's sweeps."""

    def __init__(self, trials: list[Trial]) -> None:
        self.trials = trials
        self.printed = answers.Printed()
        self.by_place: dict[Place, set[str]] = {}
        for trial in trials:
            for place in answers.places(self.printed, trial.config):
                self.by_place.setdefault(place, set()).add(trial.id)

    def of(self, cell: Cell) -> set[str]:
        """The trials whose values a cell shows; none for texts."""
        if cell.kind == "text":
            return set()
        return getattr(self, f"_{cell.report}", self._of_place)(cell)

    def _of_place(self, cell: Cell) -> set[str]:
        table, row, column = cell.report, cell.row, cell.column
        if is_score(cell):
            found = self.by_place.get(Place(table, row, column), set())
            found = found | self.by_place.get(Place(table, row), set())
            by_id = {trial.id: trial for trial in self.trials}
            return {one for one in found if metrics_of(cell, by_id[one])}
        return {
            one
            for place, ids in self.by_place.items()
            if (place.table, place.row) == (table, row)
            and (table != "table4" or place.column == "propetl")
            for one in ids
        }

    def _where(self, sweep: str, **module: object) -> set[str]:
        return {
            trial.id
            for trial in self.trials
            if sweep in trial.sweeps
            and all(trial.config["module"].get(key) == value for key, value in module.items())
        }

    def _table6(self, cell: Cell) -> set[str]:
        sweep = "table1" if cell.row == "single-task" else "table16"
        return self._where(sweep, kind="adapter", share=True, mask="learned", bottleneck=64)

    def _table7(self, cell: Cell) -> set[str]:
        """All trials of the task in the sweeps of the report."""
        task = {row: task for task, row in answers.ROWS_OF_TABLE7.items()}.get(cell.row, cell.row)
        return {
            trial.id
            for trial in self.trials
            if task in (trial.config.get("tasks") or [trial.config["task"]])
            and {"table1", *_CURVES.values()} & set(trial.sweeps)
        }

    def _table8(self, cell: Cell) -> set[str]:
        kind = cell.row.removeprefix("propetl_")
        if self.printed.value("table8", cell.row, "mask_learning_rate") != float(cell.column):
            return set()
        return self._where("table8", kind=kind)

    def _table9(self, cell: Cell) -> set[str]:
        of_task = {trial.id for trial in self.trials if trial.config.get("task") == cell.row}
        return of_task & self._where("table1", kind="adapter", share=True)

    def _table10(self, cell: Cell) -> set[str]:
        sweep = _SETTINGS[cell.column]
        if cell.row == "mask_learning_rate":
            return self._where(sweep, mask="learned")
        if cell.row == "training_time_a100":
            return self._where(sweep, kind="adapter")
        if cell.row == "sampling_temperature" and cell.column != "glue":
            return set()  # there is no figure of a single task
        return self._where(sweep)

    def _table12(self, cell: Cell) -> set[str]:
        data = cell.row.split(" ")[0]
        return self.by_place[Place("table13", f"{data} adapter", cell.column)]

    def _figure3(self, cell: Cell) -> set[str]:
        table = _CURVES[cell.section]
        if cell.row == "full_finetuning":
            return self._where(table, kind="full_finetuning")
        # Its x is the storage, which is different for all modules of a curve.
        series, x = cell.row.split(" ")
        rows = [row for row in self.printed.tables[table]["rows"] if row.startswith(f"{series} bn")]
        storage = [self.printed.value(table, row, "bls_percent") for row in rows]
        nearest = min(range(len(rows)), key=lambda at: abs(storage[at] / float(x) - 1))
        return self.by_place[Place(table, rows[nearest], "score")]

    def _figure4(self, cell: Cell) -> set[str]:
        kind, k = cell.row.split(" ")
        return self._where("figure4", kind=kind, sparsity_ratio=float(k))
