"""What a worker can train: declarations for `Worker` (docs/reference/worker-protocol.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TYPES = {str: "text", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Field:
    """A field of sweep files, such as `Field("module.targets", str, default="qv")`."""

    name: str
    """GROUP.NAME."""
    type: type[str] | type[int] | type[float] | type[bool]
    default: str | int | float | bool | None = None
    """None: each trial must set it."""
    help: str = ""
    values: Sequence[str] = ()
    """The allowed texts; empty: any."""
    min: float | None = None
    max: float | None = None
    kinds: Sequence[str] = ()
    """The kinds of module that have the field; empty: all."""

    def declaration(self) -> dict[str, Any]:
        """Returns its entry in `catalog.fields`."""
        if self.type not in _TYPES:
            raise ValueError(
                f"field {self.name}: type is {self.type!r}, must be str, int, float or bool"
            )
        entry: dict[str, Any] = {"type": _TYPES[self.type], "help": self.help}
        for key, value in (("default", self.default), ("min", self.min), ("max", self.max)):
            if value is not None:
                entry[key] = value
        for key, texts in (("values", self.values), ("kinds", self.kinds)):
            if texts:
                entry[key] = list(texts)
        return entry


@dataclass(frozen=True)
class Kind:
    """A kind of module: a value of `module.kind`."""

    name: str
    help: str = ""
    uses: Sequence[str] = ()
    """petlab's own fields of the group `module` that apply to it, such as `module.rank`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults of petlab's own fields for this kind."""
    storage: Mapping[str, Any] | str = "reported"
    """Its storage formulas, with the keys of docs/reference/worker-protocol.md; `reported`: only
    what `finish` reports."""
    size: str = ""
    """Which name in `sizes` is the module's size, which `match_storage_of` solves."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    """Names in the formulas for fields: `{"r": "module.rank"}`."""

    def declaration(self) -> dict[str, Any]:
        """Returns the kind's entry in the catalog."""
        found: dict[str, Any] = {"help": self.help, "uses": list(self.uses)}
        if self.defaults:
            found["defaults"] = dict(self.defaults)
        if self.storage != "reported":
            found["storage"] = self.storage if isinstance(self.storage, str) else dict(self.storage)
        if self.sizes:
            found.update(size=self.size, sizes=dict(self.sizes))
        return found


@dataclass(frozen=True)
class Metric:
    """A metric that the worker reports. Its direction decides what is best."""

    name: str
    better: str = "higher"
    """`higher` or `lower`."""


@dataclass(frozen=True)
class DeclaredTask:
    """A task whose data the worker knows, so that sweep files can name it without a file."""

    name: str
    metrics: Sequence[str]
    select_by: Sequence[str] = ()
    """The metrics whose mean selects the best step; empty: the first."""
    help: str = ""


@dataclass(frozen=True)
class Catalog:
    """All declarations of a worker."""

    version: int = 1
    """Raise it when a default changes: all trials then get new ids."""
    backbones: Sequence[str] | None = None
    """The `model_type` of the backbones; empty: trials have no backbone; None: any."""
    backbone_files: Sequence[str] = ()
    """Patterns of the files that determine a trial's numbers; empty: configuration, weights and
    tokenizer."""
    uses: Sequence[str] | None = None
    """petlab's own fields outside the group `module` that the worker obeys; None: all."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Other defaults of petlab's own fields."""
    kinds: Iterable[Kind] = ()
    """Empty: petlab's own kinds."""
    fields: Iterable[Field] = ()
    metrics: Iterable[Metric] = ()
    tasks: Iterable[DeclaredTask] = ()

    def declaration(self) -> dict[str, Any]:
        """Returns the object `catalog` that `--describe` prints; petlab checks it."""
        found: dict[str, Any] = {"version": self.version}
        if self.backbones is not None:
            found["backbones"] = list(self.backbones)
        if self.backbone_files:
            found["backbone_files"] = list(self.backbone_files)
        if self.uses is not None:
            found["uses"] = list(self.uses)
        groups: dict[str, dict[str, Any]] = {
            "defaults": dict(self.defaults),
            "kinds": {k.name: k.declaration() for k in self.kinds},
            "fields": {f.name: f.declaration() for f in self.fields},
            "metrics": {m.name: {"better": m.better} for m in self.metrics},
            "tasks": {
                t.name: {
                    "help": t.help,
                    "metrics": list(t.metrics),
                    "select_by": list(t.select_by),
                }
                for t in self.tasks
            },
        }
        found.update({name: group for name, group in groups.items() if group})
        return found
