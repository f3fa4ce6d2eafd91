#!/usr/bin/env python3
"""A fake nvidia-smi that answers petlab's queries from files in the folder FAKE_GPUS.

`gpus` has a line `index uuid total_mib` for each GPU, `others` lines `uuid mib` for the memory of
other users, and UUID.PID the MiB of one process. If there is a file `broken`, its text is printed
and the exit code is 9."""
import os
import pathlib
import sys

WANTED = ["--query-gpu=index,uuid,memory.total,memory.used", "--format=csv,noheader,nounits"]

MODES = ["--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"]
DRIVER = ["--query-gpu=driver_version", "--format=csv,noheader"]

folder = pathlib.Path(os.environ["FAKE_GPUS"])
if sys.argv[1:] not in (WANTED, MODES, DRIVER):
    sys.exit(f"asked for {sys.argv[1:]}, knows {WANTED}")
if (folder / "broken").exists():
    print((folder / "broken").read_text(), end="")
    sys.exit(9)
if sys.argv[1:] == MODES:
    for line in (folder / "gpus").read_text().splitlines():
        print(f"{line.split()[1]}, Disabled")
    sys.exit(0)
if sys.argv[1:] == DRIVER:
    print("550.54.15\n" * len((folder / "gpus").read_text().splitlines()), end="")
    sys.exit(0)


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


used = {}
if (folder / "others").exists():
    for line in (folder / "others").read_text().splitlines():
        used[line.split()[0]] = int(line.split()[1])
for file in folder.glob("GPU-*.*"):
    uuid, pid = file.name.rsplit(".", 1)
    if lives(pid):
        used[uuid] = used.get(uuid, 0) + int(file.read_text() or 0)
for line in (folder / "gpus").read_text().splitlines():
    index, uuid, total = line.split()
    print(f"{index}, {uuid}, {total}, {used.get(uuid, 0)}")
