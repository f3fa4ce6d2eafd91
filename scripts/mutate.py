#!/usr/bin/env python3
"""Makes careless changes, one at a time, and says which of them no test notices.

    scripts/mutate.py [--only WORD]... [--list] [PATCH|FOLDER...]    (default: tests/mutants)

A patch begins with a header:

    Breaks: the warm-up's steps are rounded down
    Preset: release
    Build: trainer_tests
    Run: {bin}/trainer_tests "[trainer]"

Build names targets (several, separated by spaces), Run a command of the shell that fails where the
change is noticed; it may be there several times. {bin} is the folder of the built programs, {tree}
the root of the sources. Everything happens on a copy of HEAD in build/mutants, so that the working
tree is never touched; that is why it must have no changes. First everything is built and run without
a change: what fails then proves nothing.

Exit code: 0 where every change was noticed, 1 where not, 2 for what is wrong with the call.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutants"
RUN_SECONDS = 600
NOTICED, UNNOTICED = "noticed", "UNNOTICED"
KEYS = ("Breaks", "Preset", "Build", "Run")


def stop(message):
    print(f"mutate.py: {message}", file=sys.stderr)
    sys.exit(2)


class Mutant:
    """A patch and its header."""

    def __init__(self, file):
        self.file, self.name = file, file.stem
        header = re.split(r"^(?:diff --git |--- )", file.read_text(), flags=re.MULTILINE)[0]
        found = {key: [] for key in KEYS}
        for line in header.splitlines():
            key, colon, value = line.partition(": ")
            if not line.strip():
                continue
            if not colon or key not in found:
                stop(f"{file}: found '{line}', wanted a line that begins with one of "
                     f"{', '.join(key + ':' for key in KEYS)}")
            found[key].append(value.strip())
        for key in KEYS:
            if not found[key] or (key != "Run" and len(found[key]) > 1):
                stop(f"{file}: the header has {len(found[key])} lines '{key}:', wanted "
                     f"{'at least one' if key == 'Run' else 'one'}")
        self.breaks, self.preset = found["Breaks"][0], found["Preset"][0]
        self.targets, self.runs = found["Build"][0].split(), found["Run"]

    def build_folder(self):
        return TREE / "build" / self.preset

    def commands(self):
        return [run.replace("{bin}", str(self.build_folder() / "bin")).replace("{tree}", str(TREE))
                for run in self.runs]


def environment():
    """That of the tests, of a copy that is not beside ../shared, with the clone's compiler cache."""
    env = dict(os.environ, CCACHE_BASEDIR=str(TREE), CCACHE_NOHASHDIR="1",
               CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
    for name, folder in (("PETLAB_GOLDEN_DIR", "golden"), ("PETLAB_DATA", "data")):
        if name not in env and (ROOT.parent / "shared" / folder).exists():
            env[name] = str(ROOT.parent / "shared" / folder)
    return env


def git(*arguments, folder=TREE, check=True):
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        stop(f"git {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done


def run(command, log, seconds=None, **options):
    """The exit code of a command with all its children, None where it took too long."""
    with open(log, "ab") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                 env=environment(), cwd=TREE, start_new_session=True, **options)
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also what an interrupted run of ours has left.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def restore():
    git("checkout", "--force", "--detach", git("rev-parse", "HEAD", folder=ROOT).stdout.strip())
    git("clean", "--force", "-d", "--quiet")


def prepare():
    """The copy of HEAD; its ignored build folders stay, so that little is built again."""
    changed = git("status", "--porcelain", "--untracked-files=no", folder=ROOT).stdout
    if changed:
        stop("the working tree has changes, must have none (commit or stash them):\n" + changed)
    if not (TREE / ".git").exists():
        TREE.parent.mkdir(exist_ok=True)
        git("worktree", "prune", folder=ROOT)
        git("worktree", "add", "--detach", TREE, "HEAD", folder=ROOT)
    restore()
    (TREE / "build").mkdir(exist_ok=True)


def build(preset, targets, log):
    folder = TREE / "build" / preset
    if not (folder / "build.ninja").exists():
        if run(["cmake", "--preset", preset, "-DPETLAB_TESTS=ON", "-DPETLAB_BENCH=OFF",
                # One changed source is to be compiled alone.
                "-DCMAKE_UNITY_BUILD=OFF"], log) != 0:
            return False
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    return run(["cmake", "--build", folder, "-j", jobs, "--target", *sorted(targets)], log) == 0


def failed_tests(log, begin):
    """The names of the tests that a log tells of as failed, from byte `begin` on."""
    text = log.read_bytes()[begin:].decode(errors="replace")
    catch = re.findall(r"^-{79}\n(\S.*?)\n(?:  .*\n)*-{79}\n", text, re.MULTILINE)
    python = re.findall(r"^(?:FAIL|ERROR): (\S+)", text, re.MULTILINE)
    return list(dict.fromkeys(catch + python))


def unchanged_passes(mutants, log):
    for preset in sorted({mutant.preset for mutant in mutants}):
        own = [mutant for mutant in mutants if mutant.preset == preset]
        if not build(preset, {target for mutant in own for target in mutant.targets}, log):
            stop(f"the unchanged tree does not build (see {log})")
        for command in sorted({command for mutant in own for command in mutant.commands()}):
            if run(command, log, RUN_SECONDS, shell=True) != 0:
                stop(f"without a change, this fails or is too slow (see {log}): {command}")


def judge(mutant, log):
    """What became of a mutant, and why."""
    applied = git("apply", "-C1", "--recount", mutant.file.resolve(), check=False)
    if applied.returncode != 0:
        return "does not apply", applied.stderr.strip().splitlines()[0]
    try:
        if not build(mutant.preset, mutant.targets, log):
            return "does not build", str(log)
        for command in mutant.commands():
            begin = log.stat().st_size
            code = run(command, log, RUN_SECONDS, shell=True)
            if code is None:
                return NOTICED, f"after {RUN_SECONDS} s it had not ended"
            if code != 0:
                return NOTICED, "; ".join(failed_tests(log, begin)[:2]) or f"exit code {code}"
        return UNNOTICED, ""
    finally:
        restore()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", nargs="*", type=pathlib.Path, metavar="PATCH|FOLDER",
                        default=[ROOT / "tests/mutants"])
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="only patches whose name or first line has one of these words")
    parser.add_argument("--list", action="store_true", help="name them and make none")
    options = parser.parse_args()
    files = []
    for path in options.patches:
        if not path.exists():
            stop(f"{path} is not there, wanted a patch or a folder of patches")
        files += sorted(path.glob("*.patch")) if path.is_dir() else [path]
    mutants = [Mutant(file) for file in files]
    if options.only:
        mutants = [mutant for mutant in mutants
                   if any(word in mutant.name or word in mutant.breaks for word in options.only)]
    if not mutants:
        stop("no patch is left, wanted at least one")
    # Those of one program one after the other: less is linked again.
    mutants.sort(key=lambda mutant: (mutant.preset, mutant.targets, mutant.name))
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.breaks}")
        return 0
    prepare()
    log = TREE / "build/mutants.log"
    log.write_bytes(b"")
    unchanged_passes(mutants, log)
    outcomes = {}
    for mutant in mutants:
        began = time.monotonic()
        outcome, why = judge(mutant, log)
        outcomes.setdefault(outcome, []).append(mutant)
        print(f"{outcome:14} {mutant.name}: {mutant.breaks}{' <- ' + why if why else ''} "
              f"({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(outcomes.get(NOTICED, []))} of {len(mutants)} noticed")
    for outcome, those in sorted(outcomes.items()):
        if outcome != NOTICED:
            print(f"{outcome}: {', '.join(mutant.name for mutant in those)}")
    return 0 if set(outcomes) == {NOTICED} else 1


if __name__ == "__main__":
    sys.exit(main())
