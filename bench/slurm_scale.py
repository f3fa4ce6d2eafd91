#!/usr/bin/env python3
"""Measures one `petlab run --launcher slurm` that fills a simulated cluster of 100 nodes with 8 GPUs each.

usage: bench/slurm_scale.py FOLDER_OF_PROGRAMS [--nodes 100] [--gpus 8] [--trials 100000] [--seconds 20] [--spread 0.1]
                            [--reports 2] [--inotify] [--scheduling 0.5] [--squeue 0] [--latency 0]
                            [--stop-early RULE] [--kill-at N] [--folder DIR] [--keep]

--seconds N   mean duration of a trial; each lasts N times 1 - spread to 1 + spread
--reports N   progress events of a trial, each with a validation metric
--inotify     let the kernel notify petlab of new events. Without it, petlab looks for them each second, as on a network
              file system, where the kernel does not see what other hosts write
--scheduling N
              seconds from sbatch, or the end of a job, until Slurm gives free slots to waiting jobs
--squeue N    seconds that squeue takes; its answer is this old
--latency MS  each open, mkdir, rename and unlink of petlab takes this much longer, as on a network file system (uses strace)
--stop-early RULE
              the sweep's rule, such as {rule: median}. A trial that is stopped takes its job with it
--kill-at N   kill petlab with SIGKILL once N trials have ended, and start it again
--folder DIR  a folder on the disk under test (default: the current one)
--keep        keep the run's files

Slurm's programs are scripts in a temporary folder at the head of PATH. This process plays Slurm and all nodes: for each
task it does what the job's script does (kScript in orchestrator/slurm/submission.cpp), at the script's pace, and writes
the events of a worker whose trials only take time. It starts no process for a job or a trial. It syncs nothing, since a
cluster's nodes do not share the orchestrator's disk.

Prints one JSON line. Times are in seconds:

trials_per_second        from the start of petlab until its end; `ideal_per_second` if no slot was ever idle
steady_per_second        while all slots were busy
full_after               until all slots ran a job
processor_seconds        petlab's own, and milliseconds for each trial: of all, of the second fifth and of the fourth
commands                 Slurm's programs that petlab called, and the processor time of these scripts
memory_mib               petlab's peak memory
files                    inodes in the runs folder at the end, for each trial and per second
answer_ms                from a worker's `finished` until petlab has appended another attempt to its inbox: median,
                         99 % and longest, without the end of the sweep; null if it has too few trials. No turn of
                         petlab's loop was longer than the longest
idle_ms                  how long a worker had nothing to do between two trials
first_attempt_ms         from a job's `began` until it got its first attempt
restart                  seconds after the kill until the last job was adopted, a new job began its first trial, and all
                         slots had new jobs
simulator_seconds        processor time of this process, which has to share the cores with petlab
"""
import argparse
import collections
import heapq
import json
import os
import pathlib
import random
import resource
import selectors
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

# A worker that declares what it needs, so that trials have neither backbone nor data.
DESCRIPTION = {"name": "timed", "version": "1", "protocol": 1, "numerics": "1", "devices": ["cpu"],
               "catalog": {"version": 1, "backbones": [], "uses": [], "kinds": {"nothing": {"help": "trains nothing"}},
                           "metrics": {"accuracy": {"better": "higher"}},
                           "tasks": {"waiting": {"metrics": ["accuracy"], "select_by": ["accuracy"]}}}}
