"""Adds petlab's programs to the wheel if scripts/wheels.sh has put them into the folder programs/.

Without that folder the wheel holds the Python package alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def trainers(root: str) -> list[Path]:
    """The folders torch-X.Y, oldest version first."""
    return sorted(
        Path(root, "programs").glob("torch-*"),
        key=lambda folder: [int(part) for part in folder.name.removeprefix("torch-").split(".")],
    )


class Metadata(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        built = trainers(self.root)
        metadata["dependencies"] = ["vl-convert-python>=1.9,<2"] if built else []
        metadata["optional-dependencies"] = {"pandas": ["pandas>=2.0"]}
        if built:
            versions = [folder.name.removeprefix("torch-") for folder in built]
            major, newest = versions[-1].split(".")
            between = f">={versions[0]},<{major}.{int(newest) + 1}"
            metadata["optional-dependencies"]["trainer"] = [f"torch{between}"]


class Programs(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        programs = Path(self.root, "programs")
        if self.target_name != "wheel" or not programs.is_dir():
            return
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-linux_x86_64"  # scripts/wheels.sh has auditwheel refine it
        for program in ("petlab", "petlab-fetch", "petlab-trainer-check"):
            build_data["shared_scripts"][str(programs / program)] = program
        for launcher in Path(self.root, "launchers").iterdir():
            build_data["shared_scripts"][str(launcher)] = launcher.name
        for folder in trainers(self.root):
            build_data["force_include"][str(folder)] = f"petlab/{folder.name}"


def get_build_hook() -> type[BuildHookInterface[Any]]:
    return Programs


def get_metadata_hook() -> type[MetadataHookInterface]:
    return Metadata
