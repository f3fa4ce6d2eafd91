#!/usr/bin/env python3
"""Tests `petlab run` with failing disks, pipes, clocks and workers: its messages, and that nothing is lost.

usage: injected_faults.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
tests/support/fault_shim.cpp makes calls of the C library fail, so no privileges or small disks are needed.
"""
import os
import re
import signal
import subprocess
import time

import tiny_world
from scripted_world import METRICS, WORKER, ScriptedWorld

FULL = "No space left on device"
BROKEN = "Input/output error"
FULL_DATABASE = ("the disk is full; free some space and run the same command again (nothing is lost: what "
                 "workers reported is in the runs folder)")
BROKEN_DATABASE = "look at the disk, then run the same command again"
GONE = ("the file was deleted or replaced while it was open; run the same command again, or, to have "
        "everything back, rebuild it from the runs folder: petlab db rebuild")
TRIAL = "[0-9a-f]{16}"
OWNER = "[0-9]+-[0-9]+-[0-9a-f]{8}"
# Long enough for several commits.
CHECKPOINTS = {"steps": 4, "step_ms": 20, "checkpoint_every": 2}


def fail(calls, path, error, program="petlab", **more):
    words = "".join(f" {name}={value}" for name, value in more.items())
    return f"fail program={program} calls={calls} path={path} error={error}{words}"


