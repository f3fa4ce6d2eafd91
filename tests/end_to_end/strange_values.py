#!/usr/bin/env python3
"""Tests strange names and values: they are kept exactly, or refused by name.

usage: strange_values.py FOLDER_OF_PROGRAMS
"""
import csv
import io
import json

import tiny_world
from scripted_world import ScriptedWorld

NAMES = ["Robert'); DROP TABLE trials;--", '"quoted"', "back\\slash", "tab\tbed", "two\nlines",
         "é漢😀", '$.x"[0]', " spaces ", "", "%s{0}", "'; ATTACH 'x' AS y;--", "x" * 3000]
# Reports the metrics in user.says, with their values as written there.
WORKER = """#!/usr/bin/env python3
import json, os, pathlib, sys, time
if sys.argv[1] == "--describe":
    print(json.dumps({"name": "odd", "version": "1", "protocol": 1, "numerics": "1"}))
    sys.exit()
for line in sys.stdin if sys.argv[1] == "-" else sys.argv[1:]:
    folder = pathlib.Path(line.rstrip("\\n"))
    trial = json.loads((folder / "trial.json").read_text())
    task = json.dumps(trial["tasks"][0]["name"])
    lines = ['"type": "started", "pid": %d, "worker": "odd", "version": "1", "numerics": {},'
             ' "digests": %s' % (os.getpid(), json.dumps(trial["digests"]))]
    for name, value in json.loads(trial["config"]["user"]["says"]).items():
        value = "1" * 100_000_000 if value == "endless" else value
        lines.append('"type": "metric", "step": 1, "split": "test", "task": %s, "name": %s, "value": %s'
                     % (task, json.dumps(name), value))
    lines.append('"type": "finished", "step": 1')
    with open(folder / "events.jsonl", "a") as events:
        for seq, rest in enumerate(lines):
            events.write('{"v": 1, "seq": %d, "time": %f, %s}\\n' % (seq, time.time(), rest))
"""


