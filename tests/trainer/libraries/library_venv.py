"""Restarts a script in the virtual environment of scripts/library_venv.sh (scripts/setup.sh --dev)."""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def enter(libraries):
    """Restarts the script with the environment's Python, or exits as skipped if it is missing.

    Call this before importing the libraries. `libraries` is their name in the message.
    """
    if "PETLAB_LIBRARIES" in os.environ:
        return
    found = subprocess.run([SOURCE / "scripts/library_venv.sh", "--there"], stdout=subprocess.PIPE,
                           text=True)
    if found.returncode != 0:
        print(f"skipped: {libraries} not there; scripts/setup.sh --dev installs them")
        sys.exit(77)
    python = found.stdout.strip()
    os.environ |= {"PETLAB_LIBRARIES": python, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
                   "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    os.execv(python, [python, *sys.argv])
