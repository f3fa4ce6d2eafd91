#!/usr/bin/env python3
"""Fails on an include that follows no arrow of the tables below (docs/architecture.md tells of them).

Checks which folder includes which, inside orchestrator/ and trainer/ too; that no arrows go in a
circle; that LibTorch and SQLite stay in their rooms; that the CMakeLists.txt of each folder links the
folders of its row and no other.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# folder -> the folders that it may know
ARROWS = {
    "base": set(),
    "metrics": {"base"},
    "sweeps": {"base", "metrics"},
    "protocol": {"base", "metrics", "sweeps"},
    "fetch": {"base", "sweeps"},
    "trainer": {"base", "metrics", "sweeps", "protocol"},
    "results": {"base", "metrics", "sweeps", "protocol"},
    "analysis": {"base", "metrics", "sweeps", "results"},
    "orchestrator": {"base", "metrics", "sweeps", "protocol", "results"},
    "reports": {"base", "metrics", "results"},
    "cli": {"base", "metrics", "sweeps", "protocol", "fetch", "results", "analysis",
            "orchestrator", "reports"},
}
# folder -> its own folders -> those of them that they may know; what lies in the folder itself is
# known by none of them
INNER = {
    "orchestrator": {
        "host": set(),
        "launching": set(),
        "local": {"host", "launching"},
        "slurm": {"host", "launching"},
        "records": {"host"},
        "recovery": {"host", "records"},
        "exchange": {"host", "records", "recovery"},
        "planning": {"host", "launching", "recovery"},
        "running": {"host", "launching", "local", "slurm", "records", "recovery", "planning"},
    },
    "trainer": {
        "files": set(),
        "compute": {"files"},
        "tokenizers": {"files"},
        "data": {"files", "tokenizers"},
        "backbones": {"files", "compute", "tokenizers", "data"},
        "modules": {"files", "compute", "backbones"},
        "training": {"files", "compute", "tokenizers", "data", "backbones", "modules"},
        "artifact": {"files", "compute", "backbones", "modules", "training"},
        "worker": {"files", "compute", "data", "backbones", "training", "artifact"},
    },
}
# a library's headers -> where they may be included
ROOMS = {
    r"(torch|ATen|c10)/": ("trainer/", "tests/trainer/", "bench/trainer"),
    r"sentencepiece": ("trainer/", "tests/trainer/", "metrics/", "tests/metrics/"),
    r"curl/": ("fetch/", "tests/fetch/"),
    r"archive(_entry)?\.h": ("fetch/", "metrics/", "orchestrator/exchange/", "tests/fetch/"),
    r"(sqlite3|SQLiteCpp)": ("results/", "tests/results/", "bench/results"),
}
problems = []


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


listed = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp"],
    cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
for name in listed:
    path = ROOT / name
    if not path.exists():
        continue
    folder = name.split("/")[0]
    for number, quote, target in includes(path):
        where = f"{name}:{number}: includes {target}"
        if target.startswith(".."):
            problems.append(f"{where}, must start at the repository's root")
        other = target.split("/")[0]
        if folder in ARROWS and quote == '"' and other in ARROWS:
            if other != folder and other not in ARROWS[folder]:
                problems.append(f"{where}: {folder} may not know {other}")
        inner = INNER.get(folder, {})
        here = name.split("/")[1]
        there = target.split("/")[1] if other == folder and target.count("/") > 1 else ""
        if here in inner and quote == '"' and other == folder and there != here:
            if there not in inner[here]:
                problems.append(f"{where}: {folder}/{here} may not know {folder}/{there}")
        if folder in ARROWS and target.startswith(("tests/", "bench/")):
            problems.append(f"{where}: no folder of the product knows {other}")
        for header, rooms in ROOMS.items():
            if quote == "<" and re.match(header, target):
                if not name.startswith(rooms):
                    problems.append(f"{where}, only {', '.join(rooms)} may")
                elif "sql" in header and name.endswith(".h"):
                    problems.append(f"{where}: no header may include SQLite's")

for folder, inner in INNER.items():
    for part in sorted(path.name for path in (ROOT / folder).iterdir() if path.is_dir()):
        if part not in inner and list((ROOT / folder / part).glob("*.h")):
            problems.append(f"{folder}/{part} is in no table of scripts/check_includes.py")
for table in (ARROWS, *INNER.values()):
    done = set()
    while len(done) < len(table):
        more = {folder for folder, known in table.items() if known <= done} - done
        if not more:
            problems.append(f"the arrows go in a circle: {', '.join(sorted(set(table) - done))}")
            break
        done |= more
for folder, allowed in ARROWS.items():
    cmake = ROOT / folder / "CMakeLists.txt"
    words = set(re.findall(r"[\w:.-]+", re.sub(r"#.*", "", cmake.read_text())))
    linked = set(ARROWS) & words - {folder}
    for other in sorted(linked - allowed):
        problems.append(f"{folder}/CMakeLists.txt links {other}: {folder} may not know it")
    for other in sorted(allowed - linked):
        problems.append(f"{folder}/CMakeLists.txt does not link {other}, which {folder} may know")

print("\n".join(problems) if problems else f"Include arrows are clean in {len(listed)} files")
sys.exit(1 if problems else 0)
