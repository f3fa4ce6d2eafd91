#!/usr/bin/env python3
"""Tests scripts/prose/check.py on bad prose: it reports each fault and ignores code.

Exit code 77 (skipped) if the linter is not installed (scripts/prose_venv.sh installs it).
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PURPOSE = "train the trials that a sweep has left"


class ProseCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def check(self, page, *options):
        (self.root / "page.md").write_text(page)
        done = subprocess.run([PYTHON, "-B", SOURCE / "scripts/prose/check.py", *options, "page.md"],
                              cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()[:-1]

    def petlab(self, purpose=PURPOSE, option="the sweep file"):
        """Writes a program whose help has one command with these texts."""
        program = self.root / "petlab"
        program.write_text(f"""#!/bin/sh
case "$2" in
  "") printf 'Usage: petlab COMMAND\\n\\nRun\\n  run         {PURPOSE}\\n' ;;
  run) printf '%s\\n' '{purpose}' 'Usage: petlab run [OPTIONS] FILE' '' 'Arguments:' \\
         '  FILE                      {option}' '' 'Options:' \\
         '  --quiet                   print only failures' \\
         '                            and notes' ;;
  fields) printf 'word  what\\n' ;;
esac
""")
        program.chmod(0o755)
        return "--petlab", str(program)

    def test_plain_pages_and_help_pass(self):
        self.assertEqual(self.check("# Run\nRun a sweep. It resumes.\n", *self.petlab()), [])

    def test_a_sentence_of_31_words_is_reported_and_one_of_30_is_not(self):
        words = ["word"] + [f"w{number}" for number in range(29)]
        self.assertEqual(self.check(" ".join(words) + ". More.\n"), [])
        words.append("`some code`")
        self.assertEqual(len(words), 31)
        found, = self.check("\n\n- " + " ".join(words) + ". More.\n")
        self.assertIn("page.md:3: 31 words in a sentence, at most 30: word w0", found)

    def test_banned_phrases_are_reported_in_tables_too(self):
        found = self.check("| a |\n| --- |\n| the file tells it |\n\nThe run goes\non.\n")
        self.assertEqual(found, [
            "page.md:3: 'tells'; write \"records\", \"shows\", \"prints\"",
            "page.md:5: 'goes on'; write \"continues\", \"resumes\""])

    def test_doubled_words_are_reported_across_lines(self):
        found, = self.check("The run stops at the\nthe checkpoint.\n")
        self.assertIn("a phrase is repeated", found)

    def test_three_passive_verbs_in_a_sentence_are_reported(self):
        self.assertEqual(self.check("It is read and was closed.\n"), [])
        found, = self.check("It is read, was closed, and is then removed.\n")
        self.assertIn("a chain of passive verbs (is read, was closed", found)

    def test_code_is_not_checked_as_prose(self):
        self.assertEqual(self.check("Run `it goes on`.\n\n```sh\nit goes on\n```\n"), [])

    def test_help_is_checked(self):
        long_purpose = "train the trials that a sweep has left and print a line for each of them"
        self.assertEqual(self.check("# Run\n", *self.petlab(long_purpose)), [
            f"petlab help run (purpose): {len(long_purpose)} characters, at most 65: {long_purpose}"])
        self.assertEqual(self.check("# Run\n", *self.petlab(option="whatever file")), [
            "petlab help run: 'whatever'; write name it: \"you\", \"the user\", "
            "\"another process\""])

    def test_the_lines_of_a_help_text_are_joined(self):
        self.assertEqual(self.check("# Run\n", *self.petlab(option="it goes\n"
                                                            + " " * 28 + "on")), [
            "petlab help run: 'goes on'; write \"continues\", \"resumes\""])


if __name__ == "__main__":
    there = subprocess.run([SOURCE / "scripts/prose_venv.sh", "--there"], stdout=subprocess.PIPE,
                           text=True)
    if there.returncode != 0:
        print("skipped: proselint is missing; scripts/setup.sh --dev installs it")
        sys.exit(77)
    PYTHON = there.stdout.strip()
    unittest.main(verbosity=2)
