"""Trains a trial with the Trainer or Seq2SeqTrainer of transformers (docs/python.md)."""

from __future__ import annotations

import functools
import json
import math
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .errors import Stopped
from .trial import Trial

_SPLITS = {"train": "train", "eval": "validation", "test": "test"}
# Of an evaluation's numbers, those about its speed.
_NOT_METRICS = ("runtime", "per_second", "_time")
_LARGEST_EXPONENT = 700.0


def arguments(trial: Trial, **changes: Any) -> dict[str, Any]:
    """Arguments for TrainingArguments or Seq2SeqTrainingArguments from the trial's configuration.

    They set the group `training`, the seed, the device and where files go. Checkpoints are written
    every `training.checkpoint_every` steps, or after each epoch. `changes` replaces or adds some.
    `training.dropout` is up to the model.
    """
    training = trial.config.training
    parts = training.gradient_accumulation
    found: dict[str, Any] = {
        "output_dir": str(trial.folder / "trainer"),
        "per_device_train_batch_size": math.ceil(training.batch_size / parts),
        "gradient_accumulation_steps": parts,
        "num_train_epochs": training.epochs,
        "max_steps": training.steps or -1,
        "learning_rate": training.learning_rate,
        "weight_decay": training.weight_decay,
        "max_grad_norm": training.max_grad_norm,
        "label_smoothing_factor": training.label_smoothing,
        "bf16": training.compute == "bf16",
        "seed": trial.config.seed,
        "use_cpu": trial.device == "cpu",
        "logging_steps": 10,
        "save_strategy": "steps" if training.checkpoint_every else "epoch",
        "save_total_limit": 1,
        "report_to": "none",
    }
    if training.warmup_steps:
        found["warmup_steps"] = training.warmup_steps
    else:
        found["warmup_ratio"] = training.warmup_ratio
    if training.evaluate_every:
        found |= {"eval_strategy": "steps", "eval_steps": training.evaluate_every}
    if training.checkpoint_every:
        found["save_steps"] = training.checkpoint_every
    return found | changes


def resume_from(trial: Trial, output_dir: str | Path | None = None) -> str | None:
    """The folder for Trainer.train(resume_from_checkpoint=…); None in a fresh attempt.

    `output_dir` is that of the training arguments, by default that of arguments().
    """
    folder = trial.folder / "trainer" if output_dir is None else Path(output_dir)

    def unpack(file: Path) -> str:
        # Versions of Python before 3.11.4 lack filters. petlab's own file needs none.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(file) as tar:
            tar.extractall(folder, **safe)
            found = folder / tar.getnames()[0]
        # The best checkpoint was in another attempt's folder.
        state = found / "trainer_state.json"
        values = json.loads(state.read_text(encoding="utf-8"))
        if best := values.get("best_model_checkpoint"):
            values["best_model_checkpoint"] = str(folder / Path(best).name)
            state.write_text(json.dumps(values), encoding="utf-8")
        return str(found)

    return trial.restore(unpack)


class TrialCallback(TrainerCallback):
    """Reports to a trial: progress and loss, metrics and checkpoints; stops if petlab asks.

    Progress is reported each time the Trainer logs its loss. Numbers of Trainer.evaluate and
    Trainer.predict are metrics of the split that their prefix names: `eval` is validation, `test`
    and `train` are themselves. With `perplexity`, that of each loss is reported, too. In a trial of
    several tasks, a number's name begins with its task: `eval_cola_accuracy`. A checkpoint of the
    Trainer becomes one of the trial, as one file, with the best one if that is another.
    """

    def __init__(self, trial: Trial, *, perplexity: bool = False) -> None:
        self._trial = trial
        self._perplexity = perplexity

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
    ) -> None:
        if "loss" in logs:
            self._trial.progress(state.global_step, state.max_steps, logs["loss"])

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._trial.stopping:
            control.should_save = True  # on_save then ends the attempt

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        best = Path(state.best_model_checkpoint) if state.best_model_checkpoint else folder
        folders = [folder] if best.name == folder.name else [folder, best]
        try:
            self._trial.checkpoint(state.global_step, functools.partial(_pack, folders))
        except Stopped:
            _remove_checkpoints(args)
            raise

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any], **_: Any
    ) -> None:
        self._report(args, state, metrics)

    def on_predict(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any], **_: Any
    ) -> None:
        self._report(args, state, metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        _remove_checkpoints(args)

    def _report(self, args: Any, state: Any, metrics: Mapping[str, Any]) -> None:
        for key, value in metrics.items():
            prefix, _, name = key.partition("_")
            split = _SPLITS.get(prefix)
            if split is None or not name or name.endswith(_NOT_METRICS):
                continue
            best = getattr(state, "best_global_step", None) if args.load_best_model_at_end else None
            step = best if split == "test" and best else state.global_step
            task, name = self._task_of(name)
            self._trial.metric(name, value, split=split, step=step, task=task)
            if name == "loss" and self._perplexity:
                exact = math.exp(value) if value < _LARGEST_EXPONENT else None
                self._trial.metric("perplexity", exact, split=split, step=step, task=task)

    def _task_of(self, name: str) -> tuple[str, str]:
        tasks = self._trial.config.tasks
        if len(tasks) == 1:
            return tasks[0], name
        for task in tasks:
            if name.startswith(f"{task}_"):
                return task, name[len(task) + 1 :]
        raise ValueError(
            f"metric {name!r} names none of the tasks {', '.join(tasks)}; pass eval_dataset as a "
            "dict by task"
        )


def _remove_checkpoints(args: Any) -> None:
    """Removes the Trainer's folders, of which the trial has copies."""
    for folder in Path(args.output_dir).glob("checkpoint-*"):
        shutil.rmtree(folder)


def _pack(folders: Sequence[Path], file: Path) -> None:
    with tarfile.open(file, "w") as tar:
        for folder in folders:
            tar.add(folder, arcname=folder.name)
