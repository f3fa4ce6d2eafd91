"""A folder with a tiny backbone, task and sweep, for tests of the programs.

Training one trial takes a tenth of a second. Nothing outside the folder is read or written: PETLAB_HOME,
PETLAB_DATA and PETLAB_SLOTS are inside it.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
PETLAB = PROGRAMS / "petlab"
TRAINER = PROGRAMS / "petlab-trainer"

WORDS = ["good", "bad", "film", "plot", "is", "the", "very", "not", "a"]
CONFIG = {"model_type": "bert", "vocab_size": 5 + len(WORDS), "hidden_size": 16,
          "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
          "max_position_embeddings": 16, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
          "hidden_act": "gelu", "pad_token_id": 0, "hidden_dropout_prob": 0.1,
          "attention_probs_dropout_prob": 0.1}
TASK = """task: films
source: written by the test
files: {train: films-train.tsv, validation: films-dev.tsv, test: films-test.tsv}
columns: {text: sentence, label: label}
labels: [poor, fine]
metrics: [accuracy, f1]
select_by: [accuracy]
"""
# Variables of every program that a test starts, given by settings.py.
SETTING = json.loads(os.environ.get("PETLAB_TEST_SETTING", "{}"))
# The same task with a score instead of the label.
GRADES = TASK.replace("films", "grades").replace("label: label", "score: grade").replace(
    "labels: [poor, fine]\n", "").replace("[accuracy, f1]", "[pearson, spearman]").replace(
    "[accuracy]", "[pearson]")
SWEEP = """sweep: tiny
base:
  backbone: ./tiny
  task: films.yaml
  module.kind: adapter
  module.bottleneck: 4
  training: {epochs: 3, batch_size: 12, learning_rate: 5e-3, mask_learning_rate: 5e-2}
"""
VARIANTS = """variants:
  vanilla: {module.share: false, module.mask: none}
  propetl: {module.share: true, module.mask: learned, module.sparsity_ratio: 0.5}
grid:
  seed: [1, 2]
"""


def bert_shapes(config):
    """The name and shape of each tensor of a BERT encoder."""
    d, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], d),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d),
              "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], d),
              "embeddings.LayerNorm.weight": (d,), "embeddings.LayerNorm.bias": (d,)}
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        for name, rows, columns in [("attention.self.query", d, d), ("attention.self.key", d, d),
                                    ("attention.self.value", d, d),
                                    ("attention.output.dense", d, d),
                                    ("intermediate.dense", inner, d), ("output.dense", d, inner)]:
            shapes[at + name + ".weight"] = (rows, columns)
            shapes[at + name + ".bias"] = (rows,)
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[at + norm + ".weight"] = shapes[at + norm + ".bias"] = (d,)
    return shapes


def write_safetensors(file, shapes):
    """Writes random normal values. LayerNorm weights are about 1."""
    draw = random.Random(3)
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        begin = len(data)
        data += struct.pack(f"<{count}f", *(draw.gauss(centre, 0.2) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Done:
    """A finished command: exit code, standard output, standard error."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\nstandard output:\n{self.out}\nstandard error:\n{self.err}"