PROVENANCE = {"python": "3.11.2", "packages": {"torch": "2.5.1", "transformers": "4.46.3", "numpy": "2.1.3"}}
SWEEP = """sweep: scale
base: {{task: waiting, module.kind: nothing}}
grid: {{seed: [{seeds}]}}
{more}"""
CONFIG = """Configuration data as of 2026-01-01T00:00:00
MaxArraySize            = 1001
MaxJobCount             = 100000
SLURM_VERSION           = 22.05.8
"""
# squeue is called often, so it only prints what this process has written. The number of lines counts the calls.
SQUEUE = """#!/bin/sh
echo >>"{folder}/squeue.calls"
cat "{folder}/queue"
exec sleep {pause}
"""
OTHERS = """#!{python} -SE
import socket
import sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    line.sendall("\\0".join([{name!r}, *sys.argv[1:]]).encode())
    line.shutdown(socket.SHUT_WR)
    code, _, text = line.makefile().read().partition("\\n")
(sys.stderr if int(code) else sys.stdout).write(text)
sys.exit(int(code))
"""
PAUSES = {0.05: 0.1, 0.1: 0.2, 0.2: 0.5, 0.5: 1.0, 1.0: 1.0}  # of the job's script between two looks at its inbox
QUEUE_AGE = 1.0  # how late squeue may list an end
RECORD_KEPT = 300  # MinJobAge: how long squeue lists a job after its end
IDLE = 120  # --slurm-idle


class Task:
    """A task of an array: a job with one worker."""

    def __init__(self, cluster, number, name, folder, index):
        self.cluster, self.name, self.number, self.id = cluster, name, number, f"{number}_{index}"
        self.base = f"{folder}/{index}"
        self.inbox = self.base + ".inbox"
        self.state, self.node = "PENDING", ""
        self.exit_code = 0
        self.read = 0  # bytes of the inbox
        self.pause = 0.05
        self.fed = False  # no attempt follows
        self.line = collections.deque()  # attempts given and not begun
        self.attempt = ""  # that runs
        self.idle_since = self.quiet_since = 0.0
        self.unanswered = collections.deque()  # when trials ended for which no attempt followed yet

    def note(self, kind, more="", flags=os.O_APPEND):
        line = (f'{{"v":1,"type":"{kind}","time":{int(time.time())},"job":"{self.id}","restarts":0,"host":"{self.node}"'
                f'{more}}}\n')
        put(self.base + ".jsonl", line, flags)

    def place(self, node):
        self.state, self.node = "RUNNING", node

    def begin(self):
        try:
            self.note("began", flags=os.O_EXCL)
            put(self.inbox, "")
            put(self.base + ".out", "")
        except (FileExistsError, FileNotFoundError):  # withdrawn, or the submission is gone
            return self.end("COMPLETED")
        self.idle_since = self.quiet_since = time.time()
        self.cluster.later(self.pause, self.look)

    def look(self):
        """What the script's function `feed` does until its next pause."""
        if self.state != "RUNNING" or self.fed:
            return
        try:
            status = os.stat(self.inbox)
        except FileNotFoundError:
            return self.close()
        now = time.time()
        if status.st_size > self.read:
            self.take(status.st_mtime)
            if self.fed:
                return
            self.pause, self.quiet_since = 0.05, now
        elif now - self.quiet_since >= IDLE:
            if not self.attempt:
                self.note("idle")
                return self.close()
            self.quiet_since = now
        self.cluster.later(self.pause, self.look)
        self.pause = PAUSES[self.pause]

    def take(self, appended):
        with open(self.inbox, "rb") as file:
            file.seek(self.read)
            new = file.read()
        lines = new[:new.rfind(b"\n") + 1]
        self.read += len(lines)
        for line in lines.decode().splitlines():
            if line == "end":
                self.cluster.adopted(self, appended)
                return self.close()
            self.cluster.given += 1
            if self.unanswered:
                self.cluster.answered(appended - self.unanswered.popleft())
            self.line.append(line)
        if not self.attempt:
            self.train_next()

    def train_next(self):
        """Begins the next trial in line, whose events only depend on the time."""
        now = time.time()
        if not self.line:
            self.attempt, self.idle_since = "", now
            if self.fed:
                self.cluster.later(0.1, self.end)
            return
        self.cluster.began(self, now)
        self.attempt = self.line.popleft()
        put(self.attempt + "/log.txt", "the trial begins\n")
        put(self.attempt + "/events.jsonl",
            event(0, now, "started", pid=1, worker="timed", version="1", numerics={"version": "1"}, provenance=PROVENANCE))
        seconds = given.seconds * self.cluster.random.uniform(1 - given.spread, 1 + given.spread)
        for report in range(given.reports):
            self.cluster.later(seconds * (report + 1) / (given.reports + 1), self.report, self.attempt, report)
        self.cluster.later(seconds, self.finish, self.attempt)

    def report(self, attempt, report):
        if self.state != "RUNNING":
            return
        now, step = time.time(), 100 * (report + 1)
        put(attempt + "/events.jsonl",
            event(2 * report + 1, now, "progress", step=step, of=100 * (given.reports + 1), loss=1 / step) +
            event(2 * report + 2, now, "metric", step=step, split="validation", task="waiting", name="accuracy",
                  value=self.cluster.random.random()))

    def finish(self, attempt):
        if self.state != "RUNNING":
            return
        now, seq, step = time.time(), 2 * given.reports + 1, 100 * (given.reports + 1)
        put(attempt + "/events.jsonl",
            event(seq, now, "metric", step=step, split="test", task="waiting", name="accuracy",
                  value=self.cluster.random.random()) +
            event(seq + 1, now, "finished", step=step, peak_memory_mib=1000, train_seconds=given.seconds))
        self.cluster.finished(self, now)
        self.train_next()

    def close(self):
        """The script's function `feed` has ended: the worker ends after the trials that it has."""
        self.fed = True
        if not self.attempt:
            self.cluster.later(0.1, self.end)

    def end(self, state="COMPLETED", code=0):
        if self.state in ("PENDING", "RUNNING"):
            if self.state == "RUNNING":
                try:
                    self.note("ended", f',"exit_code":{code}')
                except FileNotFoundError:
                    pass
            self.state, self.exit_code = state, code
            self.cluster.ended(self)

    def row(self):
        reason = "Resources" if self.state == "PENDING" else "None"
        return f"{self.id}|{self.state}|{self.node}|{reason}|1-00:00:00|{self.name}\n"


