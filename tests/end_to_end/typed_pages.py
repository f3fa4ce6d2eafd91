"""Types the commands of Markdown pages into a shell, like a reader, and compares the output.

Typed lines:
- all lines of a block ```sh; their output is not compared
- lines after `$ ` in a block ```console; the lines below are the expected output
- a block after "Save this as `NAME`" is written to the file NAME

Every command must exit with 0. A command with the comment "# Ctrl-C ends it" is interrupted after it
prints an address. Scripts of this repository (lines starting with `scripts/`) are not typed: CI runs
them.

Output must equal the page's after `normalised`, which hides differences between machines, runs and
backbones: numbers and marks of the best ones, undefined values, times, dates, sizes, ids, paths,
curves, verdicts (words in the last of more than eight cells) and column widths. A line `...` matches
any lines. An id in a later command refers to the trial whose id was printed in its place.
"""
import dataclasses
import pathlib
import re
import signal
import subprocess

MARK = "typed-pages-end"
ID = re.compile(r"(?<![.\w])(?=[a-f]*\d)[0-9a-f]{16}\b")
HIDDEN = [
    (r"\*\*|</?ins>", ""),
    (r"\\(?:textbf|underline)\{([^}]*)\}", r"\1"),
    (r"(?<![\w.~])~?/[\w./+-]+", "PATH"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?: UTC|Z)?)?", "DATE"),
    (ID.pattern, "ID"),
    (r"(?<![.\w])(?=[a-f]*\d)[0-9a-f]{8}\b", "ID"),
    (r"[▁▂▃▄▅▆▇█]+", "CURVE"),
    (r"[-−+±]?\b\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", "N"),
    (r"N … N|—", "N"),
    (r"(?:N (?:ms|s|min|h)\b ?)+", "TIME "),
    (r"N a (?:second|minute|hour)", "RATE"),
    (r"N (?:B|KiB|MiB|GiB)\b", "SIZE"),
    (r"─+(?:[ ┼|]*─+)*", "─"),
    (r"\s+", " "),
]


@dataclasses.dataclass
class Step:
    """A command, or a file to save."""

    place: str
    text: str
    output: list[str] | None = None  # expected lines; None: not compared
    file: str | None = None
    lines: tuple[int, int] | None = None  # the output's lines in the page, from 0, without the end


def normalised(line):
    cells = re.split(r"\s{2,}", line.strip())
    if len(cells) > 8 and " " in cells[-1]:
        line = "  ".join([*cells[:-1], "VERDICT"])
    for pattern, name in HIDDEN:
        line = re.sub(pattern, name, line)
    return line.strip()


def complete(command):
    """True if a shell would run the command: not inside a quotation or a here-document."""
    return subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode == 0 \
        and not command.endswith("\\")


def steps_of_block(place, first, kind, body, saved_as):
    if saved_as:
        return [Step(place, "\n".join(body) + "\n", file=saved_as)]
    steps, command = [], ""
    for at, line in enumerate(body):
        if kind == "console" and not command and not line.startswith("$ "):
            if not steps:
                raise ValueError(f"{place}: output without a command: {line}")
            steps[-1].output.append(line)
            steps[-1].lines = (steps[-1].lines[0], first + at + 1)
            continue
        command += ("\n" if command else "") + (line if command else line.removeprefix("$ "))
        if not complete(command):
            continue
        if command.strip():
            after = first + at + 1
            steps.append(Step(f"{place}: {command}", command,
                              [] if kind == "console" else None, lines=(after, after)))
        command = ""
    if command:
        raise ValueError(f"{place}: the shell waits for more: {command}")
    return steps


def steps_of_page(page):
    """The steps of a page in order."""
    steps, before, lines = [], "", page.read_text().split("\n")
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"```(\w*)", lines[at])
        if not fence:
            before = lines[at] if lines[at].strip() else before
            at += 1
            continue
        end = lines.index("```", at + 1)
        saved_as = re.search(r"Save this as `([^`]+)`", before)
        if saved_as or fence[1] in ("sh", "console"):
            steps += steps_of_block(f"{page.name}:{at + 1}", at + 1, fence[1], lines[at + 1:end],
                                    saved_as and saved_as[1])
        before = ""
        at = end + 1
    return steps


def matches(expected, found):
    """True if the normalised lines agree. `...` matches any lines."""
    parts = [[]]
    for line in expected:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return parts[0] == found
    begin, end = len(parts[0]), len(found) - len(parts[-1])
    if begin > end or found[:begin] != parts[0] or found[end:] != parts[-1]:
        return False
    for part in parts[1:-1]:
        while begin + len(part) <= end and found[begin:begin + len(part)] != part:
            begin += 1
        if begin + len(part) > end:
            return False
        begin += len(part)
    return True


class Typist:
    """A shell used by a reader."""

    def __init__(self, folder, environment):
        self.environment = environment
        self.ids = {}  # printed ids, by the page's
        self.shell = subprocess.Popen(["bash", "--norc"], cwd=folder, env=environment, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, errors="backslashreplace")

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()

    def run(self, command):
        """Runs a command. Returns the exit code and the printed lines."""
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{MARK} %s\\n' $?\n")
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.startswith(MARK):
                return int(line.split()[1]), "".join(lines)[:-1].splitlines()
            lines.append(line)
        raise AssertionError(f"the shell ended: {command}\n{''.join(lines)}")

    def interrupt(self, command):
        """Runs a server until it prints its address, then ends it with Ctrl-C."""
        variables = dict(line.split("=", 1) for line in self.run("env")[1] if "=" in line)
        process = subprocess.Popen(f"exec {command}", shell=True, cwd=self.run("pwd")[1][0],
                                   env=variables, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with process:
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if "http://" in line:
                    process.send_signal(signal.SIGINT)
        return 0 if process.returncode == -signal.SIGINT else process.returncode, lines

    def here(self, command):
        """The command with this run's ids instead of the page's."""
        def this_id(match):
            found = [here for page, here in self.ids.items() if page.startswith(match[0])]
            return found[0] if len(found) == 1 else match[0]
        return re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{4,16}\b", this_id, command)

    def do(self, step):
        """Does a step. Returns the printed lines, and a message if they differ from the page."""
        if step.file:
            folder = pathlib.Path(self.run("pwd")[1][0])
            (folder / step.file).write_text(step.text)
            return [], ""
        if step.text.startswith("scripts/"):
            return [], ""
        command = self.here(step.text)
        code, found = (self.interrupt if "# Ctrl-C ends it" in command else self.run)(command)
        if code != 0:
            return found, f"exit code {code}\n" + "\n".join(found)
        if step.output is None:
            return found, ""
        if not matches([normalised(line) if line != "..." else line for line in step.output],
                       [normalised(line) for line in found]):
            return found, "\n".join(["the page shows:", *step.output, "printed was:", *found])
        self.note_ids(step.output, found)
        return found, ""

    def note_ids(self, expected, found):
        """Records the ids of matching lines. Before the first `...`, lines have the same positions."""
        for page, here in zip(expected, found):
            if page == "...":
                break
            self.ids.update(zip(ID.findall(page), ID.findall(here)))


def with_output(page, outputs):
    """The page's text with new outputs, a list of (step, lines). `...` is kept."""
    lines = page.read_text().split("\n")
    for step, found in reversed(outputs):
        shown = step.output
        if "..." in shown:
            head = shown.index("...")
            tail = len(shown) - 1 - head
            found = found[:head] + ["..."] + (found[len(found) - tail:] if tail else [])
        lines[step.lines[0]:step.lines[1]] = found
    return "\n".join(lines)