class StrangeValues(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write("odd.py", WORKER).chmod(0o755)

    def write_users(self, *users):
        """Writes a sweep with a trial for each `user`, with seeds 1, 2, …. YAML has no surrogate pairs."""
        rows = [f"  v{seed}: {{seed: {seed}, user: {json.dumps(user, ensure_ascii=False)}}}\n"
                for seed, user in enumerate(users, 1)]
        self.write("sweep.yaml", tiny_world.SWEEP + "variants:\n" + "".join(rows))

    def run_odd(self, code=0):
        done = self.run_sweep("--worker", "./odd.py", "--retries", 0)
        self.assertEqual(done.code, code, done)
        return done

    def results(self, *words):
        done = self.petlab("results", "--db", "sweep.db", "--format", "json", *words)
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def refused(self, code, message, *words, **options):
        done = self.petlab(*words, **options)
        self.assertEqual((done.code, done.err), (code, f"petlab: {message}\n"))

    def test_user_values_of_any_text_are_kept_queried_and_printed_exactly(self):
        self.write_users(*({"note": name, "says": f'{{"m": {place}}}'}
                           for place, name in enumerate(NAMES)))
        self.run_odd()
        rows = self.query("SELECT json_extract(user, '$.note') AS note FROM trials ORDER BY seed")
        self.assertEqual([row["note"] for row in rows], NAMES)
        self.assertEqual([(row["user.note"], row["m_mean"])
                          for row in self.results("--by", "user.note")],
                         [(name, place) for place, name in enumerate(NAMES)])
        done = self.petlab("results", "--db", "sweep.db", "--by", "user.note", "--format", "csv")
        printed = list(csv.DictReader(io.StringIO(done.out, newline="")))
        self.assertEqual([row["user.note"] for row in printed], NAMES)
        for place, name in enumerate(NAMES):
            quote = '"' if "'" in name else "'"
            if quote not in name:
                rows = self.results("--where", f"user.note={quote}{name}{quote}")
                self.assertEqual([row["m_mean"] for row in rows], [place], name)

    def test_user_keys_of_any_text_are_kept_and_those_without_quotes_can_be_queried(self):
        names = [name for name in NAMES if len(name) < 1000]  # YAML limits the length of keys
        self.write_users(*({name: place, "says": f'{{"m": {place}}}'}
                           for place, name in enumerate(names)))
        self.run_odd()
        rows = self.query("SELECT user FROM trials ORDER BY seed")
        self.assertEqual([set(json.loads(row["user"])) - {"says"} for row in rows],
                         [{name} for name in names])
        for place, name in enumerate(names):
            if name.strip() == name != "" and not set(name) & set('",'):
                found = {row[f"user.{name}"]: row["m_mean"]
                         for row in self.results("--by", f"user.{name}")}
                self.assertEqual(found.get(place), place, name)
        rows = self.results("--where", "user.back\\slash=2")
        self.assertEqual([row["m_mean"] for row in rows], [2])
        self.refused(2, 'user."quoted": a key with a quotation mark cannot be asked for',
                     "results", "--db", "sweep.db", "--where", 'user."quoted"=1')

    def test_metrics_of_any_name_are_kept_exactly(self):
        metrics = {name: repr(place / 7) for place, name in enumerate(NAMES + ["nul\0byte"])}
        self.write_users({"says": json.dumps(metrics)})
        self.run_odd()
        rows = self.query("SELECT name, value FROM results")
        self.assertEqual({row["name"]: repr(row["value"]) for row in rows}, metrics)
        for name, value in metrics.items():
            if name and "\0" not in name:
                row, = self.results("--metric", name)
                self.assertEqual(repr(row[f"{name}_mean"]), value, name)
        self.assertEqual(self.petlab("db", "check", "--db", "sweep.db").code, 0)

    def test_values_beyond_doubles_fail_their_trial_and_all_others_are_exact(self):
        kept = {"-0.5": -0.5, "5e-324": 5e-324, "1.7976931348623157e308": 1.7976931348623157e308,
                "null": None, "0.1": 0.1, "12345678901234567890": 12345678901234567890.0,
                "1e-400": 0.0, "0.30000000000000004": 0.30000000000000004}
        refused = {"NaN": "found 'NaN}' at byte ", "Infinity": "found 'Infinity}' at byte ",
                   "-Infinity": "found '-Infinity}' at byte ",
                   "1e400": "value: found 1e400, expected a number that a double can hold",
                   '"0.5"': "value: found '0.5', expected a number or null",
                   "true": "value: found true, expected a number or null",
                   "endless": "the line is longer than 1 MiB"}
        self.write_users(*({"says": json.dumps({"m": value})} for value in [*kept, *refused]))
        self.run_odd(code=1)
        rows = self.query("SELECT seed, value FROM results ORDER BY seed")
        self.assertEqual([(row["seed"], row["value"]) for row in rows],
                         list(enumerate(kept.values(), 1)))
        rows = self.query("SELECT reason FROM attempts a JOIN trials t ON t.key = a.trial "
                          "WHERE outcome = 'failed' ORDER BY seed")
        self.assertEqual(len(rows), len(refused))
        for row, message in zip(rows, refused.values()):
            self.assertRegex(row["reason"], r"^[0-9a-f]{16}/\d+/events\.jsonl:2: ")
            self.assertIn(message, row["reason"])

    def test_a_trial_may_have_ten_thousand_user_keys(self):
        keys = {f"key_{place}": place for place in range(10_000)}
        self.write_users({**keys, "says": '{"m": 1}'}, {**keys, "key_7": 8, "says": '{"m": 2}'})
        self.run_odd()
        rows = self.results("--where", "user.key_9999=9999", "--by", "user.key_7,user.key_9999")
        self.assertEqual([(row["user.key_7"], row["user.key_9999"], row["m_mean"]) for row in rows],
                         [(7, 9999, 1), (8, 9999, 2)])
        ids = [row["trial_id"] for row in self.query("SELECT trial_id FROM trials ORDER BY seed")]
        done = self.petlab("diff", *ids, "--db", "sweep.db", "--format", "json")
        self.assertEqual([row["field"] for row in json.loads(done.out)],
                         ["seed", "user.key_7", "user.says", "test films m"])
        whole = json.loads(self.petlab("show", ids[0], "--db", "sweep.db", "--json").out)
        self.assertEqual(whole["configuration"]["user"], {**keys, "says": '{"m": 1}'})
        many = [f"user.key_{place}" for place in range(501)]
        self.refused(2, "found 501 conditions, expected at most 500", "results", "--db", "sweep.db",
                     "--where", " and ".join(f"{key}!=-1" for key in many))
        self.assertEqual(len(self.results("--where", " and ".join(f"{key}!=-1" for key in many[:500]))),
                         2)
        self.refused(2, "found 501 fields to tell trials apart by, expected at most 500", "results",
                     "--db", "sweep.db", "--by", ",".join(many))
        self.assertEqual(len(self.results("--by", ",".join(many[:500]))), 2)

    def test_far_too_large_values_are_refused_by_their_size(self):
        self.write_users({"says": '{"m": 1}'})
        self.run_odd()
        huge = self.write("huge", b"x" * 100_000_000)
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        with open(huge, "rb") as file:
            self.refused(2, "SQL: found 100000000 bytes, expected at most 16777216", "query", "-",
                         "--db", "sweep.db", stdin=file)
        with open(huge, "rb") as file:
            self.refused(2, "found a note of 100000000 bytes, expected at most 65536", "note", trial,
                         "-", "--db", "sweep.db", stdin=file)
        self.refused(2, "found a tag of 1000 bytes, expected at most 100", "tag", trial,
                     "+" + "x" * 1000, "--db", "sweep.db")
        done = self.petlab("query", "SELECT " + "x" * 100_000, "--db", "sweep.db")
        self.assertEqual(done.code, 2)
        self.assertRegex(done.err, r"^petlab: SQL:1:8: no such column: x+…x+\n$")
        self.assertLess(len(done.err), 2100)
        self.write_users({"note": "x" * 100_000_000, "says": '{"m": 1}'})
        for words in (["plan"], ["run", "--worker", "./odd.py"]):
            done = self.petlab(words[0], "sweep.yaml", *words[1:])
            self.assertEqual((done.code, done.err), (
                1, "petlab: sweep.yaml: found more than 16777216 bytes, expected fewer\n"))
        self.assertEqual(self.query("SELECT count(*) AS n FROM trials"), [{"n": 1}])

    def test_a_nul_byte_in_text_of_a_sweep_or_in_sql_is_refused(self):
        self.write("sweep.yaml", tiny_world.SWEEP + '  user: {good: 1, note: "a\\0b"}\n')
        self.refused(2, "sweep.yaml:8: user.note: found a NUL byte, expected text without one",
                     "plan", "sweep.yaml")
        self.write("sweep.yaml", tiny_world.SWEEP + '  user: {good: 1, "ke\\0y": 1}\n')
        self.refused(2, "sweep.yaml:8: user.ke: found a NUL byte, expected text without one",
                     "plan", "sweep.yaml")
        self.write_users({"says": '{"m": 1}'})
        self.run_odd()
        with open(self.write("nul.sql", b"SELECT 1\0; DROP TABLE trials"), "rb") as file:
            self.refused(2, "SQL: found a NUL byte as character 9, expected none", "query", "-",
                         "--db", "sweep.db", stdin=file)


if __name__ == "__main__":
    tiny_world.main()