class Cluster:
    """Slurm and its nodes. All of it happens in run(), in the order of the heap."""

    def __init__(self, folder):
        self.folder = folder
        self.random = random.Random(1)
        self.tasks = {}  # by id
        self.listed = {}  # tasks in squeue's answer
        self.waiting = collections.deque()
        self.free = [f"n{node}" for _ in range(given.gpus) for node in range(given.nodes, 0, -1)]
        self.heap, self.count = [], 0
        self.calls = collections.Counter()
        self.arrays = 0
        self.changed = False  # since squeue's answer was written
        self.given = 0
        self.begun, self.finish_times, self.answers, self.idle, self.first = set(), [], [], [], []
        self.full_at = None
        self.killed_at, self.arrays_before, self.restart = None, 0, {}
        (folder / "bin").mkdir()
        (folder / "squeue.calls").touch()
        self.socket = socket.socket(socket.AF_UNIX)
        address = str(folder / "slurm")
        self.socket.bind(address)
        self.socket.listen(100)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.socket, selectors.EVENT_READ)
        program(folder / "bin/squeue", SQUEUE.format(folder=folder, pause=given.squeue))
        for name in ("sbatch", "scancel", "scontrol", "sacct"):
            program(folder / "bin" / name, OTHERS.format(python=sys.executable, name=name, address=address))
        self.write_queue()
        self.note_ends()

    def later(self, seconds, what, *words):
        self.count += 1
        heapq.heappush(self.heap, (time.monotonic() + seconds, self.count, what, words))

    def run(self, is_over):
        while not is_over():
            now = time.monotonic()
            while self.heap and self.heap[0][0] <= now:
                _, _, what, words = heapq.heappop(self.heap)
                what(*words)
            # A pause of a few milliseconds joins the jobs of this time in one turn.
            wait = max(0.005, self.heap[0][0] - time.monotonic()) if self.heap else 1
            if self.selector.select(wait):
                self.answer()

    def answer(self):
        with self.socket.accept()[0] as line:
            name, *words = line.makefile().read().split("\0")
            self.calls[name] += 1
            code, text = getattr(self, name)(words)
            line.sendall(f"{code}\n{text}".encode())

    def sbatch(self, words):
        options = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
        self.arrays += 1
        for index in range(int(options["array"].split("-")[1]) + 1):
            task = Task(self, self.arrays, options["job-name"], options["chdir"], index)
            self.tasks[task.id] = self.listed[task.id] = task
            self.waiting.append(task)
        self.write_queue()
        self.later(given.scheduling, self.schedule)
        return 0, f"{self.arrays}\n"

    def scancel(self, words):
        options = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
        meant = ([task for task in self.listed.values() if task.name == options["name"]] if "name" in options
                 else [self.tasks[word] for word in words if word in self.tasks])
        for task in meant:
            if task.state == "PENDING":
                task.end("CANCELLED")
            elif task.state == "RUNNING" and "state" not in options:
                signalled = options.get("signal")
                task.end("FAILED" if signalled else "CANCELLED", {"TERM": 3, "KILL": 137}.get(signalled, 143))
        return 0, ""

    def scontrol(self, words):
        if words[:2] == ["show", "config"]:
            return 0, CONFIG
        task = self.tasks.get(words[-1])
        if task is None or "show" not in words:
            return 1, "slurm_load_jobs error: Invalid job id specified\n"
        return 0, f"JobId={task.id} JobState={task.state} ExitCode={task.exit_code}:0\n"

    def sacct(self, _words):
        return 1, "Slurm accounting storage is disabled\n"

    def schedule(self):
        placed = []
        while self.waiting and self.free:
            task = self.waiting.popleft()
            if task.state == "PENDING":
                task.place(self.free.pop())
                placed.append(task)
        if placed:
            self.write_queue()  # Slurm knows of a start before the job does
        for task in placed:
            task.begin()
        if self.full_at is None and not self.free:
            self.full_at = time.time()
        if self.killed_at and not self.free and "full" not in self.restart and all(
                task.number > self.arrays_before for task in self.listed.values() if task.state == "RUNNING"):
            self.restart["full"] = round(time.time() - self.killed_at, 1)

    def ended(self, task):
        self.changed = True
        if task.node:
            self.free.append(task.node)
            self.later(given.scheduling, self.schedule)
        self.later(RECORD_KEPT, self.forget, task)

    def forget(self, task):
        self.changed = True
        del self.listed[task.id]

    def write_queue(self):
        self.changed = False
        new = self.folder / "queue.new"
        new.write_text("".join(task.row() for task in self.listed.values()))
        new.rename(self.folder / "queue")

    def note_ends(self):
        if self.changed:
            self.write_queue()
        self.later(QUEUE_AGE, self.note_ends)

    def began(self, task, now):
        if task in self.begun:
            self.idle.append(0.0 if task.attempt else now - task.idle_since)
        else:
            self.begun.add(task)
            self.first.append(now - task.idle_since)
            if self.killed_at and task.number > self.arrays_before:
                self.restart.setdefault("first_attempt", round(now - self.killed_at, 1))

    def killed(self):
        self.killed_at, self.arrays_before = time.time(), self.arrays

    def adopted(self, task, closed):
        if self.killed_at and task.number <= self.arrays_before:
            self.restart["adopted"] = round(max(self.restart.get("adopted", 0), closed - self.killed_at), 1)

    def finished(self, task, now):
        self.finish_times.append(now)
        # At the end there are fewer trials than places in line, so not every trial is followed by another.
        if self.given < given.trials - 3 * given.nodes * given.gpus:
            task.unanswered.append(now)
        else:
            task.unanswered.clear()

    def steady_per_second(self, slots):
        """While all slots were busy. Trials that began together end together, so only whole durations count."""
        ends = self.finish_times[:-2 * slots]
        whole = int((ends[-1] - self.full_at) / given.seconds) * given.seconds if ends and self.full_at else 0
        if whole <= 0:
            return None
        return round(sum(self.full_at < end <= self.full_at + whole for end in ends) / whole, 2)

    def answered(self, seconds):
        # A file's time is that of the kernel's last tick.
        self.answers.append(max(0.0, seconds))


