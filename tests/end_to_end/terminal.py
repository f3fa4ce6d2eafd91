"""Runs a program on a pseudo-terminal and interprets its screen, as far as petlab uses it."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

ESCAPE = re.compile(rb"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """Interprets a terminal's output. Codes that petlab does not use are errors."""

    def __init__(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.text = [""]  # all lines, including scrolled ones
        self.row = self.column = 0
        self.wrapped = False
        self.colours = set()  # all used colours
        self.pending = b""

    def top(self):
        return max(0, len(self.text) - self.lines)

    def shown(self):
        return [line.rstrip() for line in self.text[self.top():]]

    def put(self, character):
        if self.column >= self.columns:
            self.wrapped = True
        line = self.text[self.row].ljust(self.column)
        self.text[self.row] = line[:self.column] + character + line[self.column + 1:]
        self.column += 1

    def feed(self, data):
        data = self.pending + data
        self.pending = b""
        at = 0
        while at < len(data):
            byte = data[at:at + 1]
            if byte == b"\x1b":
                found = ESCAPE.match(data, at)
                if not found:
                    if len(data) - at > 16:
                        raise AssertionError(f"unknown escape code {data[at:at + 16]}")
                    self.pending = data[at:]
                    return
                self.escape(found[1], found[2])
                at = found.end()
            elif byte == b"\r":
                self.column = 0
                at += 1
            elif byte == b"\n":
                self.row += 1
                if self.row == len(self.text):
                    self.text.append("")
                at += 1
            else:
                size = 1 if byte[0] < 0x80 else 2 if byte[0] < 0xE0 else 3 if byte[0] < 0xF0 else 4
                if at + size > len(data):
                    self.pending = data[at:]
                    return
                character = data[at:at + size].decode()
                assert character >= " " and character != "\x7f", repr(character)
                self.put(character)
                at += size

    def escape(self, number, letter):
        if letter == b"A":
            self.row = max(self.top(), self.row - int(number or 1))
        elif letter == b"K":
            self.text[self.row] = self.text[self.row][:self.column]
        elif letter == b"J" and number == b"2":
            self.text = self.text[:self.top()] + [""]
            self.row = self.column = 0
            self.row = len(self.text) - 1
        elif letter == b"J":
            self.text[self.row] = self.text[self.row][:self.column]
            del self.text[self.row + 1:]
        elif letter == b"m":
            assert number in (b"0", b"31", b"32", b"33", b"36"), number
            self.colours.add(int(number))
        elif letter == b"H":
            self.row, self.column = self.top(), 0
        else:
            raise AssertionError(f"unknown escape code {number} {letter}")


class Terminal:
    """Runs `command` with all its streams on a terminal."""

    def __init__(self, command, columns, lines, cwd=None, env=None):
        self.screen = Screen(columns, lines)
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                if cwd:
                    os.chdir(cwd)
                os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **(env or {})})
            finally:
                os._exit(127)

    def resize(self, columns, lines):
        old = self.screen
        self.screen = Screen(columns, lines)
        self.screen.text, self.screen.row, self.screen.column = old.text, old.row, old.column
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        """Reads output for at most this time. Returns False at its end."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.screen.feed(data)
        return bool(data)

    def until(self, condition, seconds=60):
        """Reads until the screen's lines satisfy the condition, and returns them. Fails with the lines otherwise."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.screen.shown()):
                return self.screen.shown()
            if not self.read(0.05):
                break
        if condition(self.screen.shown()):
            return self.screen.shown()
        raise AssertionError("the screen shows\n" + "\n".join(self.screen.shown()))

    def wait(self, seconds=60):
        """Waits for the end and returns the exit code."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.05):
            pass
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.fd)
        return self.status

    def flow(self, action):
        """TCOOFF stops output immediately, unlike Ctrl-S; TCOON resumes it."""
        fd = os.open(f"/proc/{self.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
        try:
            termios.tcflow(fd, action)
        finally:
            os.close(fd)

    def press(self, keys):
        os.write(self.fd, keys)

    def kill(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(5)
