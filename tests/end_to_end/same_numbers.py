#!/usr/bin/env python3
"""Tests that every interface shows the same number for the same question.

usage: same_numbers.py FOLDER_OF_PROGRAMS
"""
import json
import signal

import tiny_world
from scripted_world import ScriptedWorld

# Reports the metrics of user.says: a JSON list of [step, split, name, value].
WORKER = """#!/usr/bin/env python3
import json, os, pathlib, sys, time
if sys.argv[1] == "--describe":
    print(json.dumps({"name": "told", "version": "1", "protocol": 1, "numerics": "1"}))
    sys.exit()
for line in sys.stdin if sys.argv[1] == "-" else sys.argv[1:]:
    folder = pathlib.Path(line.rstrip("\\n"))
    trial = json.loads((folder / "trial.json").read_text())
    rows = [{"type": "started", "pid": os.getpid(), "worker": "told", "version": "1",
             "numerics": {}, "digests": trial["digests"]}]
    for step, split, name, value in json.loads(trial["config"]["user"]["says"]):
        rows.append({"type": "metric", "step": step, "split": split, "name": name, "value": value,
                     "task": trial["tasks"][0]["name"]})
    rows.append({"type": "finished", "step": 9})
    with open(folder / "events.jsonl", "a") as events:
        for seq, row in enumerate(rows):
            events.write(json.dumps({"v": 1, "seq": seq, "time": time.time(), **row}) + "\\n")
"""


class SameNumbers(ScriptedWorld):
    def run_reported(self, *trials):
        """Runs a trial for each (variant, seed, rows to report)."""
        rows = [f"  {variant}_{seed}: {{seed: {seed}, user: {json.dumps({'says': json.dumps(says)})}}}\n"
                for variant, seed, says in trials]
        self.write("worker.py", WORKER).chmod(0o755)
        self.write("sweep.yaml", tiny_world.SWEEP + "variants:\n" + "".join(rows))
        done = self.run_sweep("--worker", "./worker.py", "--retries", 0)
        self.assertEqual(done.code, 0, done)
        return [row["trial_id"] for row in self.query("SELECT trial_id FROM trials ORDER BY key")]

    def ask(self, *words, code=0):
        done = self.petlab(*words, "--db", "sweep.db")
        self.assertEqual(done.code, code, done)
        return done.out if code == 0 else done.err

    def test_the_selected_step_counts_in_every_interface(self):
        selected, last = self.run_reported(
            ("a", 1, [[1, "validation", "accuracy", 0.90], [2, "validation", "accuracy", 0.61],
                      [1, "test", "accuracy", 0.85]]),
            ("b", 1, [[1, "validation", "accuracy", 0.5], [2, "validation", "accuracy", 0.7],
                      [2, "test", "accuracy", 0.6]]))
        self.write("report.yaml", "report: r\ntable: {rows: [{each: variant}], columns: "
                   "[{key: a, where: {name: accuracy, split: validation}}]}\n")
        # A figure over steps loads every step, which must not change the table next to it.
        self.write("both.yaml", "report: r\nsections:\n- table: {key: t, rows: [{each: variant}], "
                   "columns: [{key: a, where: {name: accuracy, split: validation}}]}\n- figure: {key: "
                   "f, x: {value: step}, y: {where: {name: accuracy, split: validation}}, series: "
                   "[{each: variant}]}\n")
        rows = json.loads(self.ask("results", "--split", "validation", "--by", "variant", "--format", "json"))
        self.assertEqual([row["accuracy_mean"] for row in rows], [0.9, 0.7])
        best, = json.loads(self.ask("best", "--format", "json"))
        self.assertEqual((best["trial_id"], best["validation"], best["test"]), (selected, 0.9, 0.85))
        table, = json.loads(self.ask("report", "./report.yaml", "--format", "json"))["rows"][:1]
        self.assertEqual(table["cells"][0]["mean"], 90)
        both = json.loads(self.ask("report", "./both.yaml", "--format", "json"))["sections"]
        self.assertEqual([row["cells"][0]["mean"] for row in both[0]["rows"]], [90, 70])
        rows = {row["field"]: row for row in
                json.loads(self.ask("diff", selected, last, "--format", "json"))}
        row = rows["validation films accuracy"]
        self.assertEqual((row[selected], row[last]), ("0.9", "0.7"))
        self.assertIn("0.9000 at step 1, the selected one of 2", self.ask("show", selected))
        self.assertIn("0.7000 at step 2, the last of 2", self.ask("show", last))

    def test_a_trial_whose_run_died_has_one_state_everywhere(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 12, "checkpoint_every": 5, "gate": str(gate)}, {})
        self.write("report.yaml", "report: r\ntable: {rows: [{each: state}], columns: "
                   "[{key: a, value: seed}]}\n")
        run = self.start_scripted(slots=2)
        self.until(lambda: (self.root / "sweep.db").exists() and self.query(
            "SELECT (SELECT count(*) FROM attempts WHERE checkpoint_step > 0) + "
            "(SELECT count(*) FROM attempts WHERE outcome = 'finished') AS n")[0]["n"] == 2)
        trial = self.query("SELECT trial_id FROM trials ORDER BY key")[0]["trial_id"]

        def states():
            sweep, = json.loads(self.ask("status", "--json"))["sweeps"]
            report = json.loads(self.ask("report", "./report.yaml", "--format", "json"))
            shown = json.loads(self.ask("show", trial, "--json"))
            self.assertEqual(self.ask("show", trial).splitlines()[1].split(),
                             ["state", *f"{shown['state']}: {shown['why']}".split()])
            counts = {state: n for state, n in sweep["states"].items() if n}
            self.assertEqual(report["sweeps"][0]["states"], counts)
            self.assertEqual({row["name"] for row in report["rows"]}, set(counts))
            return shown["state"], counts

        self.assertEqual(states(), ("running", {"running": 1, "done": 1}))
        run.send_signal(signal.SIGKILL)
        self.end(run)
        # The guardian ends the worker shortly afterwards.
        self.until(lambda: json.loads(self.ask("show", trial, "--json"))["state"] != "running")
        self.assertEqual(states(), ("interrupted", {"interrupted": 1, "done": 1}))


if __name__ == "__main__":
    tiny_world.main()