def program(file, text):
    file.write_text(text)
    file.chmod(0o755)


def put(file, text, flags=os.O_APPEND):
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o644)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def event(seq, now, kind, **fields):
    return json.dumps({"v": 1, "seq": seq, "time": now, "type": kind, **fields}, separators=(",", ":")) + "\n"


def spread_of(seconds):
    """Median, 99 % and longest, in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    places = (len(ordered) // 2, len(ordered) * 99 // 100, -1)
    return [round(1000 * ordered[place], 1) for place in places]


def inodes(folder):
    count, folders = 1, [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return count


class Watched:
    """Petlab's process, with its processor seconds over time. Those of a zombie are still in /proc."""

    def __init__(self, words, folder, environment):
        self.began = time.time()
        self.words, self.folder, self.environment = words, folder, environment
        self.samples = []
        self.looked = self.own = self.of_programs = self.memory_mib = 0
        self.start()

    def start(self):
        with open(self.folder / "said", "ab") as said:
            self.process = subprocess.Popen(self.words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                            stdout=said, stderr=said)

    def processor_seconds(self):
        """Its own, and those of the programs that it called."""
        after_name = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        user, system, *of_children = (int(field) / os.sysconf("SC_CLK_TCK") for field in after_name[11:15])
        return user + system, sum(of_children)

    def sample(self, finished):
        if time.monotonic() - self.looked < 1:
            return False
        self.looked = time.monotonic()
        self.samples.append((finished, self.own + self.processor_seconds()[0]))
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ms_per_trial(self, first, last):
        """Between two fractions of all trials."""
        part = [one for one in self.samples if first * given.trials <= one[0] <= last * given.trials]
        if len(part) < 2 or part[0][0] == part[-1][0]:
            return None
        return round(1000 * (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0]), 2)

    def end(self):
        own, of_programs = self.processor_seconds()
        self.own += own
        self.of_programs += of_programs
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.memory_mib = max(self.memory_mib, round(used.ru_maxrss / 1024))

    def kill(self):
        self.process.kill()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        self.end()
        self.start()


