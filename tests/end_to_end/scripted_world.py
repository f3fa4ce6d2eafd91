"""Sweeps for the scripted worker of tests/orchestrator, which needs no LibTorch, and injected faults.

A trial's `user` field scripts the worker (tests/orchestrator/scripted_worker.cpp). Faults are rules of
tests/support/fault_shim.cpp.
"""
import fcntl
import json
import pathlib
import signal
import tempfile
import urllib.parse

from tiny_world import PROGRAMS, SWEEP, TinyWorld

WORKER = PROGRAMS / "scripted-worker"
METRICS = "SELECT trial_id, step, split, task, name, value FROM results ORDER BY 1, 2, 3, 4, 5"
# Messages of `petlab run` after the first and the second Ctrl-C.
HEARD = ("finishing the running trials;", "stopping at a checkpoint;")


def faulty(rules):
    """The variables of a program with injected faults."""
    return {"LD_PRELOAD": str(PROGRAMS / "petlab-faults.so"), "PETLAB_TEST_FAULTS": rules,
            # A sanitiser's runtime would insist on being loaded first.
            "ASAN_OPTIONS": "verify_asan_link_order=0"}


class ScriptedWorld(TinyWorld):
    faults = ""

    def environment(self):
        environment = super().environment()
        if self.faults:
            # The folder's name may have blanks.
            faults = self.faults.replace(str(self.root), urllib.parse.quote(str(self.root)))
            rules = [environment.get("PETLAB_TEST_FAULTS", ""), faults]
            environment |= faulty(";".join(filter(None, rules)))
        return environment

    def write_sweep(self, *users, name="sweep.yaml"):
        """One trial for each `user`, a dict; seeds 1, 2, …"""
        rows = [f"  v{seed}: {{seed: {seed}, user: {json.dumps(user)}}}\n"
                for seed, user in enumerate(users, 1)]
        self.write(name, SWEEP.replace("sweep: tiny", "sweep: scripted") + "variants:\n" +
                   "".join(rows))

    def run_words(self, *words, slots=2):
        grace = [] if "--grace" in words else ["--grace", "500ms"]
        return ["run", "sweep.yaml", "--slots", slots, "--retry-delay", "10ms", *grace,
                "--worker", WORKER, *words]

    def run_scripted(self, *words, faults="", slots=2):
        return self.end(self.start_scripted(*words, faults=faults, slots=slots))

    def slots_free(self):
        """Whether all workers have ended, also those of a killed run."""
        for path in (self.root / "slots").iterdir():
            with open(path, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True

    def start_scripted(self, *words, faults="", slots=2, **options):
        self.faults = faults
        # Uses a file so that tests can read messages while the run continues.
        handle, messages = tempfile.mkstemp(dir=self.root, prefix="said-")
        try:
            with open(handle, "wb") as stderr:
                options = {"stderr": stderr} | options
                process = self.start(*self.run_words(*words, slots=slots), **options)
            if options["stderr"] is stderr:
                process.messages = pathlib.Path(messages)
            return process
        finally:
            self.faults = ""

    def end(self, process, timeout=120):
        done = super().end(process, timeout)
        if hasattr(process, "messages"):
            done.err = self.messages(process)
        return done

    def messages(self, process):
        text = process.messages.read_text(errors="backslashreplace")
        return text.replace(str(self.root), "ROOT")

    def outcomes(self):
        rows = self.query("SELECT outcome, count(*) AS n FROM attempts GROUP BY 1 ORDER BY 1")
        return {row["outcome"]: row["n"] for row in rows}

    def wanted(self):
        """Runs the same trials undisturbed and returns their metrics."""
        done = self.run_scripted("--db", "undisturbed.db", "--runs", "undisturbed")
        self.assertEqual(done.code, 0, done)
        return self.query(METRICS, "undisturbed.db")

    def interrupt(self, process, times=1):
        """Sends Ctrl-C `times` times, each after the message about the previous one."""
        for word in [*HEARD, None][:times]:
            before = self.messages(process).count(word) if word else 0
            process.send_signal(signal.SIGINT)
            if word:
                self.until(lambda: self.messages(process).count(word) > before)
