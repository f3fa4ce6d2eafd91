#!/usr/bin/env python3
"""Tests signals that others send to `petlab run` and its workers, such as a hang-up or the end of a job.

usage: signals.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import ctypes
import os
import pathlib
import signal
import time

import tiny_world
from scripted_world import ScriptedWorld

PTRACE_SEIZE = 0x4206
PAUSES = (0, 0.002, 0.02, 0.2)


def signals_in(pid, field):
    """The signals in a mask of /proc/PID/status, such as SigIgn or SigCgt."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(text.split(f"{field}:")[1].split()[0], 16)
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


def ignore(*numbers):
    """A preexec_fn that ignores signals, as nohup does, or a shell without job control for background jobs."""
    def act():
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
    return act


class Signals(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.gate = self.root / "gate"

    def workers(self, number):
        """Waits until this number of workers has started trials, and returns their pids."""
        sql = "SELECT pid FROM attempts WHERE started_at > 0 AND outcome = 'open'"
        return self.until(lambda: (self.root / "sweep.db").exists() and
                          (lambda rows: len(rows) == number and [row["pid"] for row in rows])(
                              self.query(sql)))

    def test_a_run_under_nohup_outlives_its_terminal(self):
        self.write_sweep(*[{"gate": str(self.gate)}] * 2)
        run = self.start_scripted(preexec_fn=ignore(signal.SIGHUP))
        workers = self.workers(2)
        for pid in (run.pid, *workers):
            self.assertIn(signal.SIGHUP, signals_in(pid, "SigIgn"))
            os.kill(pid, signal.SIGHUP)
        self.gate.touch()
        done = self.end(run)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 2})

    def test_signals_that_were_ignored_at_the_start_stay_ignored(self):
        ignored = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
        self.write_sweep({"gate": str(self.gate)})
        run = self.start_scripted(preexec_fn=ignore(*ignored), slots=1)
        worker, = self.workers(1)
        self.assertLessEqual(ignored, signals_in(run.pid, "SigIgn"))
        # petlab stops its workers by SIGTERM, so they never ignore it.
        self.assertEqual(ignored & signals_in(worker, "SigIgn"), ignored - {signal.SIGTERM})
        self.assertIn(signal.SIGTERM, signals_in(worker, "SigCgt"))
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        self.variables = {"TERM": "xterm"}
        watch = self.start("status", "sweep.yaml", "--watch", stdout=follower,
                           preexec_fn=ignore(*ignored))
        os.close(follower)
        self.until(lambda: signal.SIGWINCH in signals_in(watch.pid, "SigCgt"))
        server = self.start("serve", "--db", "sweep.db", "--port", "0", preexec_fn=ignore(*ignored))
        self.assertIn("http://", self.until(server.stdout.readline).decode())
        for process in (watch, server):
            self.assertLessEqual(ignored, signals_in(process.pid, "SigIgn"))
            process.kill()
        self.gate.touch()
        self.assertEqual(self.end(run).code, 0)

    def test_sigterm_twice_to_a_whole_job_leaves_a_checkpoint(self):
        # The only checkpoint is the one after the signal, and takes half a second.
        user = {"steps": 2000, "step_ms": 5, "checkpoint_every": 100000, "stop_ms": 500}
        self.write_sweep(user)
        for number, pause in enumerate(PAUSES, 1):
            with self.subTest(seconds=pause):
                run = self.start_scripted("--grace", "30s", slots=1)
                everybody = (*self.workers(1), run.pid)
                for after in (pause, 0):
                    for pid in everybody:
                        os.kill(pid, signal.SIGTERM)
                    time.sleep(after)
                self.assertEqual(self.end(run).code, 3)
                last = self.query("SELECT number, outcome, checkpoint_step > 0 AS kept FROM attempts "
                                  "ORDER BY number DESC LIMIT 1")
                self.assertEqual(last, [{"number": number, "outcome": "stopped", "kept": 1}])

    def test_ctrl_c_after_sigterm_kills_a_worker_that_does_not_listen(self):
        self.write_sweep({"behaviour": "ignore_sigterm", "attempts": 1})
        run = self.start_scripted("--grace", "2d", slots=1)
        worker, = self.workers(1)
        self.until(lambda: signal.SIGTERM in signals_in(worker, "SigIgn"))
        run.send_signal(signal.SIGTERM)
        self.until(lambda: "stopping at a checkpoint; Ctrl-C again: kill\n" in self.messages(run))
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.end(run, timeout=20).code, 3)
        self.assertEqual(self.outcomes(), {"stopped": 1})

    def test_a_worker_that_a_debugger_keeps_from_being_reaped_blocks_nothing(self):
        self.write_sweep({"gate": str(self.gate), "checkpoint_every": 1})
        run = self.start_scripted(slots=1)
        worker, = self.workers(1)
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        if ptrace(PTRACE_SEIZE, worker, None, None) != 0:
            os.kill(run.pid, signal.SIGKILL)
            self.skipTest("no process may be traced here")
        # As its tracer, this process keeps the worker a zombie, which its parent cannot reap.
        os.kill(worker, signal.SIGKILL)
        self.until(lambda: self.outcomes() == {"open": 1, "stopped": 1})
        self.gate.touch()
        done = self.end(run)
        self.assertEqual(done.code, 0, done)
        os.waitpid(worker, 0)
        self.assertEqual(self.query("SELECT reason FROM attempts WHERE outcome = 'stopped'"),
                         [{"reason": "it was traced, so its exit status is unknown"}])


if __name__ == "__main__":
    tiny_world.main()
