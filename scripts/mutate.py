#!/usr/bin/env python3
"""Plants small faults (mutants) in the sources and reports those that no test notices.

    scripts/mutate.py [--only WORD]... [--list] [--jobs N] [--cmake=-DNAME=VALUE]... [PATCH|FOLDER...]
                                                                              (default: tests/mutants)

A patch starts with a header:

    Breaks: the warm-up's steps are rounded down
    Preset: release
    Build: trainer_tests
    Run: {bin}/trainer_tests "[trainer]"

Build lists targets separated by spaces. Run is a shell command that fails if the fault is noticed; it
may be repeated. {bin} is the folder of the built programs, {tree} the root of the sources.

Work happens on a copy of HEAD in build/mutants; the working tree must have no changes. A mutant that
changes only the bodies of functions is compiled next to the original body and selected at run time by
the variable MUTANT, which each program reads once, so that one build serves all of these. Other
mutants (a table, a type, a script) are built one at a time. First, every command must pass without a
mutant; otherwise its failure would prove nothing.

Exit code: 0 if every mutant was noticed, 1 if not, 2 for wrong usage.
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutants"
LOGS = ROOT / "build/mutant-logs"
RUN_SECONDS = 600
NOTICED, UNNOTICED = "noticed", "UNNOTICED"
KEYS = ("Breaks", "Preset", "Build", "Run")
CMAKE_OPTIONS = []  # additional options from --cmake
# Prepended to each source with a mutant, because a mutant may leave a variable unused.
LENIENT = """\
#pragma GCC diagnostic warning "-Wunused"
#pragma GCC diagnostic warning "-Wextra"
"""
SELECTOR = LENIENT + """\
#ifndef PETLAB_MUTANT_SELECTOR
#define PETLAB_MUTANT_SELECTOR
#include <cstdlib>
#include <string_view>
inline bool petlab_mutant(std::string_view name) {
  static const char* const selected = std::getenv("MUTANT");
  return selected != nullptr && name == selected;
}
#endif
"""


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
                stop(f"{file}: found '{line}'; each header line must start with one of "
                     f"{', '.join(key + ':' for key in KEYS)}")
            found[key].append(value.strip())
        for key in KEYS:
            if not found[key] or (key != "Run" and len(found[key]) > 1):
                stop(f"{file}: the header has {len(found[key])} lines '{key}:'; expected "
                     f"{'at least one' if key == 'Run' else 'one'}")
        self.breaks, self.preset = found["Breaks"][0], found["Preset"][0]
        self.targets, self.runs = found["Build"][0].split(), found["Run"]

    def commands(self):
        folder = TREE / "build" / self.preset / "bin"
        return [run.replace("{bin}", str(folder)).replace("{tree}", str(TREE))
                for run in self.runs]


@dataclasses.dataclass
class Body:
    """The body of a function that mutants change: its bytes in the file, and each mutant's own."""
    begin: int
    end: int
    variants: dict


