"""A PyTorch training loop that saves, stops and resumes (docs/python.md)."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from .errors import WorkerError
from .trial import Trial


class Loop:
    """The steps of a training loop, from the one after the checkpoint to the last.

        for step in Loop(trial, steps=1000, model=model, optimizer=optimizer):
            loss = ...
            trial.progress(step, 1000, loss)

    A checkpoint holds what the state_dict() of each part returns, and the states of the random
    generators of Python, NumPy and PyTorch. Frozen parameters of modules are left out. It is
    written every `every` steps (default: training.checkpoint_every; 0: only to stop), and when
    petlab asks the worker to stop. Draw a step's data from its number, or from these generators, so
    that a resumed trial gets the same.
    """

    def __init__(self, trial: Trial, steps: int, *, every: int | None = None, **parts: Any) -> None:
        self._trial = trial
        self._steps = steps
        self._every = trial.config.training.checkpoint_every if every is None else every
        self._parts = parts

    def __iter__(self) -> Iterator[int]:
        """Yields steps from 1. Raises WorkerError if the checkpoint has other parts."""
        begin = self._restored()
        for step in range(begin + 1, self._steps + 1):
            yield step
            due = self._every > 0 and step % self._every == 0
            if step < self._steps and (due or self._trial.stopping):
                self._trial.checkpoint(step, functools.partial(self._save, step))

    def _save(self, step: int, file: Path) -> None:
        states = {name: _trained_state(part) for name, part in self._parts.items()}
        torch.save({"step": step, "parts": states, "random": _random_state()}, file)

    def _restored(self) -> int:
        state = self._trial.restore(
            lambda file: torch.load(file, map_location="cpu", weights_only=True)
        )
        if state is None:
            return 0
        if state["parts"].keys() != self._parts.keys():
            raise WorkerError(
                f"the checkpoint has the parts {', '.join(state['parts'])}, must have "
                f"{', '.join(self._parts)}"
            )
        for name, part in self._parts.items():
            _load(name, part, state["parts"][name])
        _set_random_state(state["random"])
        return int(state["step"])


def _frozen(module: torch.nn.Module) -> set[str]:
    return {name for name, one in module.named_parameters() if not one.requires_grad}


def _trained_state(part: Any) -> Any:
    state = part.state_dict()
    if not isinstance(part, torch.nn.Module):
        return state
    frozen = _frozen(part)
    return {name: value for name, value in state.items() if name not in frozen}


def _load(name: str, part: Any, state: Any) -> None:
    if not isinstance(part, torch.nn.Module):
        part.load_state_dict(state)
        return
    found = part.load_state_dict(state, strict=False)
    wrong = [*found.unexpected_keys, *(set(found.missing_keys) - _frozen(part))]
    if wrong:
        raise WorkerError(f"{name}: the checkpoint was written by another model: {wrong[0]}")


def _random_state() -> dict[str, Any]:
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if (numpy := sys.modules.get("numpy")) is not None:
        kind, keys, *rest = numpy.random.get_state()
        state["numpy"] = [kind, keys.tolist(), *rest]
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(tuple(state["numpy"]))
