"""A trial's configuration, with the typed fields of sweep files.

Names, types and defaults match petlab's table of fields (`petlab help fields`); a test checks this.
Fields that do not apply to the trial, such as `module.rank` for an adapter, are None.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import WorkerError


@dataclass(frozen=True)
class ModuleConfig:
    """The module that is trained in the backbone (the paper's section 3)."""

    kind: str = "adapter"
    share: bool | None = None
    mask: str | None = None
    sparsity_ratio: float | None = None
    bottleneck: int | None = None
    rank: int | None = None
    alpha: float | None = None
    prefix_length: int | None = None
    prefix_hidden: int | None = None
    combine: str = "or"
    cross_attention: bool = False
    hyper_embedding: int | None = None
    hyper_hidden: int | None = None
    hyper_projected: int | None = None


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation settings. `max_grad_norm` 0: no clipping; `dropout` -1: that of the backbone;
    `steps`, `warmup_steps` and `evaluate_every` 0: derived from the epochs."""

    epochs: int = 20
    batch_size: int = 128
    gradient_accumulation: int = 1
    learning_rate: float = 1e-4
    mask_learning_rate: float | None = None
    weight_decay: float = 0.1
    warmup_ratio: float = 0.1
    max_grad_norm: float = 1.0
    dropout: float = -1.0
    checkpoint_every: int = 0
    steps: int = 0
    warmup_steps: int = 0
    label_smoothing: float = 0.0
    evaluate_every: int = 0
    compute: str = "float32"


@dataclass(frozen=True)
class DataConfig:
    """Limits for the data. `max_…_examples` 0: no limit."""

    max_tokens: int = 128
    max_train_examples: int = 0
    max_validation_examples: int = 0
    max_test_examples: int = 0
    max_target_tokens: int = 128


@dataclass(frozen=True)
class DecodingConfig:
    """How a T5 generates texts. `max_tokens` 0: derived from the task's targets."""

    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    min_tokens: int = 0
    max_tokens: int = 0
    no_repeat_ngrams: int = 0


@dataclass(frozen=True)
class EvaluationConfig:
    """What an evaluation stores. It does not affect any results."""

    keep_predictions: bool = False


@dataclass(frozen=True)
class Config:
    """The complete configuration of a trial."""

    backbone: str | None
    """None: the worker declares that its trials have none."""
    tasks: tuple[str, ...]
    seed: int = 42
    module: ModuleConfig = field(default_factory=ModuleConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    data: DataConfig = field(default_factory=DataConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    user: Mapping[str, Any] = field(default_factory=dict)
    """The sweep file's group of free fields, for your own workers."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The whole configuration as in the file, including fields unknown to this version."""

    def __getitem__(self, name: str) -> Any:
        """The value of a field by its dotted name, also one that the worker declares:
        `config["module.targets"]`. Raises KeyError if it does not apply to the trial."""
        value: Any = self.raw
        for key in name.split("."):
            if not isinstance(value, Mapping) or key not in value:
                raise KeyError(name)
            value = value[key]
        return value

    @property
    def task(self) -> str:
        """The trial's only task. Raises ValueError if it has several."""
        if len(self.tasks) != 1:
            raise ValueError(f"the trial has the tasks {', '.join(self.tasks)}, not one")
        return self.tasks[0]


GROUPS: Mapping[str, type[Any]] = {
    "module": ModuleConfig,
    "training": TrainingConfig,
    "data": DataConfig,
    "decoding": DecodingConfig,
    "evaluation": EvaluationConfig,
}
"""The groups of a sweep file's fields, in the order of the database's columns."""


def _fits(value: object, wanted: object) -> bool:
    if isinstance(wanted, types.UnionType):
        return any(_fits(value, part) for part in typing.get_args(wanted))
    if wanted is bool:
        return isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted is str:
        return isinstance(value, str)
    return value is None and wanted is type(None)


def _name_of(wanted: object) -> str:
    if isinstance(wanted, types.UnionType):
        parts = [part for part in typing.get_args(wanted) if part is not type(None)]
        return " or ".join(_name_of(part) for part in parts)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names[typing.cast(type, wanted)]


def _group(name: str, found: object) -> Any:
    kind = GROUPS[name]
    if not isinstance(found, Mapping):
        raise WorkerError(f"config.{name} is {found!r}, must be an object")
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for row in dataclasses.fields(kind):
        if row.name not in found:
            continue
        value, wanted = found[row.name], hints[row.name]
        if not _fits(value, wanted):
            raise WorkerError(f"config.{name}.{row.name} is {value!r}, must be {_name_of(wanted)}")
        is_float = wanted is float or float in typing.get_args(wanted)
        values[row.name] = float(value) if is_float and value is not None else value
    return kind(**values)


def config_from_json(found: object) -> Config:
    """Parses the `config` of a trial.json. Raises WorkerError with the field."""
    if not isinstance(found, Mapping):
        raise WorkerError(f"config is {found!r}, must be an object")
    tasks = found.get("tasks", [found["task"]] if "task" in found else None)
    if not isinstance(tasks, list) or not tasks or not all(isinstance(task, str) for task in tasks):
        raise WorkerError(f"config.tasks is {tasks!r}, must be a list of names")
    for key, wanted in (("backbone", str), ("seed", int)):
        if key == "backbone" and key not in found:
            continue
        if not _fits(found.get(key), wanted):
            raise WorkerError(f"config.{key} is {found.get(key)!r}, must be {_name_of(wanted)}")
    user = found.get("user", {})
    if not isinstance(user, Mapping):
        raise WorkerError(f"config.user is {user!r}, must be an object")
    return Config(
        backbone=found.get("backbone"),
        tasks=tuple(tasks),
        seed=found["seed"],
        user=user,
        raw=found,
        **{name: _group(name, found.get(name, {})) for name in GROUPS},
    )
