#!/usr/bin/env python3
"""Tests sweeps trained by petlab-trainer under `petlab run`: artifacts, reruns, kills, exit codes.

usage: training.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import signal
import struct
import time

import tiny_world
from tiny_world import CONFIG, SWEEP, TRAINER, VARIANTS, WORDS, TinyWorld

# Set PETLAB_KILLS=20 for a thorough test.
KILLS = int(os.environ.get("PETLAB_KILLS", "3"))

METRICS = ("SELECT trial_id, step, split, task, name, value FROM results "
           "ORDER BY 1, 2, 3, 4, 5")
# Includes a regression task, since any change shows in the digits of its metrics.
TRIALS = """  module: {share: true, mask: learned, sparsity_ratio: 0.5}
grid:
  task: [films.yaml, grades.yaml]
  seed: [1, 2]
"""


class Training(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write_grades()
        self.write("sweep.yaml", SWEEP.replace("  task: films.yaml\n", "") + TRIALS)

    def train(self, where):
        done = self.run_sweep("--db", f"{where}.db", "--runs", where)
        self.assertEqual(done.code, 0, done)
        return done

    def losses(self, runs):
        """Losses by (trial, step) of all attempts. Steps repeated after a kill must have the same
        loss."""
        found = {}
        for folder in self.attempt_folders(runs):
            for event in self.events(folder):
                if event["type"] == "progress":
                    key = folder.parent.name, event["step"]
                    self.assertEqual(found.setdefault(key, event["loss"]), event["loss"], key)
        return found

    def test_an_artifact_has_the_bits_of_the_formula_and_gives_its_trials_metrics(self):
        self.train("runs")
        d, bottleneck, layers = 16, 4, 2
        # The bit-level storage of a shared adapter with a mask for each layer: 32 bits for each
        # weight and bias of the prototype, one bit for each element of a mask (biases have none).
        weights = 2 * d * bottleneck
        values, masks = 32 * (weights + d + bottleneck), weights * layers
        folders = self.attempt_folders("runs")
        self.assertEqual(len(folders), 4)
        for folder in folders:
            file = folder / "artifact.petl"
            storage = self.petlab("storage", file, "--json")
            self.assertEqual(storage.code, 0, storage)
            sizes = json.loads(storage.out)
            self.assertEqual(sizes["bls_bits"], values + masks)
            self.assertEqual(sizes["stored_bits"], values + masks)
            for parts in ("bls_parts", "stored_parts"):
                self.assertEqual(sizes[parts], {"values": values, "masks": masks})
            self.assertEqual(sizes["file_bytes"], file.stat().st_size)
            # Reads the file as described in docs/reference/artifact.md.
            data = file.read_bytes()
            count, header = struct.unpack_from("<IQ", data, 12)
            sections = {}
            end = 32 + 24 * count + header
            for row in range(count):
                kind, _, offset, bits = struct.unpack_from("<IIQQ", data, 32 + 24 * row)
                sections[kind] = bits
                self.assertEqual(offset, (end + 7) // 8 * 8)
                end = offset + (bits + 7) // 8
            self.assertEqual(end, len(data))
            self.assertEqual((sections[1], sections[2]), (values, masks))
            self.assertEqual(sections[3], sizes["not_counted"]["head"])
            self.assertEqual(set(sections), {1, 2, 3})
            # A new process gives the database's values to the last digit.
            task = json.loads((folder / "trial.json").read_text())["tasks"][0]["name"]
            for split in ("test", "validation"):
                predicted = self.petlab("predict", "--artifact", file, "--task", f"{task}.yaml",
                                        "--split", split, "--threads", "1", program=TRAINER)
                self.assertEqual(predicted.code, 0, predicted)
                result = json.loads(predicted.out)
                recorded = {row["name"]: row["value"] for row in self.query(
                    f"SELECT name, value FROM results WHERE trial_id = '{folder.parent.name}' AND "
                    f"split = '{split}' AND step = {result['step']} AND name != 'loss'", "runs.db")}
                self.assertEqual(len(recorded), 2)
                self.assertEqual(result["metrics"], recorded)

    def test_a_trial_has_as_many_examples_as_the_files_have_rows(self):
        rows = {part: len((self.root / f"films-{part}.tsv").read_text().splitlines()) - 1
                for part in ("train", "dev", "test")}
        self.write("sweep.yaml", SWEEP + "grid:\n  data.max_train_examples: [0, 24]\n")
        self.train("runs")
        found = self.query("SELECT data_max_train_examples AS most, split, examples FROM attempt_examples e JOIN "
                           "trials t ON t.trial_id = e.trial_id WHERE is_result AND task = 'films' ORDER BY 1, 2",
                           "runs.db")
        self.assertEqual([(row["most"], row["split"], row["examples"]) for row in found],
                         [(most, split, number) for most in (0, 24) for split, number in (
                             ("test", rows["test"]), ("train", most or rows["train"]),
                             ("validation", rows["dev"]))])
        self.write("sizes.yaml", "report: sizes\nabout: sizes\nsweep: tiny\ntable:\n"
                   "  cells: {value: examples}\n  rows: [{each: data_max_train_examples}]\n"
                   "  columns: [{key: train, where: {split: train}}, {key: test, where: {split: test}}]\n")
        shown = self.petlab("report", "./sizes.yaml", "--db", "runs.db", "--format", "csv")
        self.assertEqual(shown.code, 0, shown)
        self.assertEqual([line.split(",")[-2:] for line in shown.out.split()[1:]],
                         [[str(rows["train"]), str(rows["test"])], ["24", str(rows["test"])]])

    def test_the_same_trials_again_have_the_same_losses_and_metrics(self):
        self.train("one")
        self.train("two")
        losses = self.losses("one")
        # 4 trials of 3 epochs of 4 steps, with a loss for each step.
        self.assertEqual(len(losses), 4 * 12)
        self.assertEqual(losses, self.losses("two"))
        metrics = self.query(METRICS, "one.db")
        self.assertEqual(len(metrics), 4 * (3 * 3 + 2))
        self.assertEqual(metrics, self.query(METRICS, "two.db"))

    def test_a_kept_workers_peak_of_memory_is_each_trials_own(self):
        self.write("wide.json", json.dumps(CONFIG | {"hidden_size": 1024, "intermediate_size": 4096,
                                                     "num_attention_heads": 16}))
        self.write("words.txt", " ".join(WORDS) + "\n")
        made = self.petlab("init", "--config", "wide.json", "--texts", "words.txt", "--vocabulary", 64,
                           "--out", "wide", program=TRAINER)
        self.assertEqual(made.code, 0, made)
        self.write("sweep.yaml", SWEEP.replace("  backbone: ./tiny\n", "").replace(
            "  module.kind: adapter\n  module.bottleneck: 4\n", "") + """variants:
  first: {backbone: ./tiny, module.kind: head_only, priority: 3}
  large: {backbone: ./wide, module.kind: full_finetuning, priority: 2}
  small: {backbone: ./tiny, module.kind: head_only, training.batch_size: 11, priority: 1}
