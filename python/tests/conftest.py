"""Runs a real sweep with the built programs, which are in the folder PETLAB_PROGRAMS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src"
BACKBONE = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


@dataclass
class World:
    """A folder with a backbone, and the programs to run in it."""

    root: Path
    programs: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @property
    def petlab_program(self) -> Path:
        return self.programs / "petlab"

    def start(self, command: Sequence[str | Path]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.root,
            env=os.environ | self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: Sequence[str | Path], code: int = 0) -> tuple[str, str]:
        """Runs a command, checks its exit code, and returns standard output and error."""
        process = self.start(command)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (process.returncode, out, err)
        return out, err

    def petlab(self, *words: str, code: int = 0) -> tuple[str, str]:
        return self.run([self.petlab_program, *words], code)

    def sweep(self, worker: str, *words: str, name: str = "sweep.yaml", code: int = 0) -> str:
        command = ["run", name, "--slots", "2", "--retry-delay", "10ms", "--worker", worker]
        return self.petlab(*command, *words, code=code)[1]


@pytest.fixture(scope="session")
def programs() -> Path:
    named = os.environ.get("PETLAB_PROGRAMS")
    if named is None or not (Path(named) / "petlab").is_file():
        pytest.fail(f"PETLAB_PROGRAMS is {named!r}, must be the folder of the built programs")
    found = Path(named).resolve()
    os.environ["PETLAB_PROGRAM"] = str(found / "petlab")
    return found


def _world(root: Path, programs: Path) -> World:
    world = World(root, programs)
    world.write("backbone/config.json", json.dumps(BACKBONE))
    world.write("backbone/model.safetensors", "weights\n")
    world.write("backbone/vocab.txt", "[PAD]\n")
    for name in ("home", "slots"):
        (root / name).mkdir()
    world.environment = {
        "PETLAB_HOME": str(root / "home"),
        "PETLAB_SLOTS": str(root / "slots"),
        "PETLAB_DB": "sweep.db",
        "PYTHONPATH": str(PACKAGE),
        "LC_ALL": "C.UTF-8",
        # petlab's python3 must be the interpreter of the tests.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return world


@pytest.fixture
def world(tmp_path: Path, programs: Path) -> World:
    return _world(tmp_path, programs)


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Callable[[str], World]:
    """Creates worlds for a whole module."""
    return lambda name: _world(tmp_path_factory.mktemp(name), programs)


SCRIPTED = """sweep: scripted
base:
  backbone: ./backbone
  module.kind: adapter
  user: {steps: 8, metrics: 2, validate_every: 2, checkpoint_every: 4}
variants:
  vanilla: {module.share: false}
  shared: {module.share: true}
  masked: {module.share: true, module.mask: learned}
  low_rank: {module.kind: lora, module.rank: 8, user.steps: 6}
grid:
  task: [cola, rte]
  seed: [42, 43, 44]
"""


@pytest.fixture(scope="session")
def swept(worlds: Callable[[str], World]) -> World:
    """24 finished scripted trials in sweep.db, some of them also in a second sweep."""
    world = worlds("swept")
    world.write("sweep.yaml", SCRIPTED)
    worker = str(world.programs / "scripted-worker")
    world.sweep(worker)
    again = SCRIPTED.replace("sweep: scripted", "sweep: again").replace("vanilla:", "plain:")
    world.write("again.yaml", again[: again.index("  shared:")] + again[again.index("grid:") :])
    world.sweep(worker, "--db", "sweep.db", "--runs", "sweep.runs", name="again.yaml")
    return world


@pytest.fixture
def copied(swept: World, tmp_path: Path) -> Path:
    """A copy of the database, which tests may damage."""
    file = tmp_path / "copy.db"
    swept.run(["sqlite3", "sweep.db", f".backup {file}"]) if shutil.which("sqlite3") else None
    if not file.exists():
        shutil.copy(swept.root / "sweep.db", file)
    return file
