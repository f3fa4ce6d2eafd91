#!/usr/bin/env python3
"""Reruns tests of the store and the runs folder, and every command, under other settings of the machine.

usage: settings.py FOLDER_OF_PROGRAMS [Settings.test_ROW...]

ROWS is the table. A row fails unless its setting shows in a program. With PETLAB_TEST_ALL_SETTINGS=1, every row with
tests reruns all of TESTS except for those that it names as `unfit`, which takes half an hour or more.
"""
import errno
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from typing import Callable, NamedTuple

import tiny_world
from exchange_world import ExchangeWorld
from scripted_world import WORKER, faulty
from tiny_world import PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent
ALL = os.environ.get("PETLAB_TEST_ALL_SETTINGS") == "1"

# Programs of C++ tests end with _tests.
TESTS = ["bad_places", "code_capture", "events", "exchange", "garbage", "half_made_files", "injected_faults",
         "interrupts", "live_view", "many_at_once", "migration", "places", "power_cut", "questions",
         "random_outcomes", "remarks", "runs_folders", "serving", "signals", "starters", "steering",
         "strange_values", "tables", "base_tests", "protocol_tests", "results_tests", "orchestrator_tests"]

# Each command is run with and without a setting, in this order, and gives the same answer.
COMMANDS = """
plan sweep.yaml --worker ./worker.py
status sweep.yaml
results
best --metric accuracy
show {done}
logs {done}
history {done} --metric accuracy
compare small large
report sweep
report sweep --out {out}/pages
query "SELECT * FROM results"
note --sweep shared
tag
db gc --dry-run
db check
db export tables {out}/tables
db export archive {out}/shared.tar.gz
db backup {out}/copy.db
db rebuild --db {out}/new.db --runs sweep.runs
db merge sweep.db --other-runs sweep.runs --db {out}/merged.db --runs {out}/merged.runs
tag {done} +good
note {done} text
hide {done} --why odd
hide --undo {done}
discard {done} --why wrong
cancel {open}
retry {open}
db import
db import other.tar.gz
db merge other.db
db gc
run sweep.yaml --slots 2 --worker ./worker.py --quiet
stop sweep.yaml
db update
""".strip().split("\n")
RUN = "run sweep.yaml --slots 2 --worker ./worker.py --quiet"
# Times, durations, sizes of files with times, and names of runs differ from run to run.
VARIES = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.]+|\b[\d.]+ (ms|s|min|h|d|KiB)\b|\b\d+-\d+-[0-9a-f]{8}\b")


class Row(NamedTuple):
    name: str
    shows: Callable  # checks that the setting reaches the programs
    tests: dict[str, list[str]] = {}  # cases to rerun: of Python tests, or sources of C++ tests without _test.cpp
    variables: Callable | dict = {}  # of all programs
    faults: str = ""  # rules of tests/support/fault_shim.cpp; failures are appended to LOG
    enter: Callable = lambda case: None  # returns a function that each process calls first
    folder: str = "temporary"  # folder for temporary files, in which tests create their worlds
    answers: dict[str, tuple] = {}  # exit code and messages of commands with another answer under this setting
    disk: bool = False  # the commands run on a disk that becomes read-only
    unfit: dict[str, str] = {}  # tests that make no sense under this setting, and why


def refused(messages):
    """The answers to commands that fail. Each message comes with its commands."""
    return {command: (1, message) for message, commands in messages.items() for command in commands}


READ_ONLY = refused({
    "petlab: ROOT/sweep.runs/.inbox: cannot be created: Read-only file system":
        ["tag {done} +good", "note {done} text", "hide {done} --why odd", "discard {done} --why wrong",
         "cancel {open}", "retry {open}"],
    "{done} is not hidden": ["hide --undo {done}"],
    "petlab: sweep.db: cannot record a sweep: the file or its folder is read-only; make both writable or name another "
    "database with --db": ["db import"],
    "petlab: ROOT/sweep.runs/.locks/incoming.lock: the lock file cannot be opened: Read-only file system":
        ["db import other.tar.gz", "db merge other.db", "db gc"],
    "petlab: ROOT/sweep.runs: the runs folder cannot be written: Read-only file system (choose another with --runs)":
        [RUN],
})
LOCK = ("the file cannot be locked: No locks available; its folder must be on a file system with flock (Lustre: mount "
        "option flock; NFS: lockd); choose other folders with --runs and PETLAB_SLOTS")
ONE_WORKER = {RUN: (0, "running at most 1 worker, not 2: the limit of open files is 64; raise it with `ulimit -n` to "
                    "at least 67")}
NO_LOCKS = refused({
    f"petlab: TOP/out/merged.runs/.locks/incoming.lock: {LOCK}":
        ["db merge sweep.db --other-runs sweep.runs --db {out}/merged.db --runs {out}/merged.runs"],
    f"petlab: ROOT/sweep.runs/.locks/incoming.lock: {LOCK}":
        ["db import other.tar.gz", "db merge other.db", "db gc"],
    f"petlab: ROOT/sweep.runs/.locks/….lock: {LOCK}": [RUN, "stop sweep.yaml"],
})


