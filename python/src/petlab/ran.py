"""What a worker's process runs: Python, the packages and the user's own files that it imported."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

# A worker that imports more files of its user keeps them in a repository, which petlab records.
_MOST_MODULES = 500
_MOST_BYTES = 16 << 20
_INSTALLED = {"site-packages", "dist-packages"}


class Ran:
    """The imports of this process. Each is looked at once, soon after it was imported.

    A file that is edited later is therefore reported as it was loaded.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._tops = {__package__}
        # Its own version, wherever it was imported from.
        self._packages = {__package__: getattr(sys.modules[__package__], "__version__", "")}
        self._modules: dict[str, str] = {}
        self._left_out = 0
        self._distributions: dict[str, list[str]] | None = None

    def provenance(self) -> dict[str, Any]:
        """Returns the `provenance` of an event (docs/reference/worker-protocol.md)."""
        for name, module in list(sys.modules.items()):
            if name not in self._seen:
                self._seen.add(name)
                self._look_at(name, module)
        said: dict[str, Any] = {
            "python": platform.python_version(),
            "packages": dict(sorted(self._packages.items())),
            "modules": dict(sorted(self._modules.items())),
        }
        if self._left_out:
            said["modules_left_out"] = self._left_out
        return said | _gpu()

    def _look_at(self, name: str, module: object) -> None:
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in sys.builtin_module_names:
            return
        if top == __package__:
            return
        # petlab digests the script in its command, but not `python3 -m package`.
        if top == "__main__" and getattr(module, "__spec__", None) is None:
            return
        file = getattr(module, "__file__", None)
        file = Path(file) if isinstance(file, str) else None
        if top not in self._tops:
            self._tops.add(top)
            self._packages.update(self._versions(top))
        if file is None or file.suffix != ".py" or _INSTALLED.intersection(file.parts):
            return
        if len(self._modules) == _MOST_MODULES:
            self._left_out += 1
            return
        with contextlib.suppress(OSError):
            if file.stat().st_size <= _MOST_BYTES:
                self._modules[name] = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"

    def _versions(self, top: str) -> dict[str, str]:
        """The installed distributions with a module of that name, and their versions."""
        # Damaged metadata of some package must not fail a trial.
        with contextlib.suppress(Exception):
            return {top: metadata.version(top)}  # much faster than the way below
        with contextlib.suppress(Exception):
            if self._distributions is None:
                self._distributions = dict(metadata.packages_distributions())
            return {name: metadata.version(name) for name in self._distributions.get(top, ())}
        return {}


def _gpu() -> dict[str, str]:
    """The GPU and its driver, if PyTorch uses one. Asking earlier would occupy its memory."""
    said: dict[str, str] = {}
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            said["gpu"] = str(torch.cuda.get_device_name())
            text = Path("/proc/driver/nvidia/version").read_text()
            for word in text.partition("\n")[0].split():
                if "." in word and word.replace(".", "").isdigit():
                    said["gpu_driver"] = word
                    break
    return said
