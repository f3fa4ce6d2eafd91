#!/usr/bin/env python3
"""Types README.md, AGENTS.md and the tutorial (docs/learn) from top to bottom, in a temporary home.

usage: learn_pages.py FOLDER_OF_PROGRAMS [CLASS...]           on a tiny random backbone
       learn_pages.py FOLDER_OF_PROGRAMS --write [PAGE...]    on MiniLM; writes the output into pages

typed_pages.py describes what is typed and compared. --write needs the results of scripts/quickstart.sh.
The exit code is 77 (skipped) without petlab-trainer, or without Slurm for the page on clusters.
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import unittest

import slurm_cluster
import tiny_world
import typed_pages

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LEARN = SOURCE / "docs/learn"
CLUSTER = LEARN / "6-a-cluster.md"
SNIPPETS = {"movie": "movieReviewSnippets", "amazon": "amazonReviewSnippets",
            "nyt": "nytEditorialSnippets", "tweets": "tweets"}


def tutorial():
    return [LEARN / "README.md", *sorted(set(LEARN.glob("[0-9]*.md")) - {CLUSTER})]


def installed():
    """The folder in which scripts/setup.sh installs for this user."""
    share = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share"
    return pathlib.Path(os.environ.get("PETLAB_HOME") or pathlib.Path(share) / "petlab")


def write_snippets(folder):
    """Writes labelled snippets in the downloaded format: lines of a number, a valence and a text."""
    folder.mkdir(parents=True)
    for name in SNIPPETS.values():
        draw = random.Random(name)
        rows = []
        for number in range(1, 1201 if name.startswith("amazon") else 401):
            valence = round(draw.uniform(-3, 3), 3)
            words = draw.choices(tiny_world.WORDS, k=draw.randint(1, 6))
            rows.append(f"{number}\t{valence}\t{'good' if valence > 0 else 'bad'} {' '.join(words)}")
        (folder / f"{name}_GroundTruth.txt").write_text("\n".join(rows) + "\n")


def write_backbone(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(tiny_world.CONFIG))
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
                                                + tiny_world.WORDS) + "\n")
    tiny_world.write_safetensors(folder / "model.safetensors",
                                 tiny_world.bert_shapes(tiny_world.CONFIG))


class Home:
    """A reader's home folder, with a clone in ~/petlab."""

    def __init__(self, real=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="petlab-home-")).resolve()
        os.chmod(self.folder, 0o755)
        clone = self.folder / "petlab"
        (clone / "build/release").mkdir(parents=True)
        (clone / "build/release/bin").symlink_to(tiny_world.PROGRAMS)
        for name in ("docs", "examples", "python", "scripts", "sweeps"):
            (clone / name).symlink_to(SOURCE / name)
        share = self.folder / ".local/share"
        if real:
            share.mkdir(parents=True)
            (share / "petlab").symlink_to(installed())
        else:
            write_backbone(share / "petlab/models/minilm")
            write_snippets(share / "petlab/data/snippets")
            # The Python that draws figures.
            (share / "petlab/venv").symlink_to(installed() / "venv")
        self.slots = self.folder / ".slots"
        self.slots.mkdir()

    def environment(self, **more):
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith(("PETLAB_", "XDG_")) and name not in ("TERM", "PYTHONPATH")}
        return inherited | {"HOME": str(self.folder), "PETLAB_SLOTS": str(self.slots),
                            "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "PS1": ""} | more

    def typist(self, folder="", **more):
        return typed_pages.Typist(self.folder / folder, self.environment(**more))

    def add_quickstart(self):
        """Adds the files that scripts/quickstart.sh leaves: its sweep, trained."""
        (self.folder / "petlab/build/quickstart").mkdir()
        typist = self.typist()
        code, printed = typist.run("cd ~/petlab/build/quickstart && "
                                   "../release/bin/petlab run ../../sweeps/quickstart.yaml --quiet")
        typist.close()
        if code != 0:
            raise AssertionError("\n".join(printed))

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Pages(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.home = Home()
        self.addCleanup(self.home.remove)

    def type_pages(self, pages, folder="", **environment):
        typist = self.home.typist(folder, **environment)
        self.addCleanup(typist.close)
        typed = 0
        for page in pages:
            for step in typed_pages.steps_of_page(page):
                _, fault = typist.do(step)
                self.assertEqual(fault, "", step.place)
                typed += step.file is None
        return typed


class Readme(Pages):
    def test_its_commands_print_the_output_shown(self):
        self.assertGreaterEqual(self.type_pages([SOURCE / "README.md"], "petlab"), 6)

    def test_no_command_needs_to_name_the_database(self):
        for page in [SOURCE / "README.md", *LEARN.glob("*.md")]:
            for step in typed_pages.steps_of_page(page):
                self.assertNotIn("--db", step.file or step.text, step.place)

    def test_ci_runs_the_scripts_that_are_not_typed(self):
        scripts = {step.text.split()[0] for page in [SOURCE / "README.md", *LEARN.glob("*.md")]
                   for step in typed_pages.steps_of_page(page) if step.text.startswith("scripts/")}
        self.assertEqual(scripts, {"scripts/quickstart.sh", "scripts/test.sh"})
        for script in scripts:
            self.assertIn(f"\n{script}", (SOURCE / ".ci/run").read_text())


class Agents(Pages):
    def test_its_commands_work(self):
        self.assertGreaterEqual(self.type_pages([SOURCE / "AGENTS.md"], **with_programs({})), 20)


class Tutorial(Pages):
    def test_its_commands_print_the_output_shown(self):
        self.home.add_quickstart()
        self.assertGreaterEqual(self.type_pages(tutorial()), 40)

    def test_no_page_is_long(self):
        for page in LEARN.glob("*.md"):
            self.assertLessEqual(len(page.read_text().splitlines()), 120, page)


class Cluster(Pages):
    def setUp(self):
        super().setUp()
        self.cluster = slurm_cluster.Cluster()
        self.addCleanup(self.cluster.stop)

    def test_its_commands_print_the_output_shown(self):
        environment = with_programs(self.cluster.environment())
        self.assertGreaterEqual(self.type_pages([CLUSTER], **environment), 5)


class Typing(unittest.TestCase):
    """Tests of the rules for comparing output."""

    def page(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        page = self.folder / "page.md"
        page.write_text(text)
        typist = typed_pages.Typist(self.folder, dict(os.environ))
        self.addCleanup(typist.close)
        return [typist.do(step)[1] for step in typed_pages.steps_of_page(page)]

    def test_words_must_be_equal_but_not_numbers(self):
        self.assertEqual(self.page("```console\n$ echo 'a 0.7 ± 0.1 in 3 min 4 s'\n"
                                   "a  12 ± 1e-5 in 61 s\n```\n"), [""])
        self.assertIn("printed was:\nb 1", self.page("```console\n$ echo b 1\na 1\n```\n")[0])

    def test_a_missing_or_an_added_line_is_a_fault(self):
        for output in ("", "a\n", "b\n", "a\nb\nc\n", "...\na\n", "b\n...\n", "a\n...\nb\nb\n"):
            self.assertNotEqual(self.page(f"```console\n$ printf 'a\\nb\\n'\n{output}```\n"), [""], output)
        for output in ("a\nb\n", "...\n", "a\n...\n", "...\nb\n", "a\n...\nb\n", "...\na\n...\n"):
            self.assertEqual(self.page(f"```console\n$ printf 'a\\nb\\n'\n{output}```\n"), [""], output)

    def test_a_failing_command_is_a_fault(self):
        self.assertEqual(self.page("```sh\ntrue\nfalse\n```\n"), ["", "exit code 1\n"])

    def test_files_are_saved_and_the_shell_keeps_its_folder(self):
        self.assertEqual(self.page("```sh\nmkdir new\ncd new\n```\nSave this as `x`:\n\n```yaml\na: b\n"
                                   "```\n```console\n$ cat x\na: b\n```\n"), [""] * 4)
        self.assertEqual((self.folder / "new/x").read_text(), "a: b\n")

    def test_an_id_refers_to_the_trial_printed_in_its_place(self):
        here = hashlib.sha256(b"here").hexdigest()[:16]
        self.assertEqual(self.page(f"```console\n$ echo {here} done\n0123456789abcdef done\n"
                                   f"$ test {here[:4]} != 0123 && echo 0123 > id\n```\n"), ["", ""])
        self.assertEqual((self.folder / "id").read_text(), here + "\n")


def with_programs(environment):
    """The environment after the first page's `export PATH=…`."""
    return environment | {"PATH": f"{tiny_world.PROGRAMS}:{environment.get('PATH', os.environ['PATH'])}"}


def write(pages):
    """Types pages with MiniLM and writes the output into them. The page on clusters is typed separately."""
    home = Home(real=True)
    cluster = slurm_cluster.Cluster() if pages == [CLUSTER] else None
    environment = with_programs(cluster.environment() if cluster else {})
    quickstart = home.folder / "petlab/build/quickstart"
    shutil.copytree(SOURCE / "build/quickstart", quickstart)
    typist = None
    for page in pages:
        if typist is None or page.name == "README.md":
            typist = home.typist("petlab" if page.parent == SOURCE else "", **environment)
        outputs = []
        for step in typed_pages.steps_of_page(page):
            found, fault = typist.do(step)
            print(f"{step.place}{': CHANGED' if fault else ''}", flush=True)
            if step.output is not None:
                typist.note_ids(step.output, found)
                outputs.append((step, [line.replace(str(home.folder), "/home/you") for line in found]))
        page.write_text(typed_pages.with_output(page, outputs))
    if cluster:
        cluster.stop()
    home.remove()


if __name__ == "__main__":
    if sys.argv[2:3] == ["--write"]:
        write([pathlib.Path(page).resolve() for page in sys.argv[3:]]
              or [SOURCE / "README.md", *tutorial()])
        sys.exit()
    if not tiny_world.TRAINER.is_file():
        print(f"skipped: {tiny_world.TRAINER} is missing")
        sys.exit(77)
    if "Cluster" in sys.argv[2:] and slurm_cluster.missing_programs():
        print(f"skipped: {', '.join(slurm_cluster.missing_programs())} missing")
        sys.exit(77)
    tiny_world.main()