class InjectedFaults(ScriptedWorld):
    def last_line(self, done):
        return done.err.rstrip("\n").split("\n")[-1]

    def check_all(self, cases):
        """Runs each case, a rule and a pattern for petlab's last line. The run must exit with 1, and
        the same command must then complete it with undisturbed results."""
        self.write_sweep(*[CHECKPOINTS] * 4)
        wanted = self.wanted()
        for number, (rule, message) in enumerate(cases):
            place = ["--db", f"{number}.db", "--runs", f"runs-{number}"]
            with self.subTest(rule):
                done = self.run_scripted(*place, faults=rule)
                self.assertEqual((done.code, done.out), (1, ""), done)
                self.assertRegex(self.last_line(done), "^petlab: " + message.replace(
                    "DB", f"{number}\\.db").replace("RUNS", f"ROOT/runs-{number}") + "$")
                done = self.run_scripted(*place)
                self.assertEqual(done.code, 0, done)
                self.assertEqual(self.query(METRICS, f"{number}.db"), wanted)
                # No partial files are left in the runs folder or next to the database.
                left = [path for path in self.root.rglob("*") if ".new-" in path.name]
                self.assertEqual(left, [])

    def stopped_at_a_checkpoint(self):
        """Stops a trial at its first checkpoint. Returns the metrics of an undisturbed run."""
        self.write_sweep({"steps": 60, "step_ms": 20, "checkpoint_every": 2})
        wanted = self.wanted()
        run = self.start_scripted()
        self.until(lambda: list(self.root.glob("sweep.runs/*/1/checkpoint/step-*.txt")))
        self.interrupt(run, 2)
        self.assertEqual(self.end(run).code, 3)
        return wanted

    def resumed(self):
        return self.query("SELECT number, outcome, parent, resume_checkpoint AS file FROM attempts "
                          "ORDER BY number")

    def test_a_checkpoint_removed_by_its_writer_can_still_be_resumed(self):
        wanted = self.stopped_at_a_checkpoint()
        run = self.start_scripted()
        kept = self.until(lambda: list(self.root.glob("sweep.runs/*/2/resume/step-*.txt")))[0]
        for file in kept.parents[2].glob("1/checkpoint/*"):
            file.unlink()
        run.send_signal(signal.SIGKILL)
        run.communicate()
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(METRICS), wanted)

    def test_a_missing_checkpoint_is_planned_again(self):
        wanted = self.stopped_at_a_checkpoint()
        done = self.run_scripted(faults=fail("link", "*/resume/*", "ENOENT", times=1))
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.err, f"{TRIAL}: checkpoint ROOT/sweep.runs/{TRIAL}/1/checkpoint/"
                                   r"step-\d+.txt no longer exists; planned again")
        self.assertEqual(self.query(METRICS), wanted)
        # The claim was undone: there is no second attempt, and its number is not reused.
        self.assertEqual([(row["number"], row["outcome"], row["parent"]) for row in self.resumed()],
                         [(1, "stopped", None), (3, "finished", 1)])
        self.assertEqual([path for path in self.root.rglob("*") if ".new-" in path.name], [])

    def test_a_file_system_without_hard_links(self):
        wanted = self.stopped_at_a_checkpoint()
        done = self.run_scripted(faults=fail("link", "*/resume/*", "EPERM"))
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(METRICS), wanted)
        kept = next(self.root.glob("sweep.runs/*/2/resume/step-*.txt"))
        self.assertEqual(self.resumed()[1]["file"], f"resume/{kept.name}")
        self.assertEqual(kept.stat().st_nlink, 1)

    def test_a_full_disk(self):
        cannot = f": cannot be written: {FULL}"
        self.check_all([
            (fail("pwrite64,write", "*.db-wal", "ENOSPC", after=20),
             "DB: cannot commit: " + re.escape(FULL_DATABASE)),
            (fail("pwrite64,write", "*.db.new-*", "ENOSPC"),
             "DB: cannot make it: the disk is full or cannot be written; free some space and run the same "
             "command again"),
            (fail("write", "*/attempt.jsonl", "ENOSPC", after=3), f"RUNS/{TRIAL}/1/attempt.jsonl{cannot}"),
            (fail("write", "*/trial.json", "ENOSPC", after=1),
             fr"RUNS/{TRIAL}/\.1\.new-\d+/trial\.json{cannot}"),
            (fail("mkdir", "*.new-*", "ENOSPC", after=1),
             fr"RUNS/{TRIAL}/\.1\.new-\d+: cannot be created: {FULL}"),
            (fail("write", "*/sweeps/*", "ENOSPC"), f"RUNS/sweeps/scripted.jsonl{cannot}"),
            (fail("open", "*.locks/*", "ENOSPC"),
             f"RUNS/.locks/{OWNER}.lock: the lock file cannot be opened: {FULL}"),
            (fail("pwrite", "*.locks/*", "ENOSPC"),
             f"RUNS/.locks/{OWNER}.lock: the lock file cannot be written: {FULL}"),
        ])

    def test_a_broken_disk(self):
        database = rf"input/output error \(.*\); {BROKEN_DATABASE}"
        self.check_all([
            (fail("pwrite64,write", "*.db-wal", "EIO", after=20), f"DB: cannot commit: {database}"),
            (fail("fdatasync,fsync", "*.db-wal", "EIO", after=3), f"DB: cannot commit: {database}"),
            # All pages fail after a while, even the schema's, which SQLite reports as damage.
            (fail("pread64,read", "*.db*", "EIO", after=20), f"DB: cannot [a-z ]+: {database}"),
            (fail("pread", "*/events.jsonl", "EIO", after=3),
             f"RUNS/{TRIAL}/1/events.jsonl: cannot be read: {BROKEN}"),
            (fail("open", "*/events.jsonl", "EIO", after=3),
             f"RUNS/{TRIAL}/1/events.jsonl: cannot be read: {BROKEN}"),
            (fail("rename", "*/[0-9a-f]*/1", "EIO", after=1), f"RUNS/{TRIAL}/1: cannot be created: {BROKEN}"),
            (fail("fsync", "*/sweeps/*", "EIO"), f"RUNS/sweeps/scripted.jsonl: cannot be written: {BROKEN}"),
        ])

    def test_a_failed_creation_leaves_no_partial_database(self):
        self.write_sweep({})
        for after in range(0, 40, 3):
            with self.subTest(after=after):
                self.run_scripted("--db", f"{after}.db",
                                  faults=fail("pread64", "*.db*", "EIO", after=after))
                done = self.run_scripted("--db", f"{after}.db")
                self.assertEqual(done.code, 0, done)

    def test_an_unwritable_log_stops_nothing(self):
        self.write_sweep({"behaviour": "flood_log", "phase": "loading"})
        done = self.run_scripted(faults=fail("write", "*/log.txt", "ENOSPC"))
        self.assertEqual(done.code, 0, done)

    def test_a_decision_that_cannot_be_synced_is_not_taken(self):
        self.write_sweep({"behaviour": "error"})
        self.assertEqual(self.run_scripted().code, 1)
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        self.faults = fail("fdatasync", "*/decisions.jsonl", "EIO")
        done = self.petlab("cancel", trial, "--db", "sweep.db")
        self.faults = ""
        self.assertEqual((done.code, done.err),
                         (1, f"petlab: ROOT/sweep.runs/{trial}/decisions.jsonl: cannot be written: "
                             f"{BROKEN}\n"))
        self.assertEqual(self.query("SELECT cancelled FROM trials"), [{"cancelled": 0}])

    def test_no_more_processes(self):
        self.write_sweep(CHECKPOINTS)
        done = self.run_scripted(faults=fail("fork", "*", "EAGAIN"))
        self.assertEqual((done.code, done.err), (
            1, "petlab: cannot start a guardian process: Resource temporarily unavailable\n"))
        done = self.run_scripted(faults=fail("fork,vfork", "*", "EAGAIN", after=2), slots=1)
        self.assertEqual((done.code, self.last_line(done)), (
            1, f"petlab: slot cpu-0 is disabled: three workers in a row exited before starting "
               f"a trial: {WORKER}: the worker cannot be started: Resource temporarily "
               f"unavailable"))
        self.assertEqual(self.run_scripted().code, 0)

    def test_a_worker_whose_disk_fails(self):
        self.write_sweep(CHECKPOINTS)
        for rule, message in (
                (fail("fdatasync", "*/events.jsonl", "EIO", "scripted-worker"),
                 "attempt 1 failed: events.jsonl: cannot be synced"),
                (fail("write", "*/events.jsonl", "EIO", "scripted-worker", after=4),
                 "attempt 3 crashed: the worker ended with exit code 1: scripted-worker: "
                 "events.jsonl: cannot be written (3 of 3 attempts)")):
            with self.subTest(rule):
                subprocess.run("rm -rf sweep.db* sweep.runs", shell=True, cwd=self.root, check=True)
                done = self.run_scripted(faults=rule, slots=1)
                self.assertEqual(done.code, 1, done)
                trial, = self.query("SELECT trial_id FROM trials")
                self.assertIn(f"\n{trial['trial_id']} failed: {message}\n", done.err)
                self.assertEqual(self.run_scripted("--rerun", "failed").code, 0)

    def test_a_file_is_synced_before_it_is_renamed(self):
        self.write_sweep({}, {})
        trace = self.root / "trace"
        self.assertEqual(self.run_scripted(faults=f"trace program=petlab file={trace}").code, 0)
        calls = [line.split(" ", 1) for line in trace.read_text().split("\n")[:-1]]
        renamed = [(at, path) for at, (call, path) in enumerate(calls)
                   if call == "rename" and ["mkostemp", path + ".XXXXXX"] in calls]
        self.assertGreaterEqual(len(renamed), 3)  # two trial.json files and the sweep
        for at, path in renamed:
            before = [call for call, other in calls[:at] if re.fullmatch(
                re.escape(path) + r"\.\w{6}", other)]
            self.assertEqual(before[-1], "fsync", path)
            self.assertEqual(calls[at + 1], ["fsync", os.path.dirname(path)])

    def test_a_folder_that_cannot_be_read_completely_is_reported(self):
        self.write_sweep({})
        self.assertEqual(self.run_scripted().code, 0)
        self.faults = fail("readdir", "*/.locks", "EIO", after=1)
        self.addCleanup(setattr, self, "faults", "")
        for words in (["status", "sweep.yaml"], ["stop", "sweep.yaml"]):
            done = self.petlab(*words)
            self.assertEqual((done.code, done.err), (
                1, "petlab: ROOT/sweep.runs/.locks: cannot be read: Input/output error\n"))

    def test_unread_output_blocks_nothing(self):
        self.write_sweep(*[{}] * 150)
        for words, stream in ((["--json"], "stdout"), ([], "stderr")):
            with self.subTest(stream):
                subprocess.run("rm -rf sweep.db* sweep.runs", shell=True, cwd=self.root, check=True)
                reading, writing = os.pipe()
                # A pipe of the smallest size, full from the start.
                import fcntl
                fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
                os.write(writing, b"x" * 4096)
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                process = self.start_scripted(*words, **(quiet | {stream: writing}))
                os.close(writing)
                self.until(lambda: (self.root / "sweep.db").exists() and
                           self.outcomes() == {"finished": 150})
                text = b""
                while part := os.read(reading, 65536):
                    text += part
                os.close(reading)
                self.assertEqual(process.wait(30), 0)
                if stream == "stdout":
                    self.assertEqual(text[4096:].count(b'"state":"done"'), 150)
                    self.assertIn(b'"exit_code":0', text)
                else:
                    self.assertIn(b"150 of 150 done", text)

    def test_ctrl_c_works_while_output_is_not_read(self):
        self.write_sweep({"steps": 10000, "step_ms": 20, "checkpoint_every": 1})
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        try:
            while os.write(writing, b"x" * 4096):
                pass
        except BlockingIOError:
            pass
        os.set_blocking(writing, True)
        process = self.start_scripted(stdout=subprocess.DEVNULL, stderr=writing)
        os.close(writing)
        self.until(lambda: (self.root / "sweep.db").exists() and self.query(
            "SELECT count(*) AS n FROM attempts WHERE checkpoint_step > 0")[0]["n"])
        process.send_signal(signal.SIGTERM)  # like two Ctrl-C
        self.until(lambda: self.outcomes() == {"stopped": 1})
        os.close(reading)  # remaining output has no reader
        self.assertEqual(process.wait(30), 3)

    def test_a_worker_that_does_not_read_its_full_input_blocks_nothing(self):
        # Fast trials, so that many are assigned in advance, then one that hangs while the pipe is full.
        self.write_sweep(*[{}] * 40, {"behaviour": "hang", "attempts": 1}, *[{}] * 60)
        done = self.run_scripted("--no-progress-limit", "1s", faults="pipe program=petlab size=4096",
                                 slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertIn(" interrupted: attempt 1 stalled: reported nothing for 1 s (--no-progress-limit); "
                      "restarts\n", done.err)
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts WHERE outcome = 'finished'"),
                         [{"n": 101}])

    def test_many_reruns_are_decided_with_one_sync_and_one_transaction(self):
        self.write_sweep(*[{}] * 30)
        self.assertEqual(self.run_scripted().code, 0)
        trace = self.root / "trace"
        done = self.run_scripted("--rerun", "all", faults=f"trace program=petlab file={trace}")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 60})
        calls = [line.split(" ", 1) for line in trace.read_text().splitlines()]
        decisions = [(at, call) for at, (call, path) in enumerate(calls)
                     if path.endswith("/decisions.jsonl")]
        self.assertEqual([call for _, call in decisions], ["open", "write"] * 30)
        synced = [at for at, (call, _) in enumerate(calls) if call == "syncfs"]
        # The decisions are synced before the database has any of them. The other sync is that at the
        # end of the run.
        self.assertEqual(len(synced), 2)
        self.assertGreater(synced[0], decisions[-1][0])
        between = [path for _, path in calls[decisions[0][0]:synced[0]]]
        self.assertEqual([path for path in between if path.endswith("-wal")], [])

    def test_misbehaving_workers(self):
        # (behaviour, phase): the message about the trial with --retries 0
        events = f"{TRIAL}/1/events.jsonl"
        signal_6 = r"the worker ended with signal 6 \(Aborted\): about to crash in "
        cases = [
            ({"behaviour": "crash", "phase": "loading"},
             fr"attempt 1 crashed: {signal_6}loading \(1 of 1 attempts\)"),
            ({"behaviour": "crash", "phase": "checkpointing", "checkpoint_every": 1},
             fr"attempt 1 crashed: {signal_6}checkpointing \(1 of 1 attempts\)"),
            ({"behaviour": "kill"},
             r"attempt 1 crashed: the worker ended with signal 9 \(Killed\) \(1 of 1 attempts\)"),
            ({"behaviour": "exit"},
             r"attempt 1 crashed: the worker ended with exit code 0 \(1 of 1 attempts\)"),
            ({"behaviour": "fork_and_crash"},
             r"attempt 1 crashed: the worker ended with signal 6 \(Aborted\) \(1 of 1 attempts\)"),
            ({"behaviour": "error"}, "attempt 1 failed: the script says so"),
            ({"behaviour": "rubbish"},
             fr"attempt 1 failed: {events}:6: found 'this is no event' at byte 0, expected a JSON object"),
            ({"behaviour": "lie"}, fr"attempt 1 failed: {events}:6: seq is 8, must be 5"),
            ({"behaviour": "hang"},
             r"attempt 1 stalled: reported nothing for 2 s \(--no-progress-limit\) \(1 of 1 attempts\)"),
            ({"behaviour": "ignore_sigterm"},
             r"attempt 1 stalled: reported nothing for 2 s \(--no-progress-limit\) \(1 of 1 attempts\)"),
        ]
        self.write_sweep(*[user for user, _ in cases], {"behaviour": "fork"}, {"behaviour": "flood_log"})
        done = self.run_scripted("--retries", "0", "--no-progress-limit", "2s", slots=4)
        self.assertEqual(done.code, 1, done)
        for row in self.query("SELECT seed, trial_id FROM trials ORDER BY seed"):
            with self.subTest(row["seed"]):
                messages = [line for line in done.err.split("\n") if line.startswith(row["trial_id"])]
                if row["seed"] <= len(cases):
                    self.assertEqual(len(messages), 1, done)
                    self.assertRegex(messages[0], f"^{TRIAL} failed: {cases[row['seed'] - 1][1]}$")
                else:
                    self.assertEqual(messages, [])  # these two trials are done
        # Their forked processes have ended too.
        self.assertEqual(self.processes_left(), [])

    def processes_left(self):
        mark = f"PETLAB_SLOTS={self.root}/slots".encode()
        left = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if entry.isdigit() and mark in file.read().split(b"\0"):
                        left.append(entry)
            except OSError:
                pass
        return left

    def test_a_worker_that_floods_its_log(self):
        self.write_sweep({"behaviour": "flood_for_ever", "attempts": 99}, {}, {})
        done = self.run_scripted("--time-limit", "2s")
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, fr"\n{TRIAL} failed: attempt 1 timed out: ran longer than 2 s "
                                   r"\(--time-limit\)\n")
        self.assertEqual(self.outcomes(), {"finished": 2, "timed_out": 1})
        log, = (self.root / "sweep.runs").glob("*/1/log.txt")
        self.assertLess(log.stat().st_size, (64 << 20) + 100)

    def test_a_clock_that_jumps(self):
        user = {"steps": 30, "step_ms": 20, "checkpoint_every": 5}
        self.write_sweep(user, user, {"behaviour": "crash", "steps": 30, "step_ms": 20}, {})
        wanted = self.wanted()
        clock = self.write("clock", "0")
        process = self.start_scripted("--time-limit", "60s", "--no-progress-limit", "20s",
                                      faults=f"clock file={clock}")
        self.until((self.root / "sweep.db").exists)
        for jump in (86400 * 400, -86400 * 400, 3600, -3600, 0):
            time.sleep(0.15)
            self.write("clock", str(jump))
            status = self.petlab("status", "sweep.yaml")
            self.assertEqual(status.code, 0, status)
            self.assertNotRegex(status.out, r"-\d+ (s|min|h|d)\b")
        done = self.end(process)
        self.assertEqual(done.code, 0, done)
        self.assertNotIn("timed out", done.err)
        self.assertNotIn("stalled", done.err)
        self.assertNotRegex(done.err, r"about -")
        self.assertEqual(self.query(METRICS), wanted)
        # Another run with a clock a year earlier repeats nothing.
        self.write("clock", str(-86400 * 365))
        self.assertEqual(self.run_scripted(faults=f"clock file={clock}").code, 0)
        self.assertEqual(sum(self.outcomes().values()), 5)

    def test_a_database_deleted_or_replaced_during_a_run(self):
        # Two trials wait at their first checkpoint until there is a file.
        gate = self.write("gate", "")
        user = {"steps": 60, "step_ms": 20, "checkpoint_every": 5, "gate": str(gate)}
        self.write_sweep({}, user, user)
        wanted = self.wanted()
        for how in ("deleted", "replaced"):
            with self.subTest(how):
                subprocess.run("rm -rf sweep.db* sweep.runs gate", shell=True, cwd=self.root, check=True)
                process = self.start_scripted()
                self.until(lambda: (self.root / "sweep.db").exists() and self.query(
                    "SELECT count(*) AS n FROM attempts WHERE outcome = 'finished'")[0]["n"] == 1)
                (self.root / "sweep.db").unlink()
                if how == "replaced":
                    self.petlab("db", "rebuild", "--db", "other.db", "--runs", "undisturbed")
                    os.rename(self.root / "other.db", self.root / "sweep.db")
                gate.touch()
                done = self.end(process)
                self.assertEqual(done.code, 1, done)
                self.assertEqual(self.last_line(done), f"petlab: sweep.db: {GONE}")
                # Rebuild from the runs folder, then resume from the checkpoints.
                subprocess.run("rm -f sweep.db*", shell=True, cwd=self.root, check=True)
                done = self.petlab("db", "rebuild", "--db", "sweep.db", "--runs", "sweep.runs")
                self.assertEqual(done.code, 0, done)
                done = self.run_scripted("--json")
                self.assertEqual(done.code, 0, done)
                self.assertIn('"trained":2', done.out)
                self.assertEqual(self.query(METRICS), wanted)

    def test_a_new_database_over_an_old_runs_folder(self):
        self.write_sweep({}, {})
        self.assertEqual(self.run_scripted().code, 0)
        note = ("new.db is new, but ROOT/sweep.runs holds attempts of 2 of 2 trials: these "
                "are rerun; to use their results instead: petlab db import --db new.db --runs "
                "ROOT/sweep.runs")
        for how in ("again", "ingested"):
            with self.subTest(how):
                subprocess.run("rm -f new.db*", shell=True, cwd=self.root, check=True)
                if how == "ingested":
                    done = self.petlab("db", "import", "--db", "new.db", "--runs", "sweep.runs")
                    self.assertEqual(done.code, 0, done)
                done = self.run_scripted("--db", "new.db", "--runs", "sweep.runs")
                self.assertEqual(done.code, 0, done)
                (self.assertIn if how == "again" else self.assertNotIn)(note, done.err)
                count = self.query("SELECT count(*) AS n FROM attempts", "new.db")[0]["n"]
                self.assertEqual(count, 2 if how == "again" else 4)


if __name__ == "__main__":
    tiny_world.main()