class TinyWorld(unittest.TestCase):
    """Creates a new folder `self.root` for each case."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="petlab-e2e-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        # Processes of an unprivileged user can enter.
        os.chmod(folder, 0o755)
        self.root = pathlib.Path(folder).resolve()
        self.write("tiny/config.json", json.dumps(CONFIG))
        self.write("tiny/vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
                                               + WORDS) + "\n")
        write_safetensors(self.root / "tiny/model.safetensors", bert_shapes(CONFIG))
        self.write("films.yaml", TASK)
        for part, rows in (("train", 40), ("dev", 12), ("test", 8)):
            text = "label\tsentence\n"
            for i in range(rows):
                fine = (i * 7 + rows) % 3 == 0
                rest = "".join(" " + WORDS[(i + 3 * w) % 8] for w in range(i % 5))
                text += f"{'fine' if fine else 'poor'}\tthe film is "
                text += f"{'very good' if fine else 'bad'}{rest}\n"
            self.write(f"films-{part}.tsv", text)
        for name in ("home", "data", "slots"):
            (self.root / name).mkdir()

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def write_grades(self):
        """Writes grades.yaml, a task with scores to predict."""
        self.write("grades.yaml", GRADES)
        for part, rows in (("train", 40), ("dev", 12), ("test", 9)):
            text = "grade\tsentence\n"
            for i in range(rows):
                good = (i * 7 + rows) % 11
                words = ["good"] * good + [WORDS[i % 9]]
                text += f"{good / 4}\tthe film is {' '.join(words)}\n"
            self.write(f"grades-{part}.tsv", text)

    # Additional environment variables of a case. PETLAB_DB is set so that petlab finds no petlab.db above.
    variables: dict[str, str] = {}
    database = "sweep.db"

    def environment(self):
        # Without another petlab's places, and without the terminal from which the tests were started.
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith("PETLAB_") and name != "TERM"}
        return inherited | {"PETLAB_HOME": str(self.root / "home"),
                            "PETLAB_DATA": str(self.root / "data"),
                            "PETLAB_SLOTS": str(self.root / "slots"), "PETLAB_DB": self.database,
                            "LC_ALL": "C.UTF-8"} | SETTING | self.variables

    def start(self, *words, program=PETLAB, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE} | options
        process = subprocess.Popen([str(program), *map(str, words)], cwd=self.root,
                                   env=self.environment(), **options)
        self.addCleanup(self.put_away, process)
        return process

    def put_away(self, process):
        """Ends a process and closes its pipes, even after a failed case."""
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def end(self, process, timeout=120):
        out, err = process.communicate(timeout=timeout)
        # The temporary folder's path differs from run to run.
        text = [part.decode(errors="backslashreplace").replace(str(self.root), "ROOT")
                for part in (out or b"", err or b"")]
        return Done(process.returncode, *text)

    def petlab(self, *words, **options):
        return self.end(self.start(*words, **options))

    def run_sweep(self, *words, slots=2):
        """Runs `petlab run` with a number of slots and hardly any delay before retries."""
        return self.petlab("run", "sweep.yaml", "--slots", slots, "--retry-delay", "10ms", *words)

    def small_disk(self, size):
        """Mounts a small tmpfs, or skips the case if that is not allowed. Its size limits even root."""
        folder = self.root / "disk"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "petlab", folder],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("mounting a small tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        return folder

    def control_group(self, microseconds):
        """Creates a control group with this many microseconds of each 100,000, or skips the case. Returns
        its file for pids."""
        folder = pathlib.Path("/sys/fs/cgroup/cpu") / f"petlab-test-{os.getpid()}"
        try:
            folder.mkdir()
            self.addCleanup(folder.rmdir)
            (folder / "cpu.cfs_period_us").write_text("100000")
            (folder / "cpu.cfs_quota_us").write_text(str(microseconds))
        except OSError as error:
            self.skipTest(f"control groups of version 1 cannot be made here: {error}")
        return folder / "cgroup.procs"

    def fill(self, disk, pages):
        """Fills a disk except for this number of pages. Returns the file that fills it."""
        free = shutil.disk_usage(disk).free - pages * os.sysconf("SC_PAGE_SIZE")
        return self.write(disk / "ballast", b"x" * free)

    def until(self, condition, seconds=30):
        """Waits until the condition's value is true, and returns that value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        self.fail("what was waited for did not come")

    def query(self, sql, database="sweep.db"):
        done = self.petlab("query", sql, "--db", database, "--format", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def attempt_folders(self, runs="sweep.runs"):
        return sorted(path.parent for path in (self.root / runs).glob("*/[0-9]*/trial.json"))

    def events(self, folder):
        """The events of an attempt so far. A line counts once it has its newline."""
        file = folder / "events.jsonl"
        return [json.loads(line) for line in file.read_text().split("\n")[:-1]] \
            if file.exists() else []


def python_with_libraries():
    """Returns the interpreter that has PyTorch and Hugging Face's libraries; exits with 77 without one."""
    there = subprocess.run([pathlib.Path(__file__).resolve().parents[2] / "scripts/library_venv.sh", "--there"],
                           stdout=subprocess.PIPE, text=True)
    if there.returncode != 0:
        print("skipped: Hugging Face's libraries are not installed; scripts/setup.sh --dev installs them")
        sys.exit(77)
    return there.stdout.strip()


def main():
    """Runs the cases of the calling file. Its first argument is the folder of the programs."""
    if not PETLAB.is_file():
        sys.exit(f"{PETLAB}: no such program; usage: {sys.argv[0]} FOLDER_OF_PROGRAMS [CASE...]")
    # A job in the background of a shell script ignores Ctrl-C, which its programs would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