# How the settings show.

def has_failures(case):
    case.assertNotEqual(case.failures(), "")


def uses_a_rollback_journal(case):
    case.assertEqual((case.root / "sweep.db").read_bytes()[18:20], b"\1\1")
    for call in ("statfs ", "renameat2 "):
        case.assertIn(call, case.failures())


def prints_the_folder(case):
    case.assertIn(case.row.folder, case.start("plan", "sweep.yaml").communicate()[0].decode())


def started_programs_have_the_locale(case):
    case.ran("run", "sweep.yaml", "--only", "seed=1", "--rerun", "all", "--worker", "./worker.py",
             "--on-event", "locale charmap >charmap; locale decimal_point >>charmap")
    case.assertEqual((case.root / "charmap").read_text(), "ISO-8859-9\n,\n")


def has_a_local_time(case):
    local = "SELECT strftime('%H:%M', 0, 'unixepoch', 'localtime') AS t"
    case.assertEqual(case.query(local), [{"t": "05:45"}])


def hides_new_files(case):
    readable = [path for path in case.out.rglob("*") if path.stat().st_mode & 0o077]
    case.assertEqual(readable, [])


def has_few_descriptors(case):
    done = case.ran("run", "sweep.yaml", "--rerun", "all", "--slots", 64, "--worker", "./worker.py")
    case.assertIn("the limit of open files is 64;", done.err)


def has_two_processors(case):
    facts = json.loads(case.petlab("doctor", "--json", "--worker", WORKER).out)
    cores = next(check for check in facts["checks"] if check["name"] == "cores")
    case.assertEqual(cores["facts"]["quota"], 2)


def has_a_read_only_disk(case):
    with case.assertRaises(OSError) as raised:
        (case.root / "file").touch()
    case.assertEqual(raised.exception.errno, errno.EROFS)


def nobody_creates_unnamed_files(case):
    """No program of petlab uses O_TMPFILE. One that begins to must work without it: then its tests belong here."""
    case.assertEqual(case.failures(), "")
    program = "import os; os.open('.', os.O_TMPFILE | os.O_RDWR)"
    done = subprocess.run([sys.executable, "-c", program], cwd=case.root, env=case.environment(), capture_output=True)
    case.assertIn(b"Operation not supported", done.stderr)
    has_failures(case)


# How the settings are made.

def turkish(case):
    """A locale with a comma in numbers, another lower case of I, and text that is not UTF-8."""
    made = subprocess.run(["localedef", "-i", "tr_TR", "-f", "ISO-8859-9", "--no-archive",
                           case.top / "tr_TR.ISO-8859-9"], capture_output=True)
    if made.returncode != 0:
        case.skipTest("localedef cannot make a locale here (Debian: package locales)")
    return {"LOCPATH": str(case.top), "LC_ALL": "tr_TR.ISO-8859-9"}


def two_processors(case):
    pids = case.control_group(200000)
    return lambda: pids.write_text("0")


def few_descriptors(case):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


ROWS = [
    Row("network_file_system", uses_a_rollback_journal,
        faults="network file=LOG;fail calls=renameat2 error=EINVAL file=LOG",
        tests={"interrupts": [], "power_cut": [], "remarks": [], "runs_folders": []}, unfit=dict.fromkeys(
            ("bad_places", "many_at_once", "migration", "places", "results_tests"),
            "several processes write one database, or a database has a write-ahead log")),
    Row("read_only_disk", has_a_read_only_disk, disk=True, answers=READ_ONLY),
    Row("strange_path", prints_the_folder, folder="ä b\u00a0 漢 100%41 #1 ?",
        tests={"bad_places": [], "exchange": ["Archive"], "migration": [], "power_cut": [], "runs_folders": [],
               "base_tests": ["child", "files"], "results_tests": ["schema", "store"]},
        unfit={"orchestrator_tests": "its shell commands do not quote paths"}),
    Row("turkish_locale", started_programs_have_the_locale, variables=turkish,
        tests={"exchange": ["Archive"], "remarks": [], "tables": []}),
    Row("time_zone", has_a_local_time, variables={"TZ": "<+0545>-5:45"}, tests={"power_cut": [], "tables": []}),
    Row("umask_077", hides_new_files, enter=lambda case: lambda: os.umask(0o077),
        tests={"exchange": ["Archive"], "interrupts": [], "runs_folders": [], "orchestrator_tests": ["slots"]}),
    Row("few_descriptors", has_few_descriptors, enter=few_descriptors, answers=ONE_WORKER,
        tests={"half_made_files": [], "remarks": [], "results_tests": ["concurrency", "long_reader", "store"]},
        unfit={"base_tests": "it sets higher limits"} | dict.fromkeys(
            ("bad_places", "exchange", "injected_faults", "interrupts"), "two workers run, or no note is expected")),
    Row("two_processors", has_two_processors, enter=two_processors,
        tests={"interrupts": [], "many_at_once": [], "signals": []}),
    Row("no_locks", has_failures, faults="fail calls=flock error=ENOLCK file=LOG", answers=NO_LOCKS),
    Row("no_hard_links", has_failures, faults="fail calls=link,linkat error=EPERM file=LOG",
        tests={"garbage": ["WhatGoes"], "half_made_files": [], "interrupts": [], "power_cut": [],
               "results_tests": ["concurrency", "store"]}),
    Row("no_unnamed_files", nobody_creates_unnamed_files, faults="fail calls=tmpfile error=EOPNOTSUPP file=LOG"),
]


