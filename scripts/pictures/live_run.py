#!/usr/bin/env python3
"""Draws the live view of `petlab run` as run-light.svg and run-dark.svg, from a real run.

usage: live_run.py FOLDER_OF_PROGRAMS FOLDER_OF_PICTURES

Types `petlab run sweep.yaml` into a shell on a terminal of fixed size, and draws the screen when a
third of the trials are done and every running trial has been validated. Then it stops the run.
The sweep is the one that `petlab init` writes, with fewer examples: on a busy machine, the full
test split takes so long that petlab notes the worker's silence. Needs MiniLM and the snippets.
"""

from __future__ import annotations

import fcntl
import io
import itertools
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, LINES = 90, 20
LONGEST_RUN = 3600  # seconds
ENOUGH_DONE = 1 / 3  # of the trials
VALIDATED = 0.4  # of a trial's steps: the starter sweep validates after each of three epochs
TRAINING = re.compile(r" training +(\d+)/(\d+) ")
STATUS = re.compile(r"^(\d+) of (\d+) done, (\d+) running")
STARTER_DATA = "data: {max_train_examples: 1000}"
DATA = "data: {max_train_examples: 640, max_validation_examples: 320, max_test_examples: 320}"
# pyte's names of the eight colours, as rich calls them.
COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow"}
FONTS = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'


def theme(background: str, foreground: str, *colours: str) -> TerminalTheme:
    """`colours` are black, red, green, yellow, blue, magenta, cyan and white."""
    numbers = [
        tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
        for colour in (background, foreground, *colours)
    ]
    return TerminalTheme(numbers[0], numbers[1], numbers[2:])


# Each colour has a contrast of at least 4.5 with the background.
THEMES = {
    "light": theme(
        "#ffffff", "#1c2330", "#1c2330", "#c0262d", "#1a7f37",
        "#8a5a00", "#0b5cad", "#8250df", "#0a6c74", "#5b6472",
    ),
    "dark": theme(
        "#14171d", "#e6e9ef", "#9aa4b2", "#ff7b72", "#56d364",
        "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#e6e9ef",
    ),
}  # fmt: skip
BORDERS = {"light": "#d0d7de", "dark": "#3d444d"}


