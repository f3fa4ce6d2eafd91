#!/usr/bin/env python3
"""Compares the judgements of `petlab schema`'s schemas and of petlab about the same files.

usage: schema.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without jsonschema (scripts/schema_venv.sh installs it).
"""
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
if "PETLAB_SCHEMA_PYTHON" not in os.environ:
    found = subprocess.run([SOURCE / "scripts/schema_venv.sh", "--there"], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print("skipped: jsonschema is not there; scripts/schema_venv.sh installs it")
        sys.exit(77)
    os.environ["PETLAB_SCHEMA_PYTHON"] = found.stdout.strip()
    os.execv(found.stdout.strip(), [found.stdout.strip(), __file__, *sys.argv[1:]])

import jsonschema  # noqa: E402
import yaml  # noqa: E402
from tiny_world import TASK, TinyWorld, main  # noqa: E402


class Loader(yaml.SafeLoader):
    """Loads scalars as YAML 1.2, like editors and petlab: `yes` is a text, and 1e-4 is a number."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("null", r"~|null|", ["~", "n", ""]), ("bool", r"true|false", "tf"),
                            ("int", r"-?[0-9]+", "-0123456789"),
                            ("float", r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", "-0123456789")):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))

BASE = "sweep: t\nbase: {backbone: ./tiny, task: films.yaml}\n"
COLUMNS = "files: {train: a.tsv}\nsplit: one_file\ncolumns: {text: a, label: b}\n"
MINE = "task: mine\n" + COLUMNS + "labels: [x, y]\nmetrics: [accuracy]\n"
REPORT = "report: r\ntable: {rows: [{key: a}], columns: [{key: b}]}\n"
FIGURE = "report: r\nfigure: {x: {value: step}, y: {}, series: [{key: a}]}\n"
RANKS = "report: r\nranks: {variants: [{key: a}], tasks: [{each: task}]}\n"

# Files that both petlab and the schema refuse.
REFUSED = {
    "sweep": [
        "- a\n", "sweep: t\nbase: 3\n", "base: {backbone: ./tiny, task: films.yaml}\n", "sweep: ''\n" + BASE[9:],
        "sweep: \"a\\tb\"\n" + BASE[9:], f"sweep: {'x' * 101}\n" + BASE[9:], BASE + "gird: {seed: [1]}\n",
        BASE + "about: [1]\n", BASE + "variants: {}\n", BASE + "variants: {a: 1}\n", BASE + "variants:\n",
        BASE + "grid: {seed: []}\n", BASE + "grid: {seed: 1}\n", BASE + "grid: [1]\n", BASE + "grid: {module: [1]}\n",
        BASE + "zip: {seed: [1]}\n", BASE + "zip: [{}]\n", BASE + "zip: [{seed: 1}]\n",
        BASE + "when: {if: {seed: 1}, set: {seed: 2}}\n", BASE + "when:\n  - {if: {seed: 1}}\n",
        BASE + "when:\n  - {iff: {seed: 1}, set: {seed: 2}}\n", BASE + "when: [{if: {}, set: {seed: 2}}]\n",
        BASE + "when: [{if: {seed: 1}, set: {}}]\n", BASE + "when: [{if: {seed: []}, set: {seed: 1}}]\n",
        BASE + "exclude: [{seed: x}]\n", BASE + "exclude: [{}]\n", BASE + "exclude: {seed: 1}\n",
        BASE + "exclude: [{module.bottleneck: {match_storage_of: b}}]\n",
        BASE + "grid: {task: [films.yaml], tasks: [[films.yaml]]}\n", BASE + "grid: {seed: [-1]}\n",
        BASE + "grid: {seed: [9223372036854775808]}\n", BASE + "grid: {module.share: [yes]}\n",
        BASE + "grid: {training.epochs: ['3']}\n", BASE + "grid: {training.epochs: [-1]}\n",
        BASE + "grid: {training.epochs: [null]}\n", BASE + "grid: {training.epochs: [[1]]}\n",
        BASE + "grid: {training.epochs: [{a: 1}]}\n", BASE + "grid: {training.epochs: [1.5]}\n",
        BASE + "grid: {training.learning_rate: [.inf]}\n", BASE + "grid: {training.learning_rate: [0]}\n",
        BASE + "grid: {training.learning_rate: [-0.1]}\n", BASE + "grid: {module.sparsity_ratio: [1.5]}\n",
        BASE + "grid: {training.dropout: [-0.5]}\n", BASE + "grid: {training.dropout: [1]}\n",
        BASE + "grid: {module.mask: [lerned]}\n", BASE + "grid: {module.kind: [adaptor]}\n",
        BASE + "grid: {training.compute: [fp16]}\n", BASE + "grid: {module.bottleneck: [0]}\n",
        BASE + "grid: {module.bottleneck: [1048577]}\n", BASE + "grid: {data.max_tokens: [7]}\n",
        BASE + "grid: {lerning_rate: [1]}\n", BASE + "grid: {training: {lerning_rate: [1]}}\n",
        BASE + "grid: {user.a: [[1]]}\n", BASE + "grid: {user: {a: 1}}\n", BASE + "grid: {user: 7}\n",
        BASE + "grid: {priority: [1.5]}\n", BASE + "variants: {a: {priority: high}}\n",
        BASE + "variants: {a: {priority: 1000001}}\n", BASE + "grid: {tasks: [[], [films.yaml]]}\n",
        BASE + "grid: {tasks: [films.yaml]}\n", "sweep: t\nbase: {backbone: ./tiny, task: [films.yaml]}\n",
        "sweep: t\nbase: {backbone: '', task: films.yaml}\n", "sweep: t\nbase: {backbone: 7, task: films.yaml}\n",
        BASE + "variants: {a: {training.epochs: {match_storage_of: b}}, b: {}}\n",
        BASE + "variants: {a: {module.bottleneck: {match_storage_of: b, or: 1}}, b: {}}\n",
        BASE + "variants: {a: {module.bottleneck: {match_storage_of: [b]}}, b: {}}\n",
        BASE + "stop_early: halving\n", BASE + "stop_early: {}\n", BASE + "stop_early: {rule: thirds}\n",
        BASE + "stop_early: {rule: halving}\n", BASE + "stop_early: {rule: halving, at: 3}\n",
        BASE + "stop_early: {rule: halving, at: []}\n", BASE + "stop_early: {rule: halving, at: [0]}\n",
        BASE + "stop_early: {rule: halving, at: [1.5]}\n", BASE + "stop_early: {rule: halving, at: [1], keep: 1}\n",
        BASE + "stop_early: {rule: halving, at: [1], keep: most}\n", BASE + "stop_early: {rule: median, at: [1]}\n",
        BASE + "stop_early: {rule: median, after: 0}\n", BASE + "stop_early: {rule: paired, p: 0.6}\n",
        BASE + "stop_early: {rule: paired, p: low}\n", BASE + "stop_early: {rule: paired, against: [a]}\n",
        BASE + "stop_early: {rule: median, metric: [a]}\n",
        BASE + "search: 30\n", BASE + "search: {seed: [1, 2]}\n", BASE + "search: {seed: [1], trials: 0}\n",
        BASE + "search: {seed: [1], trials: many}\n", BASE + "search: {seed: 1, trials: 2}\n",
        BASE + "search: {sead: [1], trials: 2}\n", BASE + "search: {seed: [1], trials: 2, by: grid}\n",
        BASE + "search: {seed: [1], trials: 2, search_seed: x}\n", BASE + "search: {seed: [], trials: 2}\n",
        BASE + "search: {seed: [1], trials: 2, startup: 1}\n",
        BASE + "search: {seed: [1], trials: 2, by: random, per_round: 1}\n",
        BASE + "search: {seed: [1], trials: 2, by: tpe, startup: 0}\n",
        BASE + "search: {seed: [1], trials: 2, by: tpe, per_round: all}\n",
        BASE + "search: {seed: [1], trials: 2, by: tpe, metric: [f1]}\n",
        BASE + "search: {training.dropout: 'log(0.1)', trials: 2}\n",
        BASE + "search: {training.dropout: 'log(low, high)', trials: 2}\n",
        BASE + "search: {module.kind: 'uniform(1, 2)', trials: 2}\n",
        BASE + "search: {training.dropout: normal(0, 1), trials: 2}\n",
    ],
    "task": [
        "[]\n", "task: x\n", MINE.replace("mine", "cola"), MINE.replace("mine", "a b"), MINE + "fils: {train: a}\n",
        MINE.replace("one_file", "halves"), MINE.replace("split: one_file\n", ""), MINE.replace("one_file", "glue_small"),
        MINE.replace("train: a.tsv", "train: a.tsv, test: b.tsv"), MINE.replace("a.tsv", "a.txt"),
        MINE.replace("train: a.tsv", "tain: a.tsv"), MINE + "format: xml\n", MINE + "header: 7\n",
        MINE + "skip_short_rows: yes\n", MINE + "extra_columns: drop\n", MINE + "format: jsonl\nextra_columns: ignore\n",
        MINE + "format: aligned\nheader: false\n",
        MINE.replace("text: a", "text: [a, b, c]"), MINE.replace("text: a", "text: []"), MINE.replace("text: a, ", ""),
        MINE.replace("label: b", "label: b, score: c"), MINE.replace(", label: b", ""), MINE.replace("label: b", "lable: b"),
        MINE.replace("labels: [x, y]\n", ""), MINE.replace("[x, y]", "[x]"), MINE.replace("[x, y]", "[x, x]"),
        MINE.replace("label: b", "score: b"), MINE.replace("label: b", "sign: b").replace("[x, y]", "[x, y, z]"),
        MINE + "score: {min: 1}\n", MINE.replace("[accuracy]", "[acuracy]"), MINE.replace("[accuracy]", "[pearson]"),
        MINE.replace("[accuracy]", "[]"), MINE.replace("metrics: [accuracy]\n", ""), MINE + "select_by: []\n",
        MINE + "text_to_text: x\n", MINE + "text_to_text: {targets: [a, b]}\n", MINE + "text_to_text: {sorce: a}\n",
        MINE.replace("label: b", "target: b").replace("accuracy", "bleu"),
        (MINE + "score: {min: low}\n").replace("label: b", "score: b").replace("labels: [x, y]\n", "")
        .replace("accuracy", "pearson"),
    ],
    "report": [
        "[]\n", REPORT[10:], "report: r\n", REPORT + "figure: {}\n", REPORT.replace(": r\n", ": a b\n"),
        REPORT.replace(": r\n", ": .r\n"), REPORT + "abuot: x\n", REPORT + "about: [x]\n", REPORT + "sweep: {a: b}\n",
        REPORT + "where: {seed: []}\n", REPORT + "where: {seed: {a: 1}}\n", REPORT + "where: [seed]\n",
        REPORT + "backbone_parameters: {a: 0}\n", REPORT + "backbone_parameters: {a: many}\n", REPORT + "notes: {a: 1}\n",
        REPORT.replace("rows", "rwos"), REPORT.replace("[{key: a}]", "[]"), REPORT.replace("[{key: a}]", "{key: a}"),
        REPORT.replace("rows: [{key: a}], ", ""), REPORT.replace("{key: a}", "{}"), REPORT.replace("{key: a}", "{keey: a}"),
        REPORT.replace("{key: a}", "{key: a, each: seed}"), REPORT.replace("{key: b}", "{key: b, digits: 13}"),
        REPORT.replace("{key: b}", "{key: b, digits: 1.5}"), REPORT.replace("{key: b}", "{key: b, scale: 0}"),
        REPORT.replace("{key: b}", "{key: b, scale: big}"), REPORT.replace("{key: b}", "{key: b, better: more}"),
        REPORT.replace("{key: b}", "{key: b, group: g}"), REPORT.replace("{key: a}", "{key: a, separate: yes}"),
        REPORT.replace("{key: b}", "{key: b, average_over: []}"),
        REPORT.replace("{key: b}", "{key: b, value: bls_bits, text: x}"), REPORT.replace("}]}", "}], best: cell}"),
        REPORT.replace("}]}", "}], errors: all}"), REPORT.replace("}]}", "}], cells: {digit: 1}}"),
        FIGURE.replace("{value: step}", "{}"), FIGURE.replace("x: {value: step}, ", ""), FIGURE.replace("y: {}, ", ""),
        FIGURE.replace("y: {}", "y: {log: maybe}"), FIGURE.replace("{value: step}", "{value: step, digits: 1}"),
        FIGURE.replace("{key: a}", "{key: a, published: {table: t, y: c, x: 1}}"),
        FIGURE.replace("{key: a}", "{key: a, published: {table: t, y: c, row: r}}"),
        FIGURE.replace("{key: a}", "{key: a, published: [{tabel: t}]}"), "report: r\nsections: []\n",
        RANKS.replace("variants: [{key: a}], ", ""), RANKS.replace(", tasks: [{each: task}]", ""),
        RANKS.replace("[{key: a}]", "[]"), RANKS.replace("key: a", "key: a, group: g"),
        RANKS.replace("each: task", "each: task, text: x"), RANKS.replace("}]}", "}], test: friedman}"),
        RANKS.replace("}]}", "}], level: 0}"), RANKS.replace("}]}", "}], level: 0.6}"),
        RANKS.replace("}]}", "}], level: low}"), RANKS.replace("}]}", "}], errors: none}"),
        "report: r\nsections: [{table: {rows: [{key: a}], columns: [{key: b}]}, figure: {}}]\n",
        "report: r\nsections:\n" + "  - table: {rows: [{key: a}], columns: [{key: b}]}\n" * 2,
    ],
}

# Files that petlab refuses but a schema cannot: the list of docs/reference/schema.md.
BEYOND = {
    "sweep": [
        BASE + "grid: {training.epochs: [2.0]}\n",                               # 2.0 is a whole number for a schema
        BASE + "grid: {user.k: [9223372036854775808]}\n",                        # whole numbers beyond 64 bits
        BASE + "grid: {training.epochs: [1], training: {epochs: [2]}}\n",        # a field in both spellings
        BASE + "zip: [{seed: [1, 2], training.batch_size: [8]}]\n",              # lists of different lengths
        BASE + "exclude: [{variant: c}]\n",                                      # unknown variants
        BASE + "variants: {a: {module.bottleneck: {match_storage_of: c}}}\n",
        BASE + "variants: {a: {module.bottleneck: {match_storage_of: a}}}\n",    # circles
        BASE + "grid: {seed: [5..1]}\n",                                         # descending ranges
        BASE + "grid: {seed: ['1..5']}\n",                                       # or in quotes
        "sweep: t\nbase: {backbone: ./tiny, task: movie-polarty}\n",             # unknown tasks and backbones
        "sweep: t\nbase: {backbone: ./tinny, task: films.yaml}\n",
        "sweep: t\ngrid: {seed: [1, 2]}\n",                                      # missing fields of trials
        BASE + "grid: {tasks: [[films.yaml, films.yaml]]}\n",
        BASE + "variants: {a: {training.gradient_accumulation: 3}}\n",           # combinations of fields
        BASE + "exclude: [{seed: 42}]\n",                                        # sweeps without trials
        BASE + "stop_early: {rule: halving, at: [3, 1]}\n",                      # validations out of order
        BASE + "stop_early: {rule: halving, at: [1], keep: 3/1}\n",              # fractions of 1 or more
        BASE + "stop_early: {rule: median, metric: bleu}\n",                     # metrics that the tasks do not have
        BASE + "stop_early: {rule: paired, against: c}\n",
        BASE + "search: {training.dropout: 'uniform(0.2, 0.1)', trials: 2}\n",    # empty ranges, and log from 0
        BASE + "search: {training.dropout: 'log(0, 0.1)', trials: 2}\n",
        BASE + "search: {training.dropout: 'uniform(0, 3)', trials: 2}\n",        # ends that the field refuses
        BASE + "search: {training.epochs: 'uniform(0.5, 3)', trials: 2}\n",
        BASE + "search: {trials: 2}\n",                                         # no field
        BASE + "search: {seed: [1], trials: 2, by: tpe, metric: bleu}\n",       # a metric that the tasks do not have
    ],
    "task": [
        MINE + "select_by: [f1]\n",                                              # not one of its metrics
        MINE.replace("[accuracy]", "[f1]").replace("[x, y]", "[x, y, z]"),
        MINE + "text_to_text: {source: 'no place'}\n", MINE + "text_to_text: {source: '{text1}', targets: [a]}\n",
        (MINE + "score: {min: 2, max: 1}\n").replace("label: b", "score: b").replace("labels: [x, y]\n", "")
        .replace("accuracy", "pearson"),                                         # min above max
    ],
    "report": [
        REPORT + "where: seed=\n", REPORT + "where: {sede: 1}\n",                # contents of conditions
        REPORT.replace("[{key: a}]", "[{key: a}, {key: a}]"),                    # repeated keys
        REPORT.replace("}]}", "}], against: c}"),                                # unknown keys
    ],
}


class Schema(TinyWorld):
    def schema(self, kind):
        done = self.petlab("schema", kind)
        self.assertEqual((done.code, done.err), (0, ""), done)
        schema = json.loads(done.out)
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def problems(self, kind, text):
        """petlab's error message about a file, or an empty text."""
        words = {"sweep": ("plan", "case.yaml"), "task": ("plan", "of-task.yaml"),
                 "report": ("report", "case.yaml")}[kind]
        self.write("case.yaml", text)
        done = self.petlab(*words)
        self.assertIn(done.code, (0, 1, 2), done)
        return done.err if done.code == 2 else ""

    def setUp(self):
        super().setUp()
        self.write("of-task.yaml", "sweep: t\nbase: {backbone: ./tiny, task: case.yaml}\n")

    def test_the_schemas_accept_every_shipped_file(self):
        counts = {"sweep": 0, "task": 0, "report": 0}
        validators = {kind: self.schema(kind) for kind in counts}
        for folder in ("sweeps", "examples", "reports/definitions"):
            for file in sorted((SOURCE / folder).rglob("*.yaml")):
                if file.parent.name == "llama":
                    continue  # of a worker's catalog: own_catalog.py
                with self.subTest(file.relative_to(SOURCE)):
                    content = yaml.load(file.read_text(), Loader)
                    kind = next(kind for kind in ("report", "sweep", "task") if kind in content)
                    counts[kind] += 1
                    self.assertEqual([error.message for error in validators[kind].iter_errors(content)], [])
        self.assertGreaterEqual(counts["sweep"], 20, counts)
        self.assertGreaterEqual(counts["report"], 10, counts)
        self.assertGreaterEqual(counts["task"], 2, counts)
        for text in (MINE, TASK):
            self.assertTrue(validators["task"].is_valid(yaml.load(text, Loader)))
        self.assertEqual(self.problems("task", MINE).count("case.yaml"), 0)
        for rule in ("{rule: halving, at: [1, 3, 9], keep: 1/3, metric: f1}", "{rule: halving, at: [2], keep: 0.5}",
                     "{rule: median}", "{rule: median, after: 3}", "{rule: paired, against: best, p: 0.05}", "null"):
            text = f"{BASE}stop_early: {rule}\n"
            self.assertTrue(validators["sweep"].is_valid(yaml.load(text, Loader)), text)
            self.assertEqual(self.problems("sweep", text), "")
        for search in ("{training.learning_rate: 'log(1e-5, 1e-2)', trials: 3, by: random, search_seed: -1}",
                       "{training: {epochs: 'uniform(1, 4)', dropout: 'uniform( .1 , 0.2)'}, trials: 3}",
                       "{module: {kind: [adapter, lora]}, seed: 1..3, user.a: 'log(1, 2)', trials: 3}",
                       "{seed: [1, 2], trials: 3, by: tpe, startup: 2, per_round: 1, metric: f1}",
                       "{seed: [1, 2], trials: 3, by: tpe}", "null"):
            text = f"{BASE}search: {search}\n"
            self.assertTrue(validators["sweep"].is_valid(yaml.load(text, Loader)), text)
            self.assertEqual(self.problems("sweep", text), "")
        for text in (REPORT, FIGURE, RANKS, RANKS.replace("}]}", "}], test: wilcoxon, level: 0.01}")):
            self.assertTrue(validators["report"].is_valid(yaml.load(text, Loader)))

    def test_the_schemas_refuse_what_petlab_refuses(self):
        for kind, texts in REFUSED.items():
            validator = self.schema(kind)
            for text in texts:
                with self.subTest(kind=kind, text=text):
                    self.assertNotEqual(self.problems(kind, text), "")
                    self.assertFalse(validator.is_valid(yaml.load(text, Loader)))

    def test_mistakes_beyond_a_schema_are_listed(self):
        for kind, texts in BEYOND.items():
            validator = self.schema(kind)
            for text in texts:
                with self.subTest(kind=kind, text=text):
                    self.assertNotEqual(self.problems(kind, text), "")
                    self.assertTrue(validator.is_valid(yaml.load(text, Loader)))

    def test_the_keys_match_those_in_petlabs_messages(self):
        def words(pattern, kind, text):
            found = re.search(pattern, self.problems(kind, text))
            self.assertTrue(found, text)
            return set(found[1].strip().split(", "))

        for kind, pattern, text in (("sweep", r"expected a section: ([\w, ]+)", BASE + "gird: 1\n"),
                                    ("task", r"expected one of ([\w, ]+)", MINE + "fils: 1\n"),
                                    ("report", r"\(known: ([\w, ]+)\)", REPORT + "abuot: 1\n")):
            self.assertEqual(set(self.schema(kind).schema["properties"]), words(pattern, kind, text))
        report = self.schema("report").schema
        table, figure, ranks = (report["$defs"][name]["properties"] for name in ("table", "figure", "ranks"))
        for found, text in ((ranks, RANKS.replace("}]}", "}], z: 1}")),
                            (table, REPORT.replace("}]}", "}], z: 1}")), (figure, FIGURE.replace("y: {}", "y: {}, z: 1")),
                            (table["rows"]["items"]["properties"], REPORT.replace("key: a", "key: a, z: 1")),
                            (table["columns"]["items"]["properties"], REPORT.replace("key: b", "key: b, z: 1")),
                            (table["cells"]["properties"], REPORT.replace("}]}", "}], cells: {z: 1}}")),
                            (figure["x"]["properties"], FIGURE.replace("value: step", "value: step, z: 1")),
                            (figure["y"]["properties"], FIGURE.replace("y: {}", "y: {z: 1}")),
                            (figure["series"]["items"]["properties"], FIGURE.replace("key: a", "key: a, z: 1"))):
            self.assertEqual(set(found), words(r"\(known: ([\w, ]+)\)", "report", text))
        fields = self.petlab("help", "fields").out
        for name in self.schema("sweep").schema["$defs"]["settings"]["properties"]:
            if "." in name and name != "resources.gpus":  # which is no word of a question, as priority
                self.assertIn(name.replace(".", "_"), fields)

    def test_files_with_a_random_change_are_judged_alike(self):
        """Random changes of structure: values of another kind, and unknown and missing keys."""
        whole = yaml.load(BASE + """about: all of it
variants:
  a: {module.share: true, module: {mask: learned, bottleneck: 8}}
  b: {module.bottleneck: {match_storage_of: a}, user: {k: 1}, user.l: x, priority: 3, resources: {gpus: 2}}
zip: [{seed: [1, 2], training.epochs: [3, 4]}]
grid: {training: {batch_size: [4, 8]}, data.max_tokens: 8..9}
when: [{if: {seed: [1]}, set: {training.warmup_ratio: 0.5}}]
exclude: [{variant: b, seed: 1}]
""", Loader)
        beyond = re.compile("expected the name of a variant|values of|nothing, expected the name of a|twice|"
                            "expected the name of a task|config.json|rules that leave|cannot be read|"
                            "is in none of the folders|expected a divisor|no trial")
        validator, draw = self.schema("sweep"), random.Random(7)
        self.assertTrue(validator.is_valid(whole))
        self.assertEqual(self.problems("sweep", yaml.safe_dump(whole)), "")
        refused = 0
        for _ in range(150):
            content = copy.deepcopy(whole)
            places = [(content, key) for key in content]
            for node, key in places:  # grows in the loop
                inner = node[key]
                places += [(inner, inner_key) for inner_key in inner] if isinstance(inner, dict) else \
                    [(inner, at) for at in range(len(inner))] if isinstance(inner, list) else []
            node, key = draw.choice(places)
            if draw.random() < 0.2 and isinstance(node, dict):
                node[draw.choice(["unknown", "training.unknown", "if"])] = node.pop(key)
            else:
                node[key] = draw.choice([7, -7, 0.5, "text", True, [], {}, [1], ["text"], {"seed": 1}, [{}], [[1]]])
            text = yaml.safe_dump(content, sort_keys=False)
            problem, valid = self.problems("sweep", text), validator.is_valid(content)
            if not problem:
                self.assertTrue(valid, text)
            elif valid:
                self.assertRegex(problem, beyond, text)
            else:
                refused += 1
        self.assertGreater(refused, 50)

    def test_a_starter_sweep_points_editors_to_a_schema_next_to_it(self):
        done = self.petlab("init", "new/first.yaml", "--backbone", "./tiny", "--task", "films.yaml")
        self.assertNotEqual(done.code, 0)  # the folder does not exist and is not created
        self.assertFalse((self.root / "new").exists())
        done = self.petlab("init", "first.yaml", "--backbone", "./tiny", "--task", "films.yaml")
        self.assertEqual(done.code, 0, done)
        line = (self.root / "first.yaml").read_text().splitlines()[0]
        self.assertEqual(line, "# yaml-language-server: $schema=sweep.schema.json")
        schema = (self.root / "sweep.schema.json").read_text()
        self.assertEqual(schema, self.petlab("schema", "sweep").out)
        content = yaml.load((self.root / "first.yaml").read_text(), Loader)
        self.assertTrue(jsonschema.Draft202012Validator(json.loads(schema)).is_valid(content))
        for kind in ("sweep", "task", "report"):
            done = self.petlab("schema", kind, "--output", "other.json")
            self.assertEqual((done.code, done.out, done.err), (0, "", ""))
            self.assertEqual((self.root / "other.json").read_text(), self.petlab("schema", kind).out)


if __name__ == "__main__":
    main()