""")
        done = self.run_sweep(slots=1)
        self.assertEqual(done.code, 0, done)
        started, peaks = {}, {}
        for folder in self.attempt_folders():
            events = self.events(folder)
            started[events[0]["time"]] = events[0]["pid"]
            peaks[events[0]["time"]] = events[-1]["peak_memory_mib"]
        self.assertEqual(len(set(started.values())), 1)
        first, large, small = (peaks[at] for at in sorted(peaks))
        # The large backbone's weights, gradients and moments have 400 MiB. Of LibTorch's code and buffers,
        # what only the large trial needed stays in memory: 60 MiB with LibTorch 2.13, 70 MiB with 2.15.
        self.assertGreater(large, first + 300)
        self.assertLess(small, first + 150)

    def test_killed_workers_and_orchestrators_do_not_change_results(self):
        text = (self.root / "sweep.yaml").read_text().replace(
            "epochs: 3", "epochs: 40, checkpoint_every: 7")
        self.write("sweep.yaml", text)
        self.train("whole")
        whole = self.losses("whole")
        self.assertEqual(len(whole), 4 * 160)
        words = ["run", "sweep.yaml", "--slots", "2", "--retry-delay", "10ms", "--retries", "99",
                 "--db", "killed.db", "--runs", "killed"]
        kills = 0
        for victims in ("worker", "orchestrator", "both"):
            process = self.start(*words)
            found = self.await_steps(process)
            if found is None:
                break
            if victims != "orchestrator":
                os.kill(found, signal.SIGKILL)
            if victims != "worker":
                process.kill()
                self.assertEqual(self.end(process).code, -signal.SIGKILL)
            else:
                # The run continues by itself. Waits for new steps, so that the next kill interrupts work.
                self.await_steps(process, new=True)
                process.send_signal(signal.SIGTERM)
                self.assertIn(self.end(process).code, (0, 3))
            kills += 1
        done = self.petlab(*words)
        self.assertEqual(done.code, 0, done)
        self.assertGreaterEqual(kills, 2)
        outcomes = {row["outcome"]: row["n"] for row in self.query(
            "SELECT outcome, count(*) AS n FROM attempts GROUP BY 1", "killed.db")}
        self.assertEqual(outcomes["finished"], 4)
        self.assertGreaterEqual(sum(outcomes.values()), 6)
        self.assertGreaterEqual(len(self.query(
            "SELECT 1 AS one FROM attempts WHERE resume_step > 0", "killed.db")), 1)
        self.assertEqual(self.query(METRICS, "killed.db"), self.query(METRICS, "whole.db"))
        self.assertEqual(self.losses("killed"), whole)

    def test_a_crash_right_after_a_resume_falls_back_to_the_checkpoint_before(self):
        # Checkpoints are at steps 2, 4, 6, …. Attempt 1 dies before its fourth, attempt 2 before its first.
        self.write("sweep.yaml", (self.root / "sweep.yaml").read_text().replace(
            "epochs: 3", "epochs: 3, checkpoint_every: 2"))
        self.train("whole")
        rule = "kill program=petlab-trainer calls=rename path="
        self.variables = {"LD_PRELOAD": str(TRAINER.parent / "petlab-faults.so"),
                          "PETLAB_TEST_FAULTS": f"{rule}*/1/checkpoint/* at=4; {rule}*/2/checkpoint/* at=1"}
        self.train("killed")
        self.assertEqual(
            self.query("SELECT number, outcome, resume_step AS step, count(*) AS n FROM attempts GROUP BY 1, 2, 3",
                       "killed.db"),
            [{"number": 1, "outcome": "crashed", "step": None, "n": 4},
             {"number": 2, "outcome": "crashed", "step": 6, "n": 4},
             {"number": 3, "outcome": "finished", "step": 4, "n": 4}])
        for folder in self.attempt_folders("killed"):
            found = {file.name for file in (folder / "checkpoint").glob("*.ckpt")}
            self.assertEqual(found, {"step-4.ckpt", "step-6.ckpt"} if folder.name == "1" else set())
        self.assertEqual(self.query(METRICS, "killed.db"), self.query(METRICS, "whole.db"))
        self.assertEqual(self.losses("killed"), self.losses("whole"))

    def test_a_worker_whose_orchestrator_is_killed_writes_a_checkpoint_each_time(self):
        # Epochs are so long that only the signal causes a checkpoint. Steps are so long that a second
        # signal would come while the first one waits for the end of the step.
        rows = "".join(f"{'fine' if i % 3 else 'poor'}\tthe film is {WORDS[i % 9]}\n"
                       for i in range(150000))
        self.write("films-train.tsv", "label\tsentence\n" + rows)
        self.write("sweep.yaml", SWEEP.replace("epochs: 3, batch_size: 12",
                                               "epochs: 1, batch_size: 1500"))
        reached, checkpoints = 0, 0
        for number in range(1, KILLS + 1):
            process = self.start("run", "sweep.yaml", "--slots", "1", "--retry-delay", "10ms",
                                 "--retries", "99")
            folder, pid, step = self.await_step_after(reached, number, process)
            process.kill()
            self.assertEqual(self.end(process).code, -signal.SIGKILL)
            self.await_death(pid)
            events = self.events(folder)
            written = [event for event in events if event["type"] == "checkpoint"]
            self.assertEqual(len(written), 1, (number, events[-3:]))
            self.assertEqual(written, events[-1:])
            self.assertTrue((folder / written[0]["path"]).is_file())
            self.assertGreaterEqual(written[0]["step"], step)
            trial = json.loads((folder / "trial.json").read_text())
            self.assertEqual(trial.get("resume", {}).get("step", 0), reached)
            reached = written[0]["step"]
            checkpoints += 1
        self.assertEqual(checkpoints, KILLS)
        print(f"{checkpoints} checkpoints of {KILLS} kills", flush=True)

    def test_a_worker_without_a_log_reader_writes_its_checkpoint(self):
        self.train("runs")
        trial = json.loads((self.attempt_folders("runs")[0] / "trial.json").read_text())
        # Logs a line every half second for a very long time.
        trial["config"]["training"]["epochs"] = 100000
        folder = self.root / "alone" / trial["trial"] / "1"
        folder.mkdir(parents=True)
        (folder / "trial.json").write_text(json.dumps(trial))
        process = self.start(folder, program=TRAINER)
        process.stdout.close()
        limit = time.monotonic() + 60
        while not any(event["type"] == "checkpoint" for event in self.events(folder)):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 3)
        last = self.events(folder)[-1]
        self.assertEqual(last["type"], "checkpoint")
        self.assertTrue((folder / last["path"]).is_file())

    def test_sigterm_while_the_checkpoint_is_written_changes_nothing(self):
        self.write("sweep.yaml", SWEEP)
        self.train("runs")
        trial = json.loads((self.attempt_folders("runs")[0] / "trial.json").read_text())
        trial["config"]["training"]["epochs"] = 100000
        # The trainer stops itself (SIGSTOP) before it renames its first checkpoint, and its second one,
        # which follows the first signal.
        rule = "stop program=petlab-trainer calls=rename path=*/checkpoint/* at="
        self.variables = {"LD_PRELOAD": str(TRAINER.parent / "petlab-faults.so"),
                          "PETLAB_TEST_FAULTS": f"{rule}1; {rule}2"}
        for name, numbers in (("term", [signal.SIGTERM] * 3),
                              ("mixed", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])):
            with self.subTest(name):
                folder = self.root / name / trial["trial"] / "1"
                folder.mkdir(parents=True)
                (folder / "trial.json").write_text(json.dumps(trial))
                process = self.start(folder, program=TRAINER)
                stat = pathlib.Path(f"/proc/{process.pid}/stat")
                for sent in (numbers[:1], numbers):
                    self.until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
                    for number in sent:
                        process.send_signal(number)
                    process.send_signal(signal.SIGCONT)
                done = self.end(process)
                self.assertEqual(done.code, 3, done)
                last = self.events(folder)[-1]
                self.assertEqual(last["type"], "checkpoint")
                self.assertTrue((folder / last["path"]).is_file())

    def test_sigterm_twice_leaves_a_checkpoint_each_time(self):
        self.write("sweep.yaml", SWEEP)
        self.train("runs")
        trial = json.loads((self.attempt_folders("runs")[0] / "trial.json").read_text())
        trial["config"]["training"]["epochs"] = 100000
        for milliseconds in (0, 2, 20, 200):
            with self.subTest(milliseconds=milliseconds):
                folder = self.root / str(milliseconds) / trial["trial"] / "1"
                folder.mkdir(parents=True)
                (folder / "trial.json").write_text(json.dumps(trial))
                process = self.start(folder, program=TRAINER)
                self.until(lambda: any(line["type"] == "progress" for line in self.events(folder)))
                process.send_signal(signal.SIGTERM)
                time.sleep(milliseconds / 1000)
                process.send_signal(signal.SIGTERM)
                done = self.end(process)
                self.assertEqual(done.code, 3, done)
                self.assertEqual(self.events(folder)[-1]["type"], "checkpoint")

    def await_step_after(self, step, number, process):
        """Waits until attempt `number` reports a step after `step`. Returns its folder, its worker's
        pid and that step."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            self.assertIsNone(process.poll())
            for folder in self.attempt_folders():
                events = self.events(folder) if folder.name == str(number) else []
                steps = [event["step"] for event in events if event["type"] == "progress"]
                if steps and steps[-1] > step:
                    return folder, events[0]["pid"], steps[-1]
            time.sleep(0.01)
        self.fail("no attempt came to a step within a minute")

    def await_death(self, pid):
        limit = time.monotonic() + 30
        while os.path.exists(f"/proc/{pid}"):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def await_steps(self, process, new=False, runs="killed"):
        """Waits until an open attempt has a checkpoint and its worker's pid is known. Returns that pid,
        or None if the run is over first."""
        known = set(self.attempt_folders(runs)) if new else set()
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if process.poll() is not None:
                return None
            for folder in self.attempt_folders(runs):
                lines = [] if folder in known else self.events(folder)
                types = {line["type"] for line in lines}
                alive = lines and os.path.exists(f"/proc/{lines[0]['pid']}")
                if "checkpoint" in types and not types & {"finished", "failed"} and alive:
                    return lines[0]["pid"]
            time.sleep(0.005)
        self.fail("no attempt came to a checkpoint within a minute")

    def test_a_full_disk_at_a_checkpoint_fails_trials_that_can_be_retrained(self):
        self.train("whole")
        disk = self.small_disk("1m")
        ballast = self.fill(disk, 24)
        done = self.run_sweep("--db", "full.db", "--runs", disk / "runs")
        self.assertEqual(done.code, 1, done)
        self.assertIn(": cannot be written: No space left on device\n", done.err)
        ballast.unlink()
        done = self.run_sweep("--db", "full.db", "--runs", disk / "runs", "--rerun", "failed")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(METRICS, "full.db"), self.query(METRICS, "whole.db"))

    def test_a_second_run_trains_nothing_and_its_report_is_the_same(self):
        self.write("sweep.yaml", SWEEP + VARIANTS)
        first = self.run_sweep("--json")
        self.assertEqual(first.code, 0, first)
        self.assertEqual(json.loads(first.out.splitlines()[-1])["trained"], 4)
        report = ["report", "sweep", "--sweep", "tiny", "--db", "sweep.db"]
        before = {name: self.petlab(*report, "--format", name)
                  for name in ("terminal", "markdown", "csv", "html")}
        for name, done in before.items():
            self.assertEqual(done.code, 0, (name, done))
        self.assertIn("4 of 4 trials done", before["terminal"].out)
        attempts = self.attempt_folders()
        second = self.run_sweep("--json")
        self.assertEqual(second.code, 0, second)
        self.assertEqual(json.loads(second.out.splitlines()[-1])["trained"], 0)
        self.assertEqual(self.attempt_folders(), attempts)
        for name, done in before.items():
            self.assertEqual(self.petlab(*report, "--format", name).out, done.out, name)

    def test_a_trial_of_another_numerics_version_is_stale(self):
        self.write("sweep.yaml", SWEEP)
        self.assertEqual(self.run_sweep().code, 0)
        described = json.loads(self.petlab("--describe", program=TRAINER).out)
        self.assertIn("\n      1 done\n", self.petlab("plan", "sweep.yaml").out)
        version = described["numerics"]
        described["numerics"] = f"{version}-next"
        worker = self.write("next-trainer", f"#!/bin/sh\necho '{json.dumps(described)}'\n")
        worker.chmod(0o755)
        plan = self.petlab("plan", "sweep.yaml", "--worker", worker)
        self.assertEqual(plan.code, 0, plan)
        self.assertIn("\n      1 stale\n", plan.out)
        self.assertIn(f" numerics version was {version}, is {version}-next now (--rerun stale "
                      f"reruns it); ran other code: next-trainer\n", plan.out)

    def test_a_failing_trial_ends_the_run_with_1_and_ctrl_c_twice_with_3(self):
        self.write("sweep.yaml", SWEEP.replace("mask_learning_rate: 5e-2", "max_grad_norm: 0") +
                   "variants:\n  good: {}\n"
                   "  explodes: {module.kind: full_finetuning, training.learning_rate: 1e30}\n")
        done = self.run_sweep()
        self.assertEqual(done.code, 1, done)
        self.assertIn("1 failed", done.err.splitlines()[-1])

        self.write("long.yaml", SWEEP.replace("epochs: 3", "epochs: 100000")
                   .replace("mask_learning_rate: 5e-2", "checkpoint_every: 5"))
        process = self.start("run", "long.yaml", "--slots", "1", "--db", "long.db")
        self.assertIsNotNone(self.await_steps(process, runs="long.runs"))
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        # One Ctrl-C lets trials finish, which would take this one an hour.
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        stopped = self.end(process)
        self.assertEqual(stopped.code, 3, stopped)
        self.assertIn("interrupted; run the same command to resume\n", stopped.err)
        last, = self.query("SELECT outcome, checkpoint_step FROM attempts", "long.db")
        self.assertEqual(last["outcome"], "stopped")
        self.assertGreater(last["checkpoint_step"], 0)
        plan = self.petlab("plan", "long.yaml", "--db", "long.db")
        self.assertIn(f"resumes from step {last['checkpoint_step']} of attempt 1", plan.out)


if __name__ == "__main__":
    tiny_world.main()