class Terminal:
    """A shell on a pseudo-terminal, whose screen an emulator holds."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str]):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.shell, self.leader = pty.fork()
        if self.shell == 0:
            # Under nohup they are ignored; petlab would inherit that, and Ctrl-C would not end it.
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting"], environment)
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self.leader, text.encode())

    def read(self, seconds: float) -> bool:
        """Shows what is printed within this time; false if the shell has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.leader], [], [], left)[0]:
                return True
            try:
                data = os.read(self.leader, 65536)
            except OSError:  # how Linux reports the end of a terminal
                return False
            if not data:
                return False
            self.stream.feed(data)
        return True

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def wait_for(self, reached, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not reached(self.lines()):
            shown = "\n".join(self.lines())
            if not self.read(0.1):
                sys.exit(f"live_run.py: the shell ended; the terminal shows:\n{shown}")
            if time.monotonic() > end:
                sys.exit(f"live_run.py: waited for {seconds} s; the terminal shows:\n{shown}")

    def close(self) -> None:
        """Stops the running command by Ctrl-C twice, and ends the shell."""
        self.type("\x03")
        self.read(0.5)
        self.type("\x03")
        self.read(2)
        self.type("exit\n")
        end = time.monotonic() + 30
        while self.read(0.5) and time.monotonic() < end:
            pass
        os.close(self.leader)  # hangs up: SIGHUP ends all that still runs
        os.waitpid(self.shell, 0)


def write_sweep(petlab: pathlib.Path, folder: pathlib.Path, environment: dict[str, str]) -> None:
    subprocess.run([petlab, "init"], cwd=folder, env=environment, check=True, capture_output=True)
    sweep = folder / "sweep.yaml"
    text = sweep.read_text()
    if STARTER_DATA not in text:
        sys.exit(f"live_run.py: the sweep of petlab init has no line with {STARTER_DATA}")
    sweep.write_text(text.replace(STARTER_DATA, DATA))


def at_prompt(lines: list[str]) -> bool:
    used = [line for line in lines if line]
    return bool(used) and used[-1] == "$"


def in_the_middle(lines: list[str]) -> bool:
    """True while some trials are done and each running one has been validated at least once."""
    if at_prompt(lines):
        sys.exit("live_run.py: the run ended before a picture was taken:\n" + "\n".join(lines))
    status = next((found for line in lines if (found := STATUS.match(line))), None)
    if status is None:
        return False
    done, trials, running = map(int, status.groups())
    steps = [(int(found[1]), int(found[2])) for line in lines if (found := TRAINING.search(line))]
    return (
        done >= ENOUGH_DONE * trials
        and running > 1
        and len(steps) == running
        and all(VALIDATED * all_steps <= step < all_steps for step, all_steps in steps)
    )


def text_of(screen: pyte.Screen) -> Text:
    """The screen's used lines."""
    used = max(at for at, line in enumerate(screen.display) if line.strip()) + 1
    text = Text(no_wrap=True)
    for row in range(used):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        for (colour, bold), run in itertools.groupby(cells, lambda cell: (cell.fg, cell.bold)):
            style = Style(
                color=None if colour == "default" else COLOURS.get(colour, colour), bold=bold
            )
            text.append("".join(cell.data for cell in run), style)
        text.append("\n" if row + 1 < used else "")
    return text


def draw(text: Text, name: str) -> str:
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    console.print(text)
    # rich's template loads a font from the network.
    template = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("Fira Code, monospace", FONTS).replace("arial", "sans-serif")
    # Its clip path cuts the descenders of the last line.
    template = template.replace(' clip-path="url(#{unique_id}-clip-terminal)"', "")
    svg = console.export_svg(
        title="petlab run", theme=THEMES[name], code_format=template, unique_id=f"run-{name}"
    )
    svg = svg.replace("rgba(255,255,255,0.35)", BORDERS[name])
    svg = re.sub(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', r'width="\1" height="\2" \g<0>', svg, count=1)
    svg = re.sub(r"\n\s*\n+", "\n", re.sub(r"[ \t]+\n", "\n", svg))
    if re.search(r"url\((?!#)", svg):
        sys.exit("live_run.py: the picture loads a file from the network")
    return svg


def main() -> None:
    # An exception, so that the run is stopped and its folder removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("live_run.py: terminated"))
    programs, pictures = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="petlab-pictures-") as home:
        folder = pathlib.Path(home) / "first"  # the sweep's name
        folder.mkdir()
        (pathlib.Path(home) / "slots").mkdir()
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PETLAB_") or name in ("PETLAB_HOME", "PETLAB_DATA")
        }
        for name in ("NO_COLOR", "COLUMNS", "LINES", "PROMPT_COMMAND"):
            environment.pop(name, None)
        environment |= {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "PS1": "$ ",
            "PETLAB_SLOTS": f"{home}/slots",
        }
        write_sweep(programs / "petlab", folder, environment)
        terminal = Terminal(folder, environment)
        try:
            terminal.wait_for(at_prompt, 10)
            terminal.type("petlab run sweep.yaml\n")
            terminal.wait_for(lambda lines: any(map(STATUS.match, lines)), 120)
            terminal.wait_for(in_the_middle, LONGEST_RUN)
            text = text_of(terminal.screen)
            if not terminal.lines()[1].startswith("trial "):
                sys.exit(
                    "live_run.py: the run printed notes; try again on an idle machine:\n"
                    + text.plain
                )
        finally:
            terminal.close()
    for name in THEMES:
        (pictures / f"run-{name}.svg").write_text(draw(text, name))


if __name__ == "__main__":
    main()
