#!/usr/bin/env python3
"""Writes shared libraries to link with in place of real ones, which contain only old symbols.

    link_stubs.py FOLDER LIMITS LIBRARY...      LIMITS: GLIBC=2.28,GLIBCXX=3.4.22,CXXABI=1.3.11

A program linked with a stub needs no symbol version above the limits, so it also runs where these
libraries are older than on this machine. A symbol that changed later is linked in its older
version (exp@GLIBC_2.2.5 for exp@GLIBC_2.29); a newer symbol is missing, so that linking fails
unless something else defines it. The programs never load a stub.
"""

from __future__ import annotations

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

Version = tuple[int, ...]
# Num: Value Size Type Bind Vis Ndx Name@Version
_ROW = re.compile(
    r"\s*\d+: [0-9a-f]+\s+(?P<size>\d+|0x[0-9a-f]+) (?P<type>FUNC|IFUNC|OBJECT|TLS|NOTYPE)\s+"
    r"(?P<bind>GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(?P<section>\w+) "
    r"(?P<name>[^@\s]+)(?P<at>@@?)(?P<version>[A-Za-z]+_[0-9.]+)$"
)


def number(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


def symbols(library: str) -> dict[str, list[re.Match[str]]]:
    """The versions of each symbol that the library defines with a default version."""
    table = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True, text=True
    ).stdout
    found = collections.defaultdict(list)
    for line in table.splitlines():
        row = _ROW.match(line)
        if row and row["section"] not in ("UND", "ABS"):
            found[row["name"]].append(row)
    return {name: rows for name, rows in found.items() if any(r["at"] == "@@" for r in rows)}


def newest_within(rows: list[re.Match[str]], limits: dict[str, Version]) -> re.Match[str] | None:
    def order(row: re.Match[str]) -> Version:
        return number(row["version"].partition("_")[2])

    within = [
        row
        for row in rows
        if order(row) <= limits.get(row["version"].partition("_")[0], order(row))
    ]
    return max(within, key=order, default=None)


def assembly(chosen: list[re.Match[str]]) -> str:
    lines = []
    for i, row in enumerate(chosen):
        size = max(int(row["size"], 0), 1)
        section, kind = {
            "OBJECT": (".data", "object"),
            "NOTYPE": (".data", "notype"),
            "TLS": ('.section .tbss,"awT",@nobits', "tls_object"),
        }.get(row["type"], (".text", "function"))
        bind = "weak" if row["bind"] == "WEAK" else "globl"
        lines += [
            section,
            ".balign 16",
            f".{bind} s{i}",
            f".type s{i}, @{kind}",
            f".size s{i}, {size}",
            f"s{i}: .zero {size}",
            f".symver s{i}, {row['name']}@@{row['version']}",
        ]
    return "\n".join(lines) + '\n.section .note.GNU-stack,"",@progbits\n'


def soname(library: str) -> str:
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", library], check=True, capture_output=True, text=True
    ).stdout
    found = re.search(r"Library soname: \[(.*)\]", dynamic)
    if not found:
        sys.exit(f"{library}: has no soname")
    return found[1]


def write_stub(library: str, folder: pathlib.Path, limits: dict[str, Version]) -> None:
    chosen = [row for rows in symbols(library).values() if (row := newest_within(rows, limits))]
    if not chosen:
        sys.exit(f"{library}: no versioned symbols within the limits")
    versions = sorted({row["version"] for row in chosen})
    name = soname(library)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "stub.s")
        script = pathlib.Path(scratch, "versions")
        source.write_text(assembly(chosen))
        script.write_text("".join(f"{v} {{ local: s[0-9]*; }};\n" for v in versions))
        subprocess.run(
            ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={script}",
             "-o", folder / name, source],
            check=True,
        )  # fmt: skip


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    limits = {
        name: number(version)
        for name, version in (limit.split("=") for limit in sys.argv[2].split(","))
    }
    for library in sys.argv[3:]:
        write_stub(library, folder, limits)


main()
