#!/usr/bin/env python3
"""Links a program of an ordinary build again, so that it also runs on older Linux.

    link_program.py BUILD PROGRAM OUTPUT

Takes the objects and the command from the build folder and replaces what is linked: third-party
libraries and the C++ library by the static ones of scripts/portable/parts.sh, and glibc by its
stubs. LibTorch stays shared, and is found in the same Python environment: OUTPUT is to be
installed as site-packages/petlab/FOLDER/PROGRAM.
"""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sys

# Libraries that need others, which the shared ones named themselves.
_NEEDS = {
    "curl": ["ssl", "crypto", "z"],
    "archive": ["lzma", "zstd", "bz2", "z", "nettle"],
    "icuuc": ["icudata"],
    "icui18n": ["icuuc", "icudata"],
    "SQLiteCpp": ["sqlite3"],
}
_RENAMED = {"jemalloc": "jemalloc_pic"}
_LIBTORCH = {"torch_cpu", "c10", "gomp"}
_OF_GLIBC = {"m", "dl", "rt", "pthread"}
_SHARED = re.compile(r"(?:.*/lib|-l)(?P<name>[A-Za-z0-9_+-]+?)(?:\.so(?:\.\d+)*)?$")


def link_command(build: pathlib.Path, program: str) -> list[str]:
    """The words of the last command that builds bin/PROGRAM."""
    commands = subprocess.run(
        ["ninja", "-C", build, "-t", "commands", f"bin/{program}"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return [word for word in shlex.split(commands[-1]) if word not in (":", "&&")]


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3]).absolute()
    parts = subprocess.run(
        [pathlib.Path(__file__).parent / "parts.sh"], check=True, capture_output=True, text=True
    ).stdout.strip()
    lib = pathlib.Path(parts, "lib")

    objects: list[str] = []
    static: list[str] = []
    libtorch: list[str] = []
    compiler, *words = link_command(build, sys.argv[2])
    flags = [word for word in words if re.match(r"-(O|f|m|D)", word)]
    for i, word in enumerate(words):
        shared = _SHARED.match(word)
        if word.endswith((".o", ".a")):
            (objects if word.endswith(".o") else static).append(word)
        elif (word.startswith("-") and not shared) or words[i - 1] == "-o":
            continue
        elif shared and shared["name"] in _OF_GLIBC:
            continue  # named below
        elif shared and shared["name"] in _LIBTORCH:
            libtorch.append(word)
        elif shared:
            name = _RENAMED.get(shared["name"], shared["name"])
            static += [str(lib / f"lib{needed}.a") for needed in [name, *_NEEDS.get(name, [])]]
        else:
            sys.exit(f"link_program.py: {word}: unknown in the command that links {sys.argv[2]}")

    libstdcxx = subprocess.run(
        [compiler, "-print-file-name=libstdc++.a"], check=True, capture_output=True, text=True
    ).stdout.strip()
    command = ["gcc", *flags, "-s", "-pie", f"-B{lib}", f"-L{lib}", "-o", output, *objects]
    if libtorch:
        # The C++ library is shared with LibTorch as far as the oldest one goes that LibTorch runs
        # with; what is newer is linked statically, and hidden from LibTorch.
        command += ["-Wl,--exclude-libs,libstdc++.a", "-Wl,-rpath,$ORIGIN/../../torch/lib"]
        static.append(str(lib / "libstdc++.so.6"))
    command += ["-Wl,--as-needed", "-Wl,--gc-sections", "-Wl,--allow-shlib-undefined"]
    command += ["-Wl,--start-group", *static, libstdcxx, "-Wl,--end-group"]
    command += [*libtorch, "-lm", "-ldl", "-lrt"]
    output.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run(command, cwd=build).returncode != 0:
        sys.exit(f"link_program.py: {sys.argv[2]} cannot be linked (the linker's message is above)")


main()
