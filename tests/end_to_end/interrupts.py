#!/usr/bin/env python3
"""Tests Ctrl-C once, twice and three times, and `petlab stop`: exit codes, and resuming with the same command.

usage: interrupts.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import os
import signal
import subprocess
import time

import tiny_world
from scripted_world import HEARD, METRICS, ScriptedWorld

WAITS = "interrupted; run the same command to resume\n"


class Interrupts(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.gate = self.root / "gate"
        waits = {"steps": 12, "checkpoint_every": 5, "gate": str(self.gate)}
        self.write_sweep(waits, waits, {}, {})

    def started(self, *words, slots=2, **options):
        """Starts a run. Each slot's trial has written a checkpoint and waits for the gate."""
        self.gate.unlink(missing_ok=True)
        process = self.start_scripted(*words, slots=slots, **options)
        self.until(lambda: (self.root / "sweep.db").exists() and self.query(
            "SELECT count(*) AS n FROM attempts WHERE checkpoint_step > 0")[0]["n"] == slots)
        return process

    def goes_on(self, attempts):
        """Checks that the same command completes the sweep with undisturbed results."""
        self.gate.touch()
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts")[0]["n"], attempts)
        self.assertEqual(self.query(METRICS), self.wanted())
        self.assertEqual(self.run_scripted().code, 0)

    def test_ctrl_c_once_finishes_what_runs(self):
        process = self.started()
        self.interrupt(process)
        self.gate.touch()
        done = self.end(process)
        self.assertEqual(done.code, 3, done)
        self.assertIn("\nfinishing the running trials; Ctrl-C again: checkpoint and stop; a "
                      "third time: kill\n", done.err)
        self.assertTrue(done.err.endswith(WAITS), done)
        self.assertEqual(self.outcomes()["finished"], 2)
        self.assertNotIn("stopped", self.outcomes())
        self.goes_on(attempts=4)

    def test_ctrl_c_twice_stops_at_checkpoints(self):
        process = self.started()
        self.interrupt(process, times=2)
        done = self.end(process)
        self.assertEqual(done.code, 3, done)
        self.assertIn("\nstopping at a checkpoint; Ctrl-C again: kill\n", done.err)
        self.assertEqual(self.outcomes(), {"stopped": 2})
        self.goes_on(attempts=6)
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts WHERE parent = 1"),
                         [{"n": 2}])

    def test_ctrl_c_three_times_kills_a_worker_that_does_not_listen(self):
        hangs = {"behaviour": "ignore_sigterm", "checkpoint_every": 1, "steps": 8}
        self.write_sweep(hangs, hangs, {}, {})
        # With days of grace, only the third Ctrl-C ends them.
        process = self.started("--grace", "2d")
        self.interrupt(process, times=3)
        done = self.end(process, timeout=20)
        self.assertEqual(done.code, 3, done)
        self.assertEqual(self.outcomes(), {"stopped": 2})
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 4, "stopped": 2})

    def test_ctrl_c_at_a_terminal_does_not_reach_the_workers(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        process = self.started(stdin=follower, start_new_session=True, preexec_fn=lambda: take(0))
        os.close(follower)
        os.write(leader, b"\x03")
        self.until(lambda: HEARD[0] in self.messages(process))
        self.gate.touch()
        done = self.end(process)
        self.assertEqual(done.code, 3, done)
        self.assertEqual(self.outcomes(), {"finished": 2}, done)

    def test_petlab_stop_together_with_ctrl_c_acts_like_one_of_them(self):
        for order in ("stop first", "Ctrl-C first", "both"):
            with self.subTest(order):
                for file in self.root.glob("sweep.db*"):
                    file.unlink()
                subprocess.run(["rm", "-rf", self.root / "sweep.runs"], check=True)
                process = self.started()
                if order == "Ctrl-C first":
                    self.interrupt(process)
                stop = self.start("stop", "sweep.yaml")
                if order == "both":
                    process.send_signal(signal.SIGINT)
                stopped = self.end(stop)
                self.assertEqual(stopped.code, 0, stopped)
                self.assertIn(": asked to finish its running trials and exit\n", stopped.out)
                if order == "stop first":
                    self.interrupt(process)
                # Gives the second request time for an effect.
                time.sleep(0.2)
                self.gate.touch()
                done = self.end(process)
                self.assertEqual(done.code, 3, done)
                self.assertEqual(self.outcomes(), {"finished": 2})
        self.goes_on(attempts=4)

    def test_ctrl_c_when_all_is_done_leaves_exit_code_0(self):
        self.write_sweep({"checkpoint_every": 1, "gate": str(self.gate)})
        process = self.started(slots=1)
        self.interrupt(process)
        self.gate.touch()
        done = self.end(process)
        self.assertEqual(done.code, 0, done)


def take(terminal):
    """Makes this the session's controlling terminal, so that Ctrl-C reaches the foreground group."""
    import fcntl
    import termios
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


if __name__ == "__main__":
    tiny_world.main()
