#!/usr/bin/env python3
"""Tests petlab run and petlab status on a terminal. usage: live_view.py FOLDER_OF_PROGRAMS"""
import json
import os
import pathlib
import re
import select
import signal
import termios
import time

import tiny_world
from scripted_world import HEARD, ScriptedWorld
from terminal import Terminal

SWEEP = """sweep: live
base:
  backbone: ./tiny
  task: movie-polarity
  module.kind: adapter
  user: {steps: 3000, step_ms: 20, validate_every: 3}
variants:
"""


class LiveView(ScriptedWorld):
    def write_sweep(self, variants):
        self.write("sweep.yaml", SWEEP + "".join(f"  {line}\n" for line in variants))

    def terminal(self, *words, columns=120, lines=24):
        terminal = Terminal([str(tiny_world.PETLAB), *words], columns, lines,
                            cwd=self.root, env=self.environment())
        self.addCleanup(terminal.kill)
        return terminal

    def run_words(self, *words):
        return ("run", "sweep.yaml", "--slots", "3", "--retry-delay", "10ms", "--grace", "300ms",
                "--worker", str(tiny_world.PROGRAMS / "scripted-worker"), *words)

    def test_rows_are_drawn_in_place_and_adapt_to_the_size(self):
        self.write_sweep(["first: {seed: 1}", "second: {seed: 2}",
                          "bad: {seed: 3, user.steps: 6, user.behaviour: crash, user.attempts: 9}"])
        run = self.terminal(*self.run_words("--retries", "0"))
        # Two rows with numbers, and the failure with its worker's last message.
        row = re.compile(r"[0-9a-f]{8} (first|second) +training +\d+/3000 +[\d.e-]+ +0\.\d{4} +"
                         r"cpu-\d(\.1)? +\d+ (s|min) +\d+ (s|min)$")
        lines = run.until(lambda shown: sum(bool(row.match(line)) for line in shown) == 2 and
                          any("about to crash in training" in line for line in shown))
        self.assertEqual(lines[0].split(), ["trial", "state", "step", "loss", "best", "device",
                                            "time", "left"])
        self.assertRegex(lines[3], r"^[0-9a-f]{8} failed: attempt 1 crashed: .*signal 6")
        self.assertEqual(lines[4], "    about to crash in training")
        # The bar shows a third as failed, and nothing as done.
        self.assertRegex(lines[5], "^live ▒{13}░{27}   0 %$")
        self.assertRegex(lines[6], r"^0 of 3 done, 2 running, 1 failed")
        self.assertEqual(len(lines), 7)
        self.assertLessEqual({0, 31, 36}, run.screen.colours)

        # status --watch shows the same.
        status = self.terminal("status", "sweep.yaml", "--watch", "--retries", "0")
        lines = status.until(lambda shown: sum(bool(row.match(line)) for line in shown) == 2)
        self.assertEqual(lines[0].split()[:5], ["trial", "state", "step", "loss", "best"])
        self.assertIn("sweep live: 3 trials: 2 running, 1 failed", lines[-1])
        status.press(b"\x03")
        self.assertEqual(status.wait(), 0)
        plain = self.petlab("status", "sweep.yaml", "--retries", "0").out.splitlines()
        self.assertEqual(sum(bool(row.match(line)) for line in plain), 2, plain)

        # On a smaller terminal, columns and rows are omitted and nothing wraps.
        run.resize(40, 4)
        lines = run.until(lambda shown: shown[0].split() == ["trial", "state", "step", "left"])
        self.assertLessEqual(max(map(len, lines)), 39)
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[3], r"^0 of 3 done, 2 running, 1 failed")
        run.resize(100, 30)
        run.until(lambda shown: any("about to crash in training" in line for line in shown) and
                  shown[0].split()[-1] == "left")
        self.assertFalse(run.screen.wrapped)

        run.press(b"\x03")
        run.until(lambda shown: any(line.startswith("finishing the running") for line in shown))
        run.press(b"\x03")
        run.until(lambda shown: any(line.startswith("stopping at a checkpoint") for line in shown))
        self.assertEqual(run.wait(), 3)
        end = run.screen.shown()
        self.assertIn("    about to crash in training", end)
        self.assertRegex("\n".join(end), r"0 of 3 done, 0 running, 1 failed")
        self.assertEqual(end[-2:], ["interrupted; run the same command to resume", ""])

    def gated(self, variant, seed):
        """A gate file, and a variant whose trial waits for it after the first step."""
        gate = self.root / f"gate-{variant}"
        return gate, (f"{variant}: {{seed: {seed}, user.steps: 4, user.step_ms: 0, "
                      f"user.gate: '{gate}'}}")

    def waiting(self, run, trials):
        run.until(lambda shown: sum(" training " in line and " 1/4 " in line
                                    for line in shown) == trials)

    def test_results_come_one_by_one_and_the_end_names_the_report(self):
        (first, *one), (second, *two) = self.gated("first", 1), self.gated("second", 2)
        self.write_sweep(one + two)
        run = self.terminal(*self.run_words())
        self.waiting(run, 2)
        first.touch()
        done = re.compile(r"done [0-9a-f]{8} (first|second)  movie-polarity \w+ -?\d+\.\d{4}$")
        lines = run.until(lambda shown: any(done.match(line) for line in shown) and
                          any(line.endswith(" 50 %") or " 50 %, about " in line for line in shown))
        self.assertTrue(any(line.startswith("live ████") for line in lines), lines)
        second.touch()
        self.assertEqual(run.wait(), 0)
        end = run.screen.shown()
        self.assertEqual(sorted(done.match(line)[1] for line in end if done.match(line)),
                         ["first", "second"])
        self.assertEqual(end[-2:], ["report: petlab report sweep --sweep live", ""])
        self.assertRegex(end[-4], "^live █{40} 100 %$")
        self.assertIn(32, run.screen.colours)
        report = self.petlab(*end[-2].removeprefix("report: petlab ").split())
        self.assertEqual(report.code, 0, report)
        self.assertIn("sweep live: 2 of 2 trials done", report.out)

    def test_no_color_means_none(self):
        self.write_sweep(["only: {seed: 1, user.steps: 6}",
                          "bad: {seed: 3, user.steps: 6, user.behaviour: crash, user.attempts: 9}"])
        run = Terminal([str(tiny_world.PETLAB), *self.run_words("--retries", "0")], 120, 24,
                       cwd=self.root, env={**self.environment(), "NO_COLOR": "1"})
        self.addCleanup(run.kill)
        self.assertEqual(run.wait(), 1)
        self.assertEqual(run.screen.colours, set())
        self.assertFalse(any("report: petlab" in line for line in run.screen.shown()))

    def test_a_stopped_terminal_blocks_nothing(self):
        (first, *one), (second, *two) = self.gated("first", 1), self.gated("second", 2)
        self.write_sweep(one + two)
        run = self.terminal(*self.run_words())
        self.waiting(run, 2)
        run.flow(termios.TCOOFF)
        # The run writes a message, which a stopped terminal does not accept.
        os.kill(run.pid, signal.SIGINT)
        first.touch()
        self.until(lambda: self.outcomes() == {"finished": 1, "open": 1})
        while run.fd in select.select([run.fd], [], [], 0)[0]:
            run.read(0)
        self.assertNotIn(HEARD[0], "\n".join(run.screen.shown()))
        run.flow(termios.TCOON)
        run.until(lambda shown: any(line.startswith(HEARD[0]) for line in shown) and
                  shown[-1].startswith("1 of 2 done, 1 running"))
        second.touch()
        self.assertEqual(run.wait(), 0)
        self.assertFalse(run.screen.wrapped)

    def test_a_terminal_that_stays_stopped_does_not_block_the_end_of_a_run(self):
        gate, *one = self.gated("only", 1)
        self.write_sweep(one)
        run = self.terminal(*self.run_words())
        self.waiting(run, 1)
        run.flow(termios.TCOOFF)
        os.kill(run.pid, signal.SIGINT)
        gate.touch()
        self.assertEqual(run.wait(), 0)
        self.assertEqual(self.outcomes(), {"finished": 1})
        self.assertNotIn(HEARD[0], "\n".join(run.screen.shown()))

    def test_a_watch_ends_with_the_run_that_it_watches(self):
        self.write_sweep(["only: {seed: 1, user.steps: 60}"])
        run = self.terminal(*self.run_words())
        run.until(lambda shown: any("training" in line for line in shown))
        status = self.terminal("status", "sweep.yaml", "--watch")
        self.assertEqual(run.wait(), 0)
        self.assertEqual(status.wait(), 0)
        self.assertRegex("\n".join(status.screen.shown()), "sweep live: 1 trial: 1 done")

    def test_a_watch_notices_the_death_of_an_unguarded_worker(self):
        self.write_sweep(["only: {seed: 1, user.behaviour: ignore_sigterm, user.phase: loading}"])
        run = self.terminal(*self.run_words())
        run.until(lambda shown: any(" loading " in line for line in shown))
        status = self.terminal("status", "sweep.yaml", "--watch")
        status.until(lambda shown: any("1 running" in line for line in shown))
        worker, = self.query("SELECT pid FROM attempts")
        ignored = re.compile(r"SigIgn:\s*(\w+)")
        status_file = pathlib.Path(f"/proc/{worker['pid']}/status")
        self.until(lambda: int(ignored.search(status_file.read_text())[1], 16) >> signal.SIGTERM - 1 & 1)
        # Kills the guardian first, while the stopped run cannot start another.
        os.kill(run.pid, signal.SIGSTOP)
        for task in pathlib.Path(f"/proc/{run.pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                if child != worker["pid"]:
                    os.kill(child, signal.SIGKILL)
        os.kill(run.pid, signal.SIGKILL)
        # The worker is alive, so the watch continues.
        time.sleep(1.5)
        self.assertRegex("\n".join(status.screen.shown()), "1 trial.*: 1 running")
        os.kill(worker["pid"], signal.SIGKILL)
        self.assertEqual(status.wait(), 0)
        self.assertRegex("\n".join(status.screen.shown()), "1 trial.*: 1 interrupted")

    def test_a_watch_reads_nothing_again_while_nothing_happens(self):
        self.write_sweep([f"v{seed}: {{seed: {seed}, user.step_ms: 0, user.behaviour: hang}}"
                          for seed in range(6)])
        words = list(self.run_words())
        words[words.index("--slots") + 1] = "6"
        run = self.terminal(*words)
        run.until(lambda shown: any("6 running" in line for line in shown))
        # Waits until the last progress before the hang is in the database.
        self.until(lambda: self.query("SELECT count(*) AS n FROM progress WHERE step >= 1499")
                   == [{"n": 6}])
        status = self.terminal("status", "sweep.yaml", "--watch")
        status.until(lambda shown: sum(" 1500/3000 " in line for line in shown) == 6)
        time.sleep(1)

        def bytes_read():
            counters = pathlib.Path(f"/proc/{status.pid}/io").read_text()
            return int(re.search(r"rchar: (\d+)", counters)[1])
        before = bytes_read()
        time.sleep(2)
        # Four updates only read which trials run and whether their workers live.
        self.assertLess(bytes_read() - before, 20_000)
        run.kill()

    def test_a_worker_cannot_write_escape_codes_to_the_terminal(self):
        self.write_sweep(["bad: {seed: 1, user.steps: 6, user.behaviour: escape_codes, user.attempts: 9}"])
        run = self.terminal(*self.run_words("--retries", "0"))
        self.assertEqual(run.wait(), 1)
        self.assertIn("    red \ufffd[31m text", run.screen.shown())
        trial, = self.query("SELECT trial_id FROM trials")
        shown = self.petlab("show", trial["trial_id"])
        self.assertIn("\n    red \ufffd[31m text\n", shown.out)

    def test_without_a_terminal_output_is_plain_lines(self):
        self.write_sweep(["only: {seed: 1, user.steps: 2}"])
        done = self.petlab(*self.run_words())
        self.assertEqual(done.code, 0)
        self.assertNotIn("\x1b", done.err)
        self.assertNotIn("\r", done.err)
        self.assertRegex(done.err.splitlines()[-1], "^1 of 1 done, 0 running, 0 failed")
        self.assertEqual(self.petlab("status", "sweep.yaml", "--watch").err,
                         "petlab: --watch needs a terminal\n")
        dumb = Terminal([str(tiny_world.PETLAB), *self.run_words()], 80, 24, cwd=self.root,
                        env={**self.environment(), "TERM": "dumb"})
        self.assertEqual(dumb.wait(), 0)
        quiet = self.terminal(*self.run_words("--quiet"))
        self.assertEqual(quiet.wait(), 0)
        self.assertEqual(quiet.screen.shown(), [""])

    def test_events_as_json_lines(self):
        self.write_sweep(["good: {seed: 1, user.steps: 80}",
                          "bad: {seed: 2, user.steps: 6, user.behaviour: crash, user.attempts: 9}"])
        done = self.petlab(*self.run_words("--json", "--retries", "0"))
        self.assertEqual(done.code, 1)
        events = [json.loads(line) for line in done.out.splitlines()]
        kinds = {event["event"] for event in events}
        self.assertEqual(kinds, {"status", "trial_over", "end"})
        over = {event["state"]: event for event in events if event["event"] == "trial_over"}
        self.assertEqual(over["failed"]["last_lines"], "about to crash in training")
        self.assertEqual(over["done"]["why"], "")
        training = [trial for event in events if event["event"] == "status"
                    for trial in event["trials"] if trial["doing"] == "training"]
        self.assertTrue(training)
        self.assertEqual(training[-1]["variant"], "good")
        self.assertEqual(training[-1]["of"], 80)
        self.assertIn("best", training[-1])
        self.assertEqual(events[-1]["event"], "end")
        self.assertEqual((events[-1]["done"], events[-1]["failed"]), (1, 1))
        both = self.petlab(*self.run_words("--json", "--quiet"))
        self.assertEqual((both.code, both.out, both.err),
                         (2, "", "petlab: found --quiet and --json, expected one of them\n"))


if __name__ == "__main__":
    tiny_world.main()