def measure(folder):
    program(folder / "worker", f"#!/bin/sh\necho '{json.dumps(DESCRIPTION)}'\n")
    # A range has at most 10,000 numbers.
    seeds = ", ".join(f"{first}..{min(first + 9999, given.trials)}" for first in range(1, given.trials + 1, 10_000))
    (folder / "sweep.yaml").write_text(SWEEP.format(
        seeds=seeds, more=f"stop_early: {given.stop_early}\n" if given.stop_early else ""))
    (folder / "slurm").mkdir()
    cluster = Cluster(folder / "slurm")
    slots = given.nodes * given.gpus
    words = [pathlib.Path(given.programs).resolve() / "petlab", "run", "sweep.yaml", "--launcher", "slurm", "--slots", slots,
             "--slurm-gpus", 1, "--worker", folder / "worker", "--db", "sweep.db", "--runs", "sweep.runs"]
    if not given.inotify:
        words = ["unshare", "--user", "--map-root-user", "sh", "-c",
                 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"', "sh", *words]
    if given.latency:  # -D: petlab stays the child of this process
        calls = "open,openat,mkdir,rename,unlink"
        words = ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={calls}",
                 "-e", f"inject={calls}:delay_exit={round(1000 * given.latency)}us", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PETLAB_") and name != "TERM"}
    environment |= {"PATH": f"{folder}/slurm/bin:{os.environ['PATH']}", "PETLAB_SLOTS": str(folder / "slots"),
                    "PETLAB_HOME": str(folder / "home"), "PETLAB_DATA": str(folder / "data")}
    petlab = Watched([str(word) for word in words], folder, environment)
    try:
        if given.kill_at:
            cluster.run(lambda: len(cluster.finish_times) >= given.kill_at or petlab.sample(len(cluster.finish_times)))
            cluster.killed()
            petlab.kill()
        cluster.run(lambda: petlab.sample(len(cluster.finish_times)))
    except BaseException:
        petlab.process.kill()
        petlab.process.wait()
        raise
    wall = time.time() - petlab.began
    petlab.end()
    said = (folder / "said").read_text(errors="replace")
    if petlab.process.returncode != 0:
        sys.exit(f"petlab ended with {petlab.process.returncode}: {said[-4000:]}")
    with sqlite3.connect(folder / "sweep.db") as database:
        done, = database.execute("SELECT count(*) FROM trials WHERE result_attempt IS NOT NULL").fetchone()
        stopped, = database.execute("SELECT count(*) FROM trials JOIN early_stops ON trial = key "
                                    "WHERE result_attempt IS NULL").fetchone()
    if done + stopped != given.trials:
        sys.exit(f"of {given.trials} trials, the database has {done} finished and {stopped} stopped: {said[-4000:]}")
    files = inodes(folder / "sweep.runs")
    calls = {"squeue": (folder / "slurm/squeue.calls").stat().st_size, **cluster.calls}
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "slots": slots, "trials": given.trials, "seconds_a_trial": given.seconds, "inotify": given.inotify,
        "latency_ms": given.latency,
        "seconds": round(wall, 1), "trials_per_second": round(given.trials / wall, 2),
        "ideal_per_second": round(slots / given.seconds, 2),
        "steady_per_second": cluster.steady_per_second(slots),
        "full_after": round(cluster.full_at - petlab.began, 1) if cluster.full_at else None,
        "processor_seconds": {"petlab": round(petlab.own, 1), "share_of_a_core": round(petlab.own / wall, 3),
                              "ms_a_trial": round(1000 * petlab.own / given.trials, 2),
                              "ms_a_trial_early": petlab.ms_per_trial(0.2, 0.4), "ms_a_trial_late": petlab.ms_per_trial(0.6, 0.8)},
        "commands": {**calls, "processor_seconds": round(petlab.of_programs, 1)}, "memory_mib": petlab.memory_mib,
        "files": {"count": files, "a_trial": round(files / given.trials, 2), "per_second": round(files / wall, 1)},
        "answer_ms": spread_of(cluster.answers), "idle_ms": spread_of(cluster.idle),
        "first_attempt_ms": spread_of(cluster.first), **({"stopped_early": stopped} if given.stop_early else {}),
        **({"restart": cluster.restart} if given.kill_at else {}),
        "simulator_seconds": round(used.ru_utime + used.ru_stime, 1)}


parser = argparse.ArgumentParser()
parser.add_argument("programs")
parser.add_argument("--nodes", type=int, default=100)
parser.add_argument("--gpus", type=int, default=8)
parser.add_argument("--trials", type=int, default=100_000)
parser.add_argument("--seconds", type=float, default=20)
parser.add_argument("--spread", type=float, default=0.1)
parser.add_argument("--reports", type=int, default=2)
parser.add_argument("--inotify", action="store_true")
parser.add_argument("--scheduling", type=float, default=0.5)
parser.add_argument("--squeue", type=float, default=0)
parser.add_argument("--latency", type=float, default=0)
parser.add_argument("--stop-early", default="")
parser.add_argument("--kill-at", type=int, default=0)
parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.cwd())
parser.add_argument("--keep", action="store_true")

if __name__ == "__main__":
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that petlab ends, too
    work = pathlib.Path(tempfile.mkdtemp(prefix="petlab-slurm-scale-", dir=given.folder)).resolve()
    try:
        print(json.dumps(measure(work)), flush=True)
    finally:
        if not given.keep:
            shutil.rmtree(work)