class Settings(ExchangeWorld):
    """Each row of the table is a case."""
    given: dict[str, str] = {}
    row, entering = None, None

    def environment(self):
        places = {name: str(self.top / name[7:].lower()) for name in ("PETLAB_HOME", "PETLAB_DATA", "PETLAB_SLOTS")}
        return super().environment() | places | self.given

    def start(self, *words, **options):
        return super().start(*words, **{"preexec_fn": self.entering} | options)

    def end(self, process, timeout=120):
        done = super().end(process, timeout)
        done.out, done.err = (text.replace(str(self.root.parent), "TOP") for text in (done.out, done.err))
        return done

    def ran(self, *words):
        done = self.petlab(*words)
        self.assertEqual(done.code, 0, done)
        return done

    def failures(self):
        return self.log.read_text() if self.log.exists() else ""

    def setUp(self):
        super().setUp()
        self.top, self.log = self.root, self.root / "failures"
        self.machine("sweep", "--only", "seed=1..2")
        self.machine("other", "--only", "seed=3")
        self.on("other", "db", "export", "archive", "other.tar.gz")
        self.ids = {"done": self.trials("sweep", "seed = 1")[0], "open": self.trials("sweep", "seed = 4")[0]}

    def enter(self, row):
        """The world moves to the folder of the row, whose setting applies from here on."""
        variables = row.variables(self) if callable(row.variables) else dict(row.variables)
        if row.faults:
            variables |= faulty(row.faults.replace("LOG", str(self.log)))
        self.place(row.folder, row.disk)
        self.row, self.given, self.entering = row, variables, row.enter(self)

    def place(self, folder, disk):
        self.root = self.top / folder
        self.root.mkdir()
        self.out = self.root / "out"
        self.out.mkdir()
        self.small_disk("16m") if disk else (self.root / "disk").mkdir()
        self.root /= "disk"
        for file in self.top.iterdir():
            if file.name in ("tiny", "worker.py") or file.name.startswith(("films", "sweep.", "other.")):
                (shutil.copytree if file.is_dir() else shutil.copy2)(file, self.root / file.name)
        if disk:
            subprocess.run(["mount", "-o", "remount,ro", self.root], check=True)

    def answer(self, command):
        done = self.petlab(*shlex.split(command.format(**self.ids, out=shlex.quote(str(self.out)))))
        # A shell's words with strange characters have quotes.
        return done.code, *(VARIES.sub("…", text).replace("'ROOT", "ROOT").replace(".petl'", ".petl")
                            for text in (done.out, done.err))

    def check(self, row):
        self.place("plain", False)
        wanted = {at: self.answer(command) for at, command in enumerate(COMMANDS)}
        self.enter(row)
        for at, command in enumerate(COMMANDS):
            with self.subTest(command):
                code, messages = row.answers.get(command, (None, ""))
                self.assertEqual(self.answer(command),
                                 wanted[at] if code is None else (code, "", messages.format(**self.ids) + "\n"))
        with self.subTest("shows"):
            row.shows(self)
        if 1 not in dict(row.answers.values()):
            self.ran("db", "check")
        # Without tests of its own, a row is one under which most commands fail, or that nothing notices.
        tests = {test: [] for test in TESTS if test not in row.unfit} if ALL and row.tests else row.tests
        for test, cases in tests.items():
            with self.subTest(test):
                self.rerun(row, test, cases)

    def rerun(self, row, test, cases):
        began = time.monotonic()
        self.log.unlink(missing_ok=True)
        environment = os.environ | {"TMPDIR": str(self.root.parent)}
        if test.endswith("_tests"):
            # A tag of a file also selects its hidden cases, which other cases start.
            words = [PROGRAMS / test, "-#", ",".join(f"[#{case}_test]~[.]" for case in cases) or "~[.]"]
            environment |= self.given
        else:
            words = [HERE / f"{test}.py", PROGRAMS, *cases]
            environment["PETLAB_TEST_SETTING"] = json.dumps(self.given)
        done = subprocess.run(words, cwd=self.top, env=environment, preexec_fn=self.entering, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
        print(f"{row.name}: {test} {cases}: {time.monotonic() - began:.1f} s")
        self.assertIn(done.returncode, (0, 77), done.stdout.decode(errors="replace"))
        if "LOG" in row.faults and not ALL:
            self.assertNotEqual(self.failures(), "", "the setting reaches no program")


def add(row):
    setattr(Settings, f"test_{row.name}", lambda case: case.check(row))


for row in ROWS:
    add(row)

if __name__ == "__main__":
    tiny_world.main()
