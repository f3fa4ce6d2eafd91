#!/usr/bin/env python3
"""Compares the output of `petlab score` with that of sacrebleu's command, for the systems of WMT17 English-German.

usage: wmt17.py CHECKOUT FOLDER_OF_PROGRAMS   (a checkout of github.com/mjpost/sacrebleu; Python with sacrebleu 2.6.0)

The checkout's test/wmt17_en_de_systems.pkl.bz2 has 16 systems and a reference with 3,004 lines each. The exit code is 1
for any difference that docs/reference/score.md does not list, 77 (skipped) without the file or sacrebleu. sacrebleu
takes minutes.
"""
import bz2
import importlib.util
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile


class Plain(pickle.Unpickler):
    """Loads lists, tuples and texts only; refuses files with anything else."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"found {module}.{name}, expected lists and texts")


def write_systems(file, folder):
    """Writes each system's texts and `reference` to files in the folder. Returns the systems' names."""
    names = []
    for name, lines in Plain(bz2.open(file)).load():
        if name == "reference":
            [lines] = lines
        else:
            names.append(name)
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return names


def calls_of(names):
    """Yields a label and the arguments of `sacrebleu` or `petlab score`."""
    every = ["reference", "-i", *names]
    yield "all, text", [*every, "-m", "bleu", "chrf", "-w", "4", "-f", "text"]
    yield "all, JSON", [*every, "-m", "bleu", "chrf", "-w", "2"]
    yield "all, LaTeX", [*every, "-m", "bleu", "chrf", "--chrf-word-order", "2", "-f", "latex"]
    yield "all, international and lowercase", [*every, "-tok", "intl", "-lc", "-f", "text"]
    yield "paired bootstrap, text", [*every, "-m", "bleu", "chrf", "-pbs", "-f", "text"]
    yield "paired bootstrap, LaTeX", [*every, "-pbs", "-f", "latex"]
    yield "paired randomisation, text", [*every, "-par", "-f", "text"]
    for name in names[:4]:  # a minute each
        yield f"{name}, TER", ["reference", "-i", name, "-m", "ter", "-w", "3", "-f", "text"]
    for name in names:
        one = ["reference", "-i", name]
        yield f"{name}, text", [*one, "-m", "bleu", "chrf", "-w", "2", "-f", "text"]
        yield f"{name}, JSON", [*one, "-w", "4"]
        yield f"{name}, short signature", [*one, "-sh"]
        yield f"{name}, score alone", [*one, "-b"]
        yield f"{name}, floor and characters", [*one, "-s", "floor", "-tok", "char", "-f", "text"]
        yield f"{name}, interval", [*one, "--confidence", "-f", "text"]


def without_explanation(text):
    """Removes the explanation of a paired test, which differs on purpose (docs/reference/score.md)."""
    return re.sub(r" - Each system .*?(?=\n\n-+\nMetric signatures)", "", text, flags=re.DOTALL)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    checkout, programs = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    file = checkout / "test/wmt17_en_de_systems.pkl.bz2"
    if not file.is_file() or importlib.util.find_spec("sacrebleu") is None:
        print(f"skipped: there is no {file}, or this Python has no sacrebleu")
        sys.exit(77)
    same = calls = 0
    with tempfile.TemporaryDirectory() as folder:
        names = write_systems(file, pathlib.Path(folder))
        for label, words in calls_of(names):
            outputs = [subprocess.run([*program, *words], cwd=folder, capture_output=True, encoding="utf-8", check=True,
                                      env=os.environ | {"NO_COLOR": "1", "PYTHONUTF8": "1"}).stdout
                       for program in ([sys.executable, "-m", "sacrebleu"], [programs / "petlab", "score"])]
            calls += 1
            if "latex" in words:  # petlab prints commands for signs without a glyph in pdfLaTeX
                for sign, command in (("±", r"$\pm$"), ("μ", r"$\mu$")):
                    outputs[0] = outputs[0].replace(sign, command)
            if without_explanation(outputs[0]) == without_explanation(outputs[1]):
                same += 1
            else:
                print(f"other: {label}\n{outputs[0]}\n{outputs[1]}")
    print(f"{same} of {calls} outputs are the same")
    sys.exit(same != calls)


if __name__ == "__main__":
    main()
