#!/usr/bin/env python3
"""Fails on an include that the tables below do not allow.

docs/internals/architecture.md describes the folders.

Checks that folders include only what their rows allow, also inside cli/, orchestrator/ and
trainer/; that every arrow is used by an include; that no arrows form a circle; that LibTorch and
SQLite are included only in their folders, and CUDA nowhere; that each source includes the
precompiled headers that it uses; that the CMakeLists.txt of each folder links exactly the folders
of its row; that the tables of docs/internals/architecture.md have these rows; and that only
trainer/modules/ names petlab's kinds of module.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# folder -> the folders it may include
ARROWS = {
    "base": set(),
    "metrics": {"base"},
    "sweeps": {"base", "metrics"},
    "protocol": {"base", "metrics", "sweeps"},
    "fetch": {"base", "sweeps"},
    "trainer": {"base", "metrics", "sweeps", "protocol"},
    "results": {"base", "sweeps", "protocol"},
    "questions": {"base", "metrics", "sweeps", "results"},
    "orchestrator": {"base", "metrics", "sweeps", "protocol", "results"},
    "exchange": {"base", "protocol", "results", "orchestrator"},
    "reports": {"base", "metrics", "sweeps", "results", "questions"},
    "exports": {"base", "protocol", "results"},
    "serving": {"base"},
    "cli": {"base", "metrics", "sweeps", "protocol", "fetch", "results", "questions",
            "orchestrator", "exchange", "reports", "exports", "serving"},
}
# folder -> its subfolders -> the subfolders they may include; files directly in the folder may not
# be included by any of them
INNER = {
    "cli": {
        "options": set(),
        "output": set(),
        "live": {"output"},
        "running": {"options", "output", "live"},
        "decisions": {"options", "output"},
        "answers": {"options", "output"},
        "exchange": {"options", "output"},
        "scoring": {"options"},
        "setup": {"options", "output"},
        "fetching": {"output", "setup", "options"},
    },
    "orchestrator": {
        "host": set(),
        "launching": set(),
        "local": {"host", "launching"},
        "slurm": {"host", "launching"},
        "records": {"host"},
        "recovery": {"host", "records"},
        "planning": {"host", "launching", "recovery"},
        "running": {"host", "launching", "local", "slurm", "records", "recovery", "planning"},
    },
    "trainer": {
        "files": set(),
        "compute": {"files"},
        "tokenizers": {"files"},
        "data": {"files", "tokenizers"},
        "backbones": {"files", "compute", "data"},
        "modules": {"files", "compute", "backbones"},
        "training": {"files", "compute", "tokenizers", "data", "backbones", "modules"},
        "artifact": {"files", "backbones", "modules", "training"},
        "worker": {"files", "compute", "data", "training", "artifact"},
    },
}
# a library's headers -> where they may be included
ROOMS = {
    # One build serves all devices, so CUDA headers are not allowed anywhere.
    r"(cu(da|blas|dnn|solver|sparse|rand|fft)|nccl|nvml|nvrtc|thrust|cub/|hip/|"
    r"(ATen|c10|ATen/native/transformers|torch/csrc)/(cuda|cudnn|hip)/)": (),
    r"(torch|ATen|c10)/": ("trainer/", "tests/trainer/", "bench/trainer"),
    r"sentencepiece": ("trainer/", "tests/trainer/", "metrics/", "tests/metrics/"),
    r"boost/(asio/ip|beast)": ("serving/", "tests/serving/", "tests/fuzz/serving",
                                "tests/orchestrator/event_server"),
    r"zlib\.h": ("serving/", "tests/serving/"),
    r"curl/": ("fetch/", "tests/fetch/"),
    r"archive(_entry)?\.h": ("fetch/", "metrics/", "exchange/", "tests/fetch/"),
    r"(sqlite3|SQLiteCpp)": ("results/", "exports/trackio.cpp", "tests/results/", "bench/results"),
}
# what a source uses -> the header that it, or the header of its name, must include:
# cmake/PetlabOptions.cmake precompiles these, so a compiler would not miss them
PRECOMPILED = {"fmt::": "<fmt/", "nlohmann::": "<nlohmann/json.hpp>", "CLI::": "<CLI/CLI.hpp>"}
KINDS_FOLDER = "trainer/modules/"
KINDS = json.loads((ROOT / KINDS_FOLDER / "catalog.json").read_text())["kinds"]
NAMED_KIND = re.compile(r'"(%s)"|\bmodule\.kind: [a-z]' % "|".join(map(re.escape, KINDS)))
problems = []
followed = set()  # (folder, folder it includes)


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
    if folder in ARROWS and name.endswith(".cpp"):
        header = path.with_suffix(".h")
        texts = [file.read_text() for file in (path, header) if file.exists()]
        code = re.sub("//.*", "", texts[0])
        for use, target in PRECOMPILED.items():
            if re.search(rf"\b{use}", code) and not any(f"#include {target}" in text for text in texts):
                problems.append(f"{name}: uses {use} and does not include {target}")
    if folder in ARROWS and not name.startswith(KINDS_FOLDER):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if NAMED_KIND.search(line.split("//")[0]):
                problems.append(f"{name}:{number}: names a kind of module; only {KINDS_FOLDER} may")
    for number, quote, target in includes(path):
        where = f"{name}:{number}: includes {target}"
        if target.startswith(".."):
            problems.append(f"{where}, must start at the repository's root")
        other = target.split("/")[0]
        if folder in ARROWS and quote == '"' and other in ARROWS:
            followed.add((folder, other))
            if other != folder and other not in ARROWS[folder]:
                problems.append(f"{where}: {folder} may not know {other}")
        inner = INNER.get(folder, {})
        here = name.split("/")[1]
        there = target.split("/")[1] if other == folder and target.count("/") > 1 else ""
        if here in inner and quote == '"' and other == folder and there != here:
            followed.add((f"{folder}/{here}", f"{folder}/{there}"))
            if there not in inner[here]:
                problems.append(f"{where}: {folder}/{here} may not know {folder}/{there}")
        if folder in ARROWS and target.startswith(("tests/", "bench/")):
            problems.append(f"{where}: no folder of the product knows {other}")
        for header, rooms in ROOMS.items():
            if quote == "<" and re.match(header, target):
                if not name.startswith(rooms):
                    who = f"only {', '.join(rooms)} may" if rooms else "nobody may"
                    problems.append(f"{where}, {who}")
                elif "sql" in header and name.endswith(".h"):
                    problems.append(f"{where}: no header may include SQLite's")

for folder, inner in INNER.items():
    for part in sorted(path.name for path in (ROOT / folder).iterdir() if path.is_dir()):
        if part not in inner and list((ROOT / folder / part).glob("*.h")):
            problems.append(f"{folder}/{part} is in no table of scripts/check_includes.py")
arrows = {(folder, other) for folder, known in ARROWS.items() for other in known}
for folder, inner in INNER.items():
    arrows |= {(f"{folder}/{part}", f"{folder}/{other}")
               for part, known in inner.items() for other in known}
for folder, other in sorted(arrows - followed):
    problems.append(f"{folder} may know {other} and includes nothing of it")
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
    words = set(re.findall(r"[\w:./-]+", re.sub(r"#.*", "", cmake.read_text())))
    linked = set(ARROWS) & words - {folder}
    for other in sorted(linked - allowed):
        problems.append(f"{folder}/CMakeLists.txt links {other}: {folder} may not know it")
    for other in sorted(allowed - linked):
        problems.append(f"{folder}/CMakeLists.txt does not link {other}, which {folder} may know")

# docs/internals/architecture.md documents the same arrows; a row may say "all above".
tables = {"": {**ARROWS}, **{f"{folder}/": inner for folder, inner in INNER.items()}}
inside, above = "", []
page = (ROOT / "docs/internals/architecture.md").read_text()
for number, line in enumerate(page.splitlines(), 1):
    if match := re.match(r"Inside `(\w+/)`", line):
        inside, above = match.group(1), []
    row = re.match(r"\| `(\w+)/` \|.*\| ([^|]+) \|$", line)
    if not row or (row[1] == "python" and not inside):  # python has no C++
        continue
    part, said = row[1], row[2]
    where = f"docs/internals/architecture.md:{number}: {inside}{part}"
    named = set(re.findall(r"\w+", re.sub("all above but|all above|nothing|and", "", said)))
    known = set(above) - named if said.startswith("all above") else named
    above.append(part)
    if part not in tables.get(inside, {}):
        problems.append(f"{where} is in no table of scripts/check_includes.py, or here twice")
        continue
    allowed = tables[inside].pop(part)
    if known != allowed:
        problems.append(f"{where} may know {', '.join(sorted(known)) or 'nothing'}, found "
                        f"{', '.join(sorted(allowed)) or 'nothing'} in scripts/check_includes.py")
for inside, missing in tables.items():
    for part in missing:
        problems.append(f"docs/internals/architecture.md has no row for {inside}{part}/")

print("\n".join(problems) if problems else f"Include arrows are clean in {len(listed)} files")
sys.exit(1 if problems else 0)