def environment(mutant=None):
    """The tests' environment for a copy that is not next to ../shared, with the clone's cache."""
    env = dict(os.environ, CCACHE_BASEDIR=str(TREE), CCACHE_NOHASHDIR="1",
               CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
    for name, folder in (("PETLAB_GOLDEN_DIR", "golden"), ("PETLAB_DATA", "data")):
        if name not in env and (ROOT.parent / "shared" / folder).exists():
            env[name] = str(ROOT.parent / "shared" / folder)
    if mutant is not None:
        env["MUTANT"] = mutant.name
    return env


def git(*arguments, folder=TREE, check=True):
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        stop(f"git {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done


def run(command, log, seconds=None, mutant=None, **options):
    """The exit code of a command and all its children; None if it took too long."""
    with open(log, "ab") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                 env=environment(mutant), cwd=TREE, start_new_session=True,
                                 **options)
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also kills the children of an interrupted command.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def restore():
    git("checkout", "--force", "--detach", git("rev-parse", "HEAD", folder=ROOT).stdout.strip())
    git("clean", "--force", "-d", "--quiet")


def prepare():
    """Creates the copy of HEAD. Its ignored build folders stay, so that little is rebuilt."""
    changed = git("status", "--porcelain", "--untracked-files=no", folder=ROOT).stdout
    if changed:
        stop("the working tree has changes; commit or stash them:\n" + changed)
    if not (TREE / ".git").exists():
        TREE.parent.mkdir(exist_ok=True)
        git("worktree", "prune", folder=ROOT)
        git("worktree", "add", "--detach", TREE, "HEAD", folder=ROOT)
    restore()
    (TREE / "build").mkdir(exist_ok=True)
    LOGS.mkdir(exist_ok=True)


def build(preset, targets, log):
    folder = TREE / "build" / preset
    # As in the checks, so that objects without a mutant are in the compiler cache.
    if run(["cmake", "--preset", preset, "-DPETLAB_TESTS=ON", "-DPETLAB_BENCH=OFF",
            "-DPETLAB_WERROR=ON", *CMAKE_OPTIONS], log) != 0:
        return False
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    return run(["cmake", "--build", folder, "-j", jobs, "--target", *sorted(targets)], log) == 0


def apply(mutant):
    """The error if the patch did not apply; empty if it applied."""
    done = git("apply", "-C1", "--recount", mutant.file.resolve(), check=False)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[0]


def function_bodies(source):
    """The byte ranges of the bodies of all functions that are not evaluated at compile time."""
    found = []

    def visit(node):
        if node.type == "function_definition":
            body = node.child_by_field_name("body")
            head = source[node.start_byte:body.start_byte] if body else b""
            if body and body.type == "compound_statement" and b"consteval" not in head and (
                    b"constexpr" not in head):
                found.append((body.start_byte, body.end_byte))
            return
        for child in node.children:
            visit(child)

    visit(PARSER.parse(source).root_node)
    return found


def offsets(lines):
    """The byte at which each line starts, and the end."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def changed_bodies(before, after):
    """Maps the range of each changed body to its new bytes; None if a change is outside of bodies."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    old_at, new_at = offsets(old), offsets(new)
    bodies, found = function_bodies(before), {}
    changes = [change for change in
               difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
               if change[0] != "equal"]
    for _, begin, end, _, _ in changes:
        around = [body for body in bodies
                  if body[0] < old_at[begin] and old_at[end] < body[1]]
        if not around:
            return None
        found[around[0]] = None
    for first, last in found:
        # Changes never touch the first or last line of a body: both shift by the lines before them.
        def moved(place):
            return place + sum((new_at[j2] - new_at[j1]) - (old_at[i2] - old_at[i1])
                               for _, i1, i2, j1, j2 in changes if old_at[i2] <= place)
        found[first, last] = after[moved(first):moved(last)]
    return found


def select_at_run_time(mutants):
    """Writes the bodies of all mutants into the copy. Returns the mutants by changed file, and those
    that cannot be selected at run time."""
    bodies, alone = {}, []
    for mutant in mutants:
        if apply(mutant):
            alone.append(mutant)
            continue
        changed = {}
        for name in git("diff", "--name-only").stdout.split():
            before = git("show", f"HEAD:{name}").stdout.encode()
            source = pathlib.PurePath(name).suffix in (".cpp", ".h")
            changed[name] = changed_bodies(before, (TREE / name).read_bytes()) if source else None
        if git("ls-files", "--others", "--exclude-standard").stdout or None in changed.values():
            alone.append(mutant)
        else:
            for name, ranges in changed.items():
                for place, text in ranges.items():
                    body = bodies.setdefault(name, {}).setdefault(place, Body(*place, {}))
                    body.variants[mutant] = text
        restore()
    for name, ranges in bodies.items():
        source = (TREE / name).read_bytes()
        for body in sorted(ranges.values(), key=lambda body: -body.begin):
            chosen = b"{ "
            for mutant, text in body.variants.items():
                chosen += b'if (petlab_mutant("%s")) %s else ' % (mutant.name.encode(), text)
            chosen += source[body.begin:body.end] + b" }"
            source = source[:body.begin] + chosen + source[body.end:]
        (TREE / name).write_bytes(SELECTOR.encode() + source)
    by_file = {name: {mutant for body in ranges.values() for mutant in body.variants}
               for name, ranges in bodies.items()}
    return by_file, alone


def failed_tests(log):
    """The names of the tests that a log reports as failed."""
    text = log.read_bytes().decode(errors="replace")
    catch = re.findall(r"^-{79}\n(\S.*?)\n(?:  .*\n)*-{79}\n", text, re.MULTILINE)
    python = re.findall(r"^(?:FAIL|ERROR): (\S+)", text, re.MULTILINE)
    return list(dict.fromkeys(catch + python))


def judge(mutant, selected=None):
    """Whether the tests notice a built mutant, and which tests."""
    log = LOGS / f"{mutant.name}.log"
    log.write_bytes(b"")
    for command in mutant.commands():
        code = run(command, log, RUN_SECONDS, selected, shell=True)
        if code is None:
            return NOTICED, f"still running after {RUN_SECONDS} s"
        if code != 0:
            return NOTICED, "; ".join(failed_tests(log)[:2]) or f"exit code {code}"
    return UNNOTICED, ""


def unchanged_passes(mutants, log, jobs):
    commands = sorted({command for mutant in mutants for command in mutant.commands()})
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        codes = pool.map(lambda command: run(command, log, RUN_SECONDS, shell=True), commands)
        for command, code in zip(commands, codes):
            if code != 0:
                stop(f"fails or takes too long without a mutant (see {log}): {command}")


def judge_selected(preset, mutants, jobs, report):
    """Judges the mutants of a preset that one build can hold. Returns the others."""
    log = LOGS / f"build-{preset}.log"
    log.write_bytes(b"")
    alone, remaining = [], list(mutants)
    while remaining:
        by_file, outside = select_at_run_time(remaining)
        alone += outside
        remaining = [mutant for mutant in remaining if mutant not in outside]
        begin = log.stat().st_size
        if build(preset, {target for mutant in mutants for target in mutant.targets}, log):
            break
        # Mutants that do not compile together with the original are built separately.
        errors = log.read_bytes()[begin:].decode(errors="replace")
        broken = {mutant for name, those in by_file.items() for mutant in those
                  if re.search(rf"{re.escape(name)}:\d+:\d+: error", errors)}
        if not broken:
            stop(f"preset {preset} does not build (see {log})")
        alone += sorted(broken, key=lambda mutant: mutant.name)
        remaining = [mutant for mutant in remaining if mutant not in broken]
        restore()
    unchanged_passes(mutants, log, jobs)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(judge, mutant, mutant): mutant for mutant in remaining}
        for future in concurrent.futures.as_completed(futures):
            report(futures[future], *future.result())
    restore()
    return alone


