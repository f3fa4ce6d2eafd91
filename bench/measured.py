"""Measures the time and memory of a command, for the benchmarks in this folder."""
import os
import subprocess
import sys
import time


def measured(words, folder):
    """Wall seconds, processor seconds and peak memory in MiB. Exits if the command fails."""
    began = time.monotonic()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{words} failed: {said}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
