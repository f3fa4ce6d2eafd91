#!/usr/bin/env python3
"""Fails on an include that follows no arrow of the table below (README.md shows the same arrows).

Checks three things: which folder includes which; that LibTorch and SQLite stay in their rooms; that
the CMakeLists.txt of each folder links no folder that is not in the table.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# folder -> the folders that it may know
ARROWS = {
    "metrics": set(),
    "sweeps": {"metrics"},
    "fetch": {"sweeps"},
    "trainer": {"sweeps", "metrics"},
    "results": {"sweeps", "metrics"},
    "orchestrator": {"sweeps", "results", "metrics"},
    "reports": {"results", "metrics"},
    "cli": {"metrics", "sweeps", "fetch", "results", "orchestrator", "reports"},
}
# a library's headers -> where they may be included
ROOMS = {
    r"(torch|ATen|c10)/": ("trainer/", "tests/trainer/", "bench/trainer"),
    r"sentencepiece": ("trainer/", "tests/trainer/", "metrics/", "tests/metrics/"),
    r"(curl/|archive(_entry)?\.h)": ("fetch/", "tests/fetch/"),
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
        if folder in ARROWS and target.startswith(("tests/", "bench/")):
            problems.append(f"{where}: no folder of the product knows {other}")
        for header, rooms in ROOMS.items():
            if quote == "<" and re.match(header, target):
                if not name.startswith(rooms):
                    problems.append(f"{where}, only {', '.join(rooms)} may")
                elif "sql" in header and name.endswith(".h"):
                    problems.append(f"{where}: no header may include SQLite's")

for folder, allowed in ARROWS.items():
    cmake = ROOT / folder / "CMakeLists.txt"
    words = set(re.findall(r"[\w:.-]+", re.sub(r"#.*", "", cmake.read_text())))
    for other in sorted(set(ARROWS) & words - {folder} - allowed):
        problems.append(f"{folder}/CMakeLists.txt links {other}: {folder} may not know it")

print("\n".join(problems) if problems else f"Include arrows are clean in {len(listed)} files")
sys.exit(1 if problems else 0)