def judge_alone(mutant):
    why = apply(mutant)
    try:
        if why:
            return "does not apply", why
        for name in git("diff", "--name-only", "--", "*.cpp", "*.h").stdout.split():
            (TREE / name).write_text(LENIENT + (TREE / name).read_text())
        log = LOGS / f"build-{mutant.name}.log"
        if not build(mutant.preset, mutant.targets, log):
            return "does not build", str(log)
        return judge(mutant)
    finally:
        restore()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", nargs="*", type=pathlib.Path, metavar="PATCH|FOLDER",
                        default=[ROOT / "tests/mutants"])
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="only patches with one of these words in their name or first line")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="mutants judged at the same time (default: the number of cores)")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION",
                        help="further option of cmake, e.g. --cmake=-DCMAKE_BUILD_TYPE=Debug")
    options = parser.parse_args()
    CMAKE_OPTIONS.extend(options.cmake)
    files = []
    for path in options.patches:
        if not path.exists():
            stop(f"{path} does not exist; expected a patch or a folder of patches")
        files += sorted(path.glob("*.patch")) if path.is_dir() else [path]
    mutants = [Mutant(file) for file in files]
    if options.only:
        mutants = [mutant for mutant in mutants
                   if any(word in mutant.name or word in mutant.breaks for word in options.only)]
    if not mutants:
        stop("no patch selected")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.breaks}")
        return 0
    prepare()
    outcomes, began = {}, time.monotonic()

    def report(mutant, outcome, why):
        outcomes.setdefault(outcome, []).append(mutant.name)
        print(f"{outcome:14} {mutant.name}: {mutant.breaks}{' <- ' + why if why else ''} "
              f"(at {time.monotonic() - began:.0f} s)", flush=True)

    alone = []
    for preset in sorted({mutant.preset for mutant in mutants}):
        alone += judge_selected(preset, [mutant for mutant in mutants if mutant.preset == preset],
                                options.jobs, report)
    for mutant in alone:
        report(mutant, *judge_alone(mutant))
    print(f"{len(outcomes.get(NOTICED, []))} of {len(mutants)} noticed; {len(alone)} built alone")
    for outcome, names in sorted(outcomes.items()):
        if outcome != NOTICED:
            print(f"{outcome}: {', '.join(sorted(names))}")
    return 0 if set(outcomes) == {NOTICED} else 1


def with_parser():
    """Runs main() in the environment that has the C++ grammar."""
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError:
        python = subprocess.run([ROOT / "scripts/mutants_venv.sh"], stdout=subprocess.PIPE, text=True)
        if python.returncode != 0:
            stop("cannot install the C++ grammar (scripts/mutants_venv.sh says why)")
        os.execv(python.stdout.strip(), [python.stdout.strip(), *sys.argv])
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


if __name__ == "__main__":
    PARSER = with_parser()
    sys.exit(main())
