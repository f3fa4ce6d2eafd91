#!/usr/bin/env python3
"""Tests petlab run --launcher slurm with a real Slurm, which the test starts and stops.

usage: slurm.py FOLDER_OF_PROGRAMS [CLASS...]; trains with the scripted worker of tests/orchestrator.
The exit code is 77 (skipped) without Slurm's programs.
"""
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time

import slurm_cluster
import tiny_world
from tiny_world import PROGRAMS, TinyWorld

SWEEP = """sweep: queued
base:
  backbone: ./tiny
  task: films.yaml
  module.kind: adapter
"""
FINISHED = "SELECT count(*) AS n FROM attempts WHERE outcome = 'finished'"
RESULTS = ("SELECT trial_id, attempt, seq, step, split, task, name, value FROM results "
           "ORDER BY trial_id, attempt, seq")
ATTEMPTS = ("SELECT trial_id, number, outcome, reason, owner, launcher, host, device, job, "
            "parent, resume_step FROM attempts a JOIN trials t ON t.key = a.trial "
            "ORDER BY trial_id, number")


class SlurmCase(TinyWorld):
    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_cluster.Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def tearDown(self):
        self.cluster.run("scancel", "-u", str(os.getuid()), check=False)

    def environment(self):
        return super().environment() | self.cluster.environment()

    def sweep(self, seeds, user, more=""):
        self.write("sweep.yaml", SWEEP + f"  user: {user}\n" + more +
                   f"grid:\n  seed: {list(range(1, seeds + 1))}\n")

    def words(self, *more):
        delay = [] if "--retry-delay" in more else ["--retry-delay", "10ms"]
        return ["run", "sweep.yaml", "--launcher", "slurm", "--slurm-poll", "500ms", *delay,
                "--worker", str(PROGRAMS / "scripted-worker"), *more]

    def begin(self, *more, **options):
        return self.start(*self.words(*more), **options)

    def number(self, sql):
        done = self.petlab("query", sql, "--db", "sweep.db", "--format", "csv")
        return int(done.out.split()[-1]) if done.code == 0 else 0

    def until(self, sql, wanted, timeout=60):
        deadline = time.monotonic() + timeout
        while self.number(sql) < wanted:
            self.assertLess(time.monotonic(), deadline,
                            f"{sql} stays below {wanted}: {self.petlab('query', ATTEMPTS, '--db', 'sweep.db')}"
                            f"{self.cluster.run('squeue', '-r', '-t', 'all').stdout}")
            time.sleep(0.1)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def finished_files(self):
        """How often each trial was finished, according to the workers' files."""
        times = {}
        for folder in self.attempt_folders():
            over = any(event["type"] == "finished" for event in self.events(folder))
            times[folder.parent.name] = times.get(folder.parent.name, 0) + over
        return times

    def check_complete(self, done, trials):
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.finished_files(), dict.fromkeys(self.finished_files(), 1))
        self.assertEqual(len(self.finished_files()), trials)
        self.check_nothing_left()

    def check_nothing_left(self):
        self.cluster.wait_for("an empty queue", lambda: not self.cluster.jobs(), timeout=15)
        self.assertEqual(list((self.root / "sweep.runs/.slurm").glob("*")), [])
        self.assertEqual(list((self.root / "sweep.runs/.locks").glob("*")), [])

    def check_rebuild(self):
        """A rebuild from the files gives the same database."""
        results, attempts = self.query(RESULTS), self.query(ATTEMPTS)
        (self.root / "sweep.db").rename(self.root / "first.db")
        rebuilt = self.petlab("db", "rebuild", "--runs", "sweep.runs", "--db", "sweep.db")
        self.assertEqual(rebuilt.code, 0, rebuilt)
        self.assertEqual(self.query(RESULTS), results)
        self.assertEqual(self.query(ATTEMPTS), attempts)

    def other_program(self, name, text):
        """Replaces Slurm's program by a shell script, in which $REAL is the real one."""
        real = self.cluster.run("which", name).stdout.strip()
        file = self.write(f"bin/{name}", f"#!/bin/sh\nREAL={real}\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        path = f"{self.root}/bin:{slurm_cluster.SEARCHED}"
        before = self.environment()
        self.environment = lambda: before | {"PATH": path}

    def jobs(self):
        return [row["job"] for row in self.query("SELECT DISTINCT job FROM attempts")]

    def cancel_one_of_eight(self, *more):
        self.sweep(8, "{steps: 30, step_ms: 50, checkpoint_every: 2}",
                   "when:\n  - {if: {seed: 3}, set: {user.steps: 2000}}\n")
        run = self.begin("--slots", "2", *more)
        self.until("SELECT count(*) FROM attempts a JOIN trials t ON t.key = a.trial WHERE seed = 3 AND "
                   "checkpoint_step > 0", 1)
        trial = self.query("SELECT trial_id FROM trials WHERE seed = 3")[0]["trial_id"]
        self.assertEqual(self.petlab("cancel", trial).code, 0)
        done = self.end(run)
        self.assertEqual(done.code, 0, done)
        outcomes = {row["seed"]: row["outcome"] for row in self.query(
            "SELECT seed, outcome FROM attempts a JOIN trials t ON t.key = a.trial ORDER BY number")}
        self.assertEqual(outcomes, {seed: "cancelled" if seed == 3 else "finished" for seed in range(1, 9)})
        self.check_nothing_left()

    def kill_and_check(self, *slots):
        """PETLAB_TEST_KILLS: the number of faults; PETLAB_TEST_SEED chooses them."""
        kills = int(os.environ.get("PETLAB_TEST_KILLS", "8"))
        seed = int(os.environ.get("PETLAB_TEST_SEED", "1"))
        draw = random.Random(seed)
        trials = 30 + 4 * kills
        self.sweep(trials, "{steps: 4, step_ms: 200, checkpoint_every: 1}",
                   "when:\n  - {if: {seed: 1..9}, set: {user.step_ms: 30}}\n")
        words = [*slots, "--slurm-idle", "5s", "--slurm-partition", "low", "--slurm-arg=--requeue",
                 "--retries", "100"]
        def begin():
            return self.begin(*words, *draw.choice([[], [], ["--detach"]]))

        run = begin()
        done = {}
        for _ in range(kills):
            time.sleep(draw.uniform(0.2, 3))
            if run.poll() is not None:
                ended = self.end(run)
                self.assertEqual(ended.code, 0, ended)
                if "trial(s) are with" not in ended.err:
                    break
                done["detached"] = done.get("detached", 0) + 1
                run = begin()
            running = [job for job, state in self.cluster.jobs("RUNNING")]
            fault = draw.choice(["orchestrator", "orchestrator", "scancel", "requeue", "worker", "script", "node",
                                 "preempt"])
            done[fault] = done.get(fault, 0) + 1
            job = draw.choice(running) if running else None
            if fault == "orchestrator":
                self.kill(run)
                time.sleep(draw.choice([0, 0, 1]))
                run = begin()
            elif fault == "node":
                node = draw.choice(self.cluster.nodes)
                self.cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
                time.sleep(1)
                # It may be back already.
                self.cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
            elif fault == "preempt":
                self.cluster.run("sbatch", "--partition=main", "--nodes=1", "--exclusive", "--no-requeue",
                                 "--output=/dev/null", "--wrap", "sleep 1")
            elif job and fault in ("scancel", "requeue"):
                self.cluster.run(*(["scancel"] if fault == "scancel" else ["scontrol", "requeue"]), job, check=False)
            elif job:
                self.kill_in_job(draw, fault)
        ended = self.end(run, timeout=600)
        if "trial(s) are with" in ended.err:
            ended = self.end(self.begin(*words), timeout=600)
        print(f"seed {seed}: {trials} trials, {done}")
        self.check_complete(ended, trials)
        self.assertEqual(self.cluster.leftovers(str(PROGRAMS / "scripted-worker")), [])
        self.check_rebuild()

    def kill_in_job(self, draw, fault):
        """Kills a random worker, or it and the script of its job."""
        pids = self.cluster.leftovers(str(PROGRAMS / "scripted-worker"))
        if not pids:
            return
        try:
            pid = draw.choice(pids)
            os.kill(pid, signal.SIGKILL) if fault == "worker" else os.killpg(os.getpgid(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass


class WholeSweep(SlurmCase):
    def test_250_trials_outlive_two_kills_a_scancel_and_a_drained_node(self):
        # One long trial is certain to be running when it is cancelled.
        self.sweep(250, "{steps: 4, step_ms: 250, checkpoint_every: 2}",
                   "when:\n  - {if: {seed: 7}, set: {user.steps: 60}}\n"
                   "  - {if: {seed: 8}, set: {user.steps: 60}}\n")
        # Options that must reach Slurm, although the test does not need them.
        options = ["--slurm-partition", "main", "--slurm-arg=--nice=1", "--slurm-time", "30"]
        first = self.begin(*options)
        self.until(FINISHED, 20)
        self.kill(first)
        # Jobs continue without an orchestrator.
        before = sum(self.finished_files().values())
        limit = time.monotonic() + 60
        while sum(self.finished_files().values()) == before:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.1)
        second = self.begin(*options)
        self.until(FINISHED, before + 20)
        job = self.query("SELECT job FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                         "seed = 7 AND outcome = 'open'")[0]["job"]
        self.until("SELECT count(*) FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                   "seed = 7 AND checkpoint_step > 0", 1)
        self.cluster.run("scancel", job)
        self.cluster.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
        self.until("SELECT count(*) FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                   "seed = 7 AND outcome = 'stopped'", 1)
        self.kill(second)
        third = self.begin(*options)
        time.sleep(1)
        self.cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
        self.check_complete(self.end(third), 250)
        # Jobs were adopted and not repeated: only the trial of the cancelled one was begun twice. What a killed run
        # had claimed but not given to a job never started.
        attempts = [row for row in self.query(ATTEMPTS) if row["outcome"] != "never_started"]
        stopped = [row for row in attempts if row["outcome"] != "finished"]
        self.assertEqual([(row["outcome"], row["reason"]) for row in stopped],
                         [("stopped", f"Slurm job {job} was cancelled")])
        again = next(row for row in attempts if row["number"] > 1 and row["trial_id"] == stopped[0]["trial_id"])
        self.assertEqual(again["parent"], stopped[0]["number"])
        self.assertGreater(again["resume_step"], 0)
        self.assertEqual({row["launcher"] for row in attempts}, {"slurm"})
        self.assertEqual([row for row in attempts if row["host"] not in self.cluster.nodes], [])
        # No submission exceeded Slurm's limit of tasks.
        tasks = [int(row["job"].split("_")[1]) for row in attempts]
        self.assertLess(max(tasks), 100)
        self.check_rebuild()


class Workers(SlurmCase):
    """Jobs whose workers run trial after trial."""

    def test_few_jobs_train_many_trials(self):
        self.sweep(60, "{steps: 2, step_ms: 50}")
        done = self.end(self.begin("--slots", "4"))
        self.check_complete(done, 60)
        self.assertEqual(len(self.attempt_folders()), 60)
        self.assertLessEqual(len(self.jobs()), 4)
        workers = self.query("SELECT DISTINCT host, worker_pid FROM attempts")
        self.assertLessEqual(len(workers), 4)

    def test_jobs_train_gangs_that_outlive_their_run(self):
        self.sweep(8, "{steps: 20, step_ms: 100, checkpoint_every: 1}")
        process = self.begin("--slots", "2", "--gang", "4")
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 8)
        self.kill(process)
        done = self.end(self.begin("--slots", "2", "--gang", "4"))
        self.check_complete(done, 8)
        self.assertEqual(len(self.attempt_folders()), 8)
        # Each trial ran together with three others of its job.
        self.assertEqual(self.query("SELECT count(*) AS pairs FROM attempts a JOIN attempts b ON a.trial < b.trial AND "
                                    "a.job = b.job AND a.started_at < b.ended_at AND b.started_at < a.ended_at"),
                         [{"pairs": 12}])

    def test_with_fresh_workers_each_trial_is_a_job(self):
        self.sweep(6, "{steps: 2, step_ms: 50}")
        done = self.end(self.begin("--slots", "2", "--fresh-workers"))
        self.check_complete(done, 6)
        self.assertEqual(len(self.jobs()), 6)

    def test_jobs_of_a_dead_run_finish_their_trials_and_end(self):
        self.sweep(12, "{steps: 12, step_ms: 100, checkpoint_every: 2}")
        run = self.begin("--slots", "2", "--slurm-idle", "2s")
        self.until("SELECT count(*) FROM progress", 2)
        self.kill(run)
        self.cluster.wait_for("an empty queue", lambda: not self.cluster.jobs())
        before = sum(self.finished_files().values())
        self.assertGreaterEqual(before, 2)
        self.assertLess(before, 12)
        self.check_complete(self.end(self.begin("--slots", "2")), 12)
        self.assertEqual(len(self.attempt_folders()), 12)

    def node_states(self, state):
        for node in self.cluster.nodes:
            self.cluster.run("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test",
                             check=state != "RESUME")  # it may be back already

    def inboxes(self):
        return sorted(len(file.read_text().splitlines()) for file in (self.root / "sweep.runs/.slurm").glob("*/*.inbox"))

    def test_a_detached_run_gives_waiting_jobs_all_trials_and_ends(self):
        self.sweep(11, "{steps: 2, step_ms: 50}")
        self.node_states("DRAIN")
        self.addCleanup(self.node_states, "RESUME")
        done = self.end(self.begin("--slots", "2", "--detach"))
        self.assertEqual(done.code, 0, done)
        self.assertIn("11 trial(s) are with 2 job(s); run the same command again to record their results", done.err)
        self.assertEqual(len(self.cluster.jobs("PENDING")), 2)
        self.assertEqual(self.inboxes(), [6, 7])  # with a last line that ends the job
        status = self.petlab("status", "sweep.yaml", "--db", "sweep.db")
        self.assertEqual(status.out.count("  queued  "), 11, status)
        # A run adopts waiting jobs, and detaches again.
        again = self.end(self.begin("--slots", "2", "--detach"))
        self.assertEqual(again.code, 0, again)
        self.assertEqual(len(self.cluster.jobs("PENDING")), 2)
        self.node_states("RESUME")
        self.cluster.wait_for("an empty queue", lambda: not self.cluster.jobs())
        self.assertEqual(sum(self.finished_files().values()), 11)
        self.check_complete(self.end(self.begin()), 11)
        self.assertEqual(len(self.attempt_folders()), 11)
        self.assertEqual(len(self.jobs()), 2)
        # The jobs began when no run watched, but their hosts are known.
        self.assertEqual(self.number("SELECT count(*) FROM attempts WHERE host IS NULL OR host = ''"), 0)
        self.check_rebuild()

    def test_a_detached_run_does_not_wait_for_jobs_of_an_earlier_one(self):
        self.node_states("DRAIN")
        self.addCleanup(self.node_states, "RESUME")
        for seeds, slots, said in ((3, 2, "3 trial(s) are with 2 job(s);"),
                                   (9, 2, "3 trial(s) are with 2 job(s), 6 wait until these end;"),
                                   (9, 4, "9 trial(s) are with 4 job(s);")):
            self.sweep(seeds, "{steps: 2, step_ms: 50}")
            done = self.end(self.begin("--slots", str(slots), "--detach"))
            self.assertEqual(done.code, 0, done)
            self.assertIn(said, done.err)
        self.node_states("RESUME")
        self.check_complete(self.end(self.begin()), 9)
        self.assertEqual(len(self.attempt_folders()), 9)

    def test_a_run_continues_what_a_detached_one_began(self):
        self.sweep(8, "{steps: 20, step_ms: 100}", "when:\n  - {if: {seed: 3}, set: {user.behaviour: crash}}\n")
        done = self.end(self.begin("--slots", "2", "--detach"))
        self.assertEqual(done.code, 0, done)
        # A job whose worker crashed leaves the rest of its trials to the next run.
        done = self.end(self.begin("--slots", "2"))
        self.check_complete(done, 8)
        self.assertEqual(self.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed'"), 1)
        self.check_rebuild()

    def test_a_detached_run_refuses_what_needs_a_run(self):
        self.sweep(2, "{steps: 2}")
        for options, said in ((["--detach"], "--detach needs --slots"),
                              (["--detach", "--slots", "1", "--time-limit", "1m"], "--time-limit and --no-progress-limit")):
            done = self.end(self.begin(*options))
            self.assertEqual(done.code, 2, done)
            self.assertIn(said, done.err)

    def test_a_trial_cut_off_by_the_time_limit_of_its_job_continues_in_another(self):
        # A step and its checkpoint take 2 s. Slurm ends a job with a limit of 60 s after 60 to 90 s.
        self.sweep(2, "{steps: 40, step_ms: 1000, checkpoint_every: 1}",
                   "when:\n  - {if: {seed: 1}, set: {user.steps: 15}}\n")
        done = self.end(self.begin("--slots", "1", "--slurm-time", "1"), timeout=300)
        self.check_complete(done, 2)
        rows = self.query(ATTEMPTS.replace("ORDER BY", "WHERE seed = 2 ORDER BY"))
        self.assertEqual([row["outcome"] for row in rows], ["stopped", "finished"], rows)
        self.assertIn("time limit", rows[0]["reason"], rows)
        self.assertGreater(rows[1]["resume_step"], 10, rows)
        self.assertNotEqual(rows[0]["job"], rows[1]["job"], rows)

    def test_a_job_that_gets_no_trial_ends_and_another_trains_the_retry(self):
        self.sweep(2, "{steps: 4, step_ms: 100}",
                   "when:\n  - {if: {seed: 1}, set: {user.behaviour: crash}}\n")
        done = self.end(self.begin("--slots", "2", "--slurm-idle", "5s", "--retry-delay", "15s"))
        self.check_complete(done, 2)
        attempts = self.query(ATTEMPTS.replace("ORDER BY", "WHERE seed = 1 ORDER BY"))
        self.assertEqual([row["outcome"] for row in attempts], ["crashed", "finished"])
        self.assertNotEqual(attempts[0]["job"], attempts[1]["job"])

    def test_jobs_of_trials_no_longer_in_the_sweep_are_cancelled_once(self):
        self.sweep(4, "{steps: 40, step_ms: 150, checkpoint_every: 2, stop_ms: 3000}")
        run = self.begin("--slots", "4")
        self.until("SELECT count(*) FROM attempts WHERE started_at > 0", 4)
        self.kill(run)
        self.sweep(2, "{steps: 40, step_ms: 150, checkpoint_every: 2, stop_ms: 3000}")
        done = self.petlab(*self.words("--slots", "4"))
        self.assertEqual(done.code, 0, done)
        self.assertEqual(re.findall(r"cancelled (\d+) job\(s\) of trials that are no longer in the sweep", done.err),
                         ["2"], done.err)
        self.check_nothing_left()

    def test_a_cancelled_trial_leaves_its_job(self):
        self.cancel_one_of_eight()
        attempts = self.query(ATTEMPTS)
        self.assertEqual({row["number"] for row in attempts}, {1})
        self.assertLessEqual(len(self.jobs()), 2)

    def test_cancelling_a_trial_of_a_worker_that_stops_as_a_whole_returns_the_others(self):
        before = self.environment()
        self.environment = lambda: before | {"SCRIPTED_STOPS_WHOLE": "1"}
        self.cancel_one_of_eight()
        # The job began no further trial.
        self.assertEqual(self.number("SELECT count(*) FROM attempts a JOIN attempts b ON a.job = b.job WHERE "
                                     "b.outcome = 'cancelled' AND a.started_at > b.ended_at"), 0)

    def test_kills_cancellations_and_lost_nodes_lose_and_repeat_nothing(self):
        self.kill_and_check("--slots", "6")


class WholeNodes(SlurmCase):
    """Jobs with several workers."""

    def run_on_gpus(self, *more):
        """The node and the visible GPUs of each worker."""
        worker = self.write("on-gpu", '#!/bin/sh\n[ "$1" = - ] && echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"'
                                      f' >>{self.root}/gpus\nFAKE_GPUS={self.root} exec {PROGRAMS}/scripted-worker "$@"\n')
        worker.chmod(0o755)
        words = self.words(*more, "--slurm-gpus", "1")
        words[words.index("--worker") + 1] = str(worker)
        self.check_complete(self.end(self.start(*words)), 12)
        return [line.split() for line in (self.root / "gpus").read_text().splitlines()]

    def test_trials_with_several_gpus_get_them(self):
        self.sweep(12, "{steps: 10, step_ms: 100}", "when:\n  - {if: {seed: 1..3}, set: {resources.gpus: 2}}\n")
        gpus = self.run_on_gpus("--slots", "4")
        # Workers of both kinds.
        self.assertEqual({len(visible.split(",")) for _, visible in gpus}, {1, 2}, gpus)

    def test_workers_of_a_whole_node_share_its_gpus(self):
        self.sweep(12, "{steps: 10, step_ms: 100}")
        gpus = self.run_on_gpus("--slots", "6", "--slurm-exclusive", "4")
        self.assertEqual(len(self.jobs()), 2)
        self.assertEqual(len(gpus), 6)
        self.assertEqual(len({tuple(line) for line in gpus}), 6, gpus)
        self.assertEqual({gpu for _, gpu in gpus}, {"0", "1", "2", "3"})

    def test_one_worker_of_a_job_crashes_and_the_others_continue(self):
        self.sweep(12, "{steps: 10, step_ms: 200, checkpoint_every: 2}",
                   "when:\n  - {if: {seed: 2}, set: {user.behaviour: crash}}\n")
        done = self.end(self.begin("--slots", "4", "--slurm-exclusive", "4"))
        self.check_complete(done, 12)
        self.assertEqual(sorted(row["outcome"] for row in self.query(ATTEMPTS)), ["crashed"] + ["finished"] * 12)
        # They also train the trial again, so no other node is needed.
        self.assertEqual(len(self.jobs()), 1)

    def test_workers_of_a_job_that_all_fail_to_start_count_as_one_failure(self):
        # Every worker of the first job exits, as on a bad node.
        self.sweep(6, "{steps: 2, step_ms: 50}")
        first = self.root / "first"
        worker = self.write("worker", f"""#!/bin/sh
if [ -n "$SLURM_JOB_ID" ]; then
  echo "$SLURM_JOB_ID" > {first}.$$
  ln {first}.$$ {first} 2>/dev/null
  [ "$SLURM_JOB_ID" != "$(cat {first})" ] || {{ echo >> {first}.failed; exit 1; }}
fi
exec {PROGRAMS}/scripted-worker "$@"
""")
        worker.chmod(0o755)
        words = self.words("--slots", "4", "--slurm-exclusive", "4")
        words[words.index(str(PROGRAMS / "scripted-worker"))] = str(worker)
        done = self.end(self.start(*words))
        self.check_complete(done, 6)
        self.assertEqual((self.root / "first.failed").read_text().count("\n"), 4)

    def test_one_worker_of_a_job_is_stopped_and_the_others_continue(self):
        before = self.environment()
        self.environment = lambda: before | {"SCRIPTED_STOPS_WHOLE": "1"}
        self.cancel_one_of_eight("--slurm-exclusive", "2")
        self.assertEqual(self.number("SELECT count(*) FROM attempts WHERE outcome = 'stopped'"), 0)
        self.assertEqual(len(self.jobs()), 1)

    def test_jobs_of_whole_nodes_are_adopted(self):
        self.sweep(12, "{steps: 20, step_ms: 100, checkpoint_every: 2}")
        words = ["--slots", "4", "--slurm-exclusive", "2"]
        run = self.begin(*words)
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 4)
        self.kill(run)
        done = self.end(self.begin(*words))
        self.assertIn("adopted 2 job(s)", done.err)
        self.check_complete(done, 12)
        self.assertEqual(len(self.attempt_folders()), 12)
        self.check_rebuild()

    def test_interrupted_workers_of_a_whole_node_leave_checkpoints(self):
        self.sweep(8, "{steps: 1000, step_ms: 50, checkpoint_every: 2}")
        run = self.begin("--slots", "4", "--slurm-exclusive", "2")
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 4)
        for _ in range(2):
            run.send_signal(signal.SIGINT)
            time.sleep(1)
        done = self.end(run)
        self.assertEqual(done.code, 3, done)
        self.assertEqual([row["outcome"] for row in self.query(ATTEMPTS)], ["stopped"] * 4)
        self.check_nothing_left()

    def test_no_worker_of_a_whole_node_loses_or_repeats_a_trial_after_kills(self):
        self.kill_and_check("--slots", "6", "--slurm-exclusive", "2")


class Faults(SlurmCase):
    def test_a_run_waits_for_a_silent_slurmctld(self):
        # More trials than can run at the same time, so that some wait in Slurm's queue.
        self.sweep(40, "{steps: 4, step_ms: 250}")
        output = self.root / "said.txt"
        with open(output, "wb") as out:
            run = self.begin(stderr=out)
        self.until("SELECT count(*) FROM attempts WHERE started_at IS NOT NULL", 4)
        self.cluster.stop_daemon("slurmctld")
        # Slurm decides how long its commands wait for slurmctld.
        deadline = time.monotonic() + 60
        while "Slurm does not answer (" not in output.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.cluster.start_controller()
        self.check_complete(self.end(run), 40)
        self.assertIn("Slurm answers again", output.read_text())
        self.assertEqual(len(self.attempt_folders()), 40)

    def test_two_interrupts_leave_checkpoints_and_an_empty_queue(self):
        self.sweep(40, "{steps: 40, step_ms: 250, checkpoint_every: 2}")
        run = self.begin()
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 10)
        run.send_signal(signal.SIGTERM)
        done = self.end(run)
        self.assertEqual(done.code, 3, done)
        self.check_nothing_left()
        outcomes = {row["outcome"]: row["n"] for row in self.query(
            "SELECT outcome, count(*) AS n FROM attempts GROUP BY 1")}
        # No trial had waited in the queue with a job; a few may have been given at the last moment.
        self.assertLessEqual(set(outcomes), {"stopped", "never_started"})
        self.assertLess(sum(outcomes.values()), 40)
        self.assertGreaterEqual(outcomes["stopped"], 10)

    def test_a_refused_submission_ends_the_run_with_the_message_of_sbatch(self):
        self.sweep(3, "{steps: 1}")
        done = self.end(self.begin("--slurm-partition", "nowhere"))
        self.assertEqual(done.code, 1)
        self.assertIn("sbatch: sbatch: error: invalid partition specified: nowhere", done.err)
        self.check_nothing_left()

    def test_each_job_sets_its_environment_up_before_its_worker(self):
        self.sweep(3, "{steps: 1}")
        worker = self.write("worker", f'#!/bin/sh\n[ "$1" = --describe ] || [ "$LOADED" = "cuda 12" ] || exit 9\n'
                                      f'exec {PROGRAMS}/scripted-worker "$@"\n')
        worker.chmod(0o755)
        define = 'module() { export LOADED="$2 $3"; }'
        words = self.words("--slots", "1", "--slurm-setup", define, "--slurm-setup")
        words[words.index(str(PROGRAMS / "scripted-worker"))] = str(worker)
        done = self.end(self.start(*words, "module load rocm"))
        self.assertEqual(done.code, 1, done)
        self.assertIn("exit code 9", done.err)
        done = self.end(self.start(*words, "no-such-module"))
        self.assertEqual(done.code, 1, done)
        self.assertIn("--slurm-setup ended with exit code 127: no-such-module", done.err)
        self.check_complete(self.end(self.start(*words, "module load cuda 12")), 3)

    def test_a_worker_in_a_container_is_stopped_and_resumes(self):
        """With a stand-in for Apptainer that enters namespaces of its own."""
        self.sweep(1, "{steps: 40, step_ms: 200, checkpoint_every: 1}")
        self.write("image.sif", "")
        container = self.write("bin/apptainer", "#!/bin/sh\n"
                               '[ "$1 $2" = "exec --nv" ] && [ -f "$3" ] || exit 9\n'
                               "case $3 in /*) ;; *) exit 8;; esac\n"
                               'shift 3\nexec unshare --map-root-user --mount --ipc --uts "$@"\n')
        container.chmod(0o755)
        words = self.words()
        words[words.index(str(PROGRAMS / "scripted-worker"))] = f"{container} exec --nv image.sif {PROGRAMS}/scripted-worker"
        run = self.start(*words)
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 2", 1)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(run).code, 3)
        self.check_complete(self.end(self.start(*words)), 1)
        attempts = self.query(ATTEMPTS)
        self.assertEqual([row["outcome"] for row in attempts], ["stopped", "finished"])
        self.assertGreater(attempts[1]["resume_step"], 2)

    def test_a_requeued_job_becomes_a_new_attempt(self):
        self.sweep(1, "{steps: 24, step_ms: 250, checkpoint_every: 2}")
        run = self.begin("--slurm-arg=--requeue")
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 1)
        job = self.query("SELECT job FROM attempts")[0]["job"]
        self.cluster.run("scontrol", "requeue", job)
        done = self.end(run)
        self.check_complete(done, 1)
        attempts = self.query(ATTEMPTS)
        self.assertEqual([(row["outcome"], row["reason"]) for row in attempts],
                         [("stopped", f"Slurm requeued job {job}"), ("finished", None)])
        self.assertGreater(attempts[1]["resume_step"], 0)

    def test_a_time_limit_counts_from_a_jobs_start_for_adopted_jobs_too(self):
        self.sweep(1, "{steps: 72, step_ms: 250, checkpoint_every: 2}")
        run = self.begin()
        self.until("SELECT count(*) FROM progress WHERE step > 40", 1)
        self.kill(run)
        # The rest takes less than the limit, but the job has already run longer than that.
        done = self.end(self.begin("--time-limit", "10s"))
        self.assertEqual(done.code, 1, done)
        self.assertIn("ran longer than 10 s (--time-limit)", done.err)
        self.assertEqual([row["outcome"] for row in self.query(ATTEMPTS)], ["timed_out"])
        self.check_nothing_left()

    def test_status_shows_the_hosts_of_running_trials(self):
        self.sweep(30, "{steps: 40, step_ms: 250, checkpoint_every: 2}")
        output = self.root / "said.json"
        with open(output, "wb") as out:
            run = self.begin("--json", stdout=out)
        self.until("SELECT count(*) FROM progress", 3)
        # Only trials of jobs that run are shown. A claim has its job's host a moment later.
        for trial in self.status():
            self.assertTrue(trial["host"] in self.cluster.nodes or trial["doing"] == "queued", trial)

        def shown():
            events = [json.loads(line) for line in output.read_text().split("\n")[:-1]]
            return [trial for event in events if event["event"] == "status"
                    for trial in event["trials"]]

        self.cluster.wait_for("a trial that the run shows", lambda: "training" in {
            trial["doing"] for trial in shown()})
        run.send_signal(signal.SIGTERM)
        done = self.end(run)
        self.assertEqual(done.code, 3, done)
        trained = [trial["host"] for trial in shown() if trial["doing"] == "training"]
        self.assertEqual([host for host in trained if host not in self.cluster.nodes], [])

    def status(self):
        done = self.petlab("status", "sweep.yaml", "--json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)["running"]

    def test_jobs_resume_after_preemption_or_the_loss_of_a_node(self):
        self.sweep(1, "{steps: 40, step_ms: 250, checkpoint_every: 2}")
        run = self.begin("--slurm-partition", "low")
        reasons = []

        def wait_for_checkpoint(number):
            self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0 AND host IS NOT "
                       f"NULL AND number = {number}", 1)
            return self.query(f"SELECT job, host FROM attempts WHERE number = {number}")[0]

        preempted = wait_for_checkpoint(1)
        self.cluster.run("sbatch", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap",
                         "sleep 1")
        reasons.append(f"Slurm job {preempted['job']} was preempted")
        lost = wait_for_checkpoint(2)
        self.cluster.run("scontrol", "update", f"NodeName={lost['host']}", "State=DOWN",
                         "Reason=test")
        reasons.append(f"Slurm job {lost['job']} lost its node")
        wait_for_checkpoint(3)
        self.check_complete(self.end(run), 1)
        attempts = self.query(ATTEMPTS)
        self.assertEqual([row["reason"] for row in attempts], [*reasons, None])
        self.assertEqual([row["outcome"] for row in attempts], ["stopped", "stopped", "finished"])
        self.assertLess(attempts[1]["resume_step"], attempts[2]["resume_step"])

    def test_jobs_forgotten_by_slurm_are_judged_by_their_files(self):
        # Like after MinJobAge on a cluster without accounting.
        self.other_program("squeue", """
out=$("$REAL" "$@") || exit $?
printf '%s\\n' "$out" | grep -v -e '|COMPLETED|' -e '|FAILED|' -e '|CANCELLED|' || true""")
        self.other_program("scontrol", """
case "$*" in
  *"show job"*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;;
esac
exec "$REAL" "$@"
""")
        self.sweep(3, "{steps: 2, step_ms: 200}",
                   "when:\n  - {if: {seed: 2}, set: {user.behaviour: crash}}\n"
                   "  - {if: {seed: 3}, set: {user.steps: 40, user.checkpoint_every: 2}}\n")
        run = self.begin()
        self.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0", 1)
        killed = self.query("SELECT job, worker_pid FROM attempts WHERE checkpoint_step > 0")[0]
        os.killpg(os.getpgid(killed["worker_pid"]), signal.SIGKILL)  # with the job's script
        self.check_complete(self.end(run), 3)
        ends = {row["outcome"]: row["reason"] for row in self.query(ATTEMPTS)}
        self.assertEqual(set(ends), {"finished", "crashed", "stopped"})
        self.assertIn("signal 6", ends["crashed"])
        self.assertEqual(ends["stopped"],
                         f"Slurm no longer lists job {killed['job']}, which recorded no end")

    def test_an_error_leaves_the_jobs_to_the_next_run(self):
        self.sweep(3, "{steps: 12, step_ms: 250}")
        run = self.begin()
        self.until("SELECT count(*) FROM attempts WHERE started_at IS NOT NULL", 3)
        (self.root / "sweep.db").rename(self.root / "away.db")
        done = self.end(run)
        (self.root / "away.db").rename(self.root / "sweep.db")
        self.assertEqual(done.code, 1, done)
        self.assertIn("submitted jobs keep running; run the same command to adopt them", done.err)
        self.check_complete(self.end(self.begin()), 3)
        self.assertEqual(len(self.attempt_folders()), 3)

    def test_an_unreadable_job_log_leaves_the_jobs_to_the_next_run(self):
        self.sweep(3, "{steps: 4, step_ms: 250}")
        before = self.environment()
        self.environment = lambda: before | {
            "LD_PRELOAD": str(PROGRAMS / "petlab-faults.so"), "ASAN_OPTIONS": "verify_asan_link_order=0",
            "PETLAB_TEST_FAULTS": "fail program=petlab calls=open path=*/0.jsonl error=EIO"}
        done = self.end(self.begin())
        self.environment = lambda: before
        self.assertEqual(done.code, 1, done)
        self.assertIn("submitted jobs keep running; run the same command to adopt them", done.err)
        self.assertIn("/0.jsonl: cannot be read: Input/output error", done.err)
        self.check_complete(self.end(self.begin()), 3)
        self.assertEqual(len(self.attempt_folders()), 3)

    def test_a_lost_answer_of_sbatch_duplicates_nothing(self):
        self.other_program("sbatch", f"""
echo "$*" >>{self.root}/asked
"$REAL" "$@" >{self.root}/answer || exit $?
[ -e {self.root}/lost ] && exec cat {self.root}/answer
touch {self.root}/lost
echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
exit 1""")
        self.sweep(6, "{steps: 2, step_ms: 100}")
        done = self.end(self.begin())
        self.check_complete(done, 6)
        self.assertEqual(len(self.attempt_folders()), 6)
        # The jobs of the lost answer were found by name, not submitted again. A job may take a second trial.
        arrays = re.findall(r"--array=0-(\d+)", (self.root / "asked").read_text())
        self.assertLessEqual(sum(int(last) + 1 for last in arrays), 6, arrays)

    def test_an_orchestrator_that_dies_around_sbatch_leaves_no_duplicates(self):
        for point in ("submission_written", "submitted", "given", "launch_logged"):
            with self.subTest(point):
                for name in ("sweep.db", "sweep.db-wal", "sweep.db-shm"):
                    (self.root / name).unlink(missing_ok=True)
                subprocess.run(["rm", "-rf", str(self.root / "sweep.runs")], check=True)
                self.sweep(5, "{steps: 2, step_ms: 100}")
                before = self.environment()
                self.environment = lambda: before | {"PETLAB_FAULT_POINT": f"{point}:1"}
                self.assertEqual(self.end(self.begin("--slurm-idle", "1s")).code, -signal.SIGKILL)
                self.environment = lambda: before
                if point in ("given", "launch_logged"):
                    # The job ends before the next run, so only files know which job trained the trial.
                    self.cluster.wait_for("an empty queue", lambda: not self.cluster.jobs())
                self.check_complete(self.end(self.begin()), 5)
                begun = [row for row in self.query(ATTEMPTS) if row["outcome"] != "never_started"]
                self.assertEqual([row for row in begun if not row["host"] or not row["job"]], [])
                self.assertEqual(len(begun), 5)
                self.check_rebuild()

    def test_a_limit_on_jobs_reduces_their_number(self):
        self.other_program("sbatch", """
case "$*" in
  *--array=0-[0-2]\\ *) exec "$REAL" "$@";;
esac
echo 'sbatch: error: AssocMaxSubmitJobLimit' >&2
echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit' \\
  "limit, user's size and/or time limits)" >&2
exit 1""")
        self.sweep(10, "{steps: 1}")
        done = self.end(self.begin())
        self.check_complete(done, 10)
        self.assertIn("sbatch rejects more jobs (sbatch: error: AssocMaxSubmitJobLimit",
                      done.err)

    def test_a_local_run_leaves_the_jobs_of_a_dead_run_alone(self):
        self.sweep(2, "{steps: 12, step_ms: 250, checkpoint_every: 2}")
        run = self.begin()
        self.until("SELECT count(*) FROM attempts WHERE started_at IS NOT NULL", 2)
        self.kill(run)
        here = self.run_sweep("--worker", str(PROGRAMS / "scripted-worker"))
        self.assertEqual(here.code, 1, here)
        self.assertIn("2 trial(s) run as Slurm jobs; `petlab run --launcher slurm` takes them "
                      "over", here.err)
        # A trial that was removed from the sweep is stopped.
        self.sweep(1, "{steps: 12, step_ms: 250, checkpoint_every: 2}")
        self.assertEqual(self.end(self.begin()).code, 0)
        self.check_nothing_left()
        outcomes = [row["outcome"] for row in self.query("SELECT outcome FROM attempts ORDER BY 1")]
        self.assertEqual(outcomes, ["finished", "stopped"])


if __name__ == "__main__":
    if slurm_cluster.missing_programs():
        print("skipped: not installed:", ", ".join(slurm_cluster.missing_programs()),
              "(scripts/setup.sh --dev)")
        sys.exit(77)
    tiny_world.main()
