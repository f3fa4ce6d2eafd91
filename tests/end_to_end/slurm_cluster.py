"""A temporary Slurm cluster: munged, slurmctld and one slurmd for each of several virtual nodes.

It runs in a temporary folder as the current user, until stop(). It needs Debian's packages slurmctld,
slurmd, slurm-client and munge (scripts/setup.sh --dev), but no services.
"""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# Any character devices, which exist in containers, too.
GPUS = ["null", "zero", "full", "random"]
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol"]
# Daemons are in sbin, which may not be on PATH.
SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin"


def missing_programs():
    return [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """A cluster of `nodes` with `cpus` each, for any number of real cores, and job arrays of at most `array` tasks.

    Each node has the devices GPUS as its GPUs.
    """

    def __init__(self, nodes=3, cpus=8, array=100):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="petlab-slurm-"))
        os.chmod(self.folder, 0o755)
        self.nodes = [f"n{number + 1}" for number in range(nodes)]
        self.daemons = {}
        ports = free_ports(nodes + 1)
        host = socket.gethostname().split(".")[0]
        user = getpass.getuser()
        node_lines = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} "
            f"RealMemory=1000 Gres=gpu:{len(GPUS)} State=UNKNOWN" for name, port in zip(self.nodes, ports[1:]))
        for name in ["state", *[f"spool-{node}" for node in self.nodes]]:
            (self.folder / name).mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        os.chmod(self.folder / "munge.key", 0o600)
        at = self.folder
        (at / "gres.conf").write_text("".join(f"Name=gpu File=/dev/{name}\n" for name in GPUS))
        self.configuration = at / "slurm.conf"
        self.configuration.write_text(f"""ClusterName=petlab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool-%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
MaxArraySize={array}
MaxJobCount=5000
KillWait=5
MessageTimeout=4
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{node_lines}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=main Nodes=ALL Default=YES PriorityTier=5 MaxTime=INFINITE State=UP
PartitionName=low Nodes=ALL PriorityTier=1 MaxTime=INFINITE State=UP
""")
        try:
            self.start("munged", "--foreground", "--force", f"--socket={at}/munge.socket",
                       f"--key-file={at}/munge.key", f"--pid-file={at}/munged.pid",
                       f"--log-file={at}/munged.log", f"--seed-file={at}/munged.seed")
            self.wait_for("munged", lambda: (at / "munge.socket").exists())
            self.start_controller()
            for node in self.nodes:
                self.start("slurmd", "-D", "-N", node, name=node)
            self.wait_for("idle nodes", lambda: self.idle() == len(self.nodes))
        except BaseException:
            self.stop()
            raise

    def environment(self):
        return {"SLURM_CONF": str(self.configuration), "PATH": SEARCHED}

    def start(self, program, *words, name=None):
        path = shutil.which(program, path=SEARCHED)
        with open(self.folder / f"{name or program}.out", "ab") as out:
            self.daemons[name or program] = subprocess.Popen(
                [path, *words], env=os.environ | self.environment(), stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True)

    def start_controller(self):
        self.start("slurmctld", "-D")

    def stop_daemon(self, name):
        process = self.daemons.pop(name)
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def idle(self):
        found = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%T", check=False)
        return found.stdout.split().count("idle")

    def wait_for(self, what, condition, timeout=40):
        deadline = time.monotonic() + timeout
        while not condition():
            dead = [name for name, process in self.daemons.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(f"no {what}; dead: {dead}\n{self.logs()}")
            time.sleep(0.05)

    def logs(self):
        queue = self.run("squeue", "-r", "-a", "-t", "all", check=False).stdout
        return queue + "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}"
                         for file in sorted(self.folder.glob("*"))
                         if file.suffix in (".log", ".out"))

    def run(self, *words, check=True):
        done = subprocess.run(list(map(str, words)), env=os.environ | self.environment(),
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"{words}: exit code {done.returncode}: {done.stderr}")
        return done

    def jobs(self, *states):
        """The (id, state) of each job. Tasks of arrays are separate."""
        words = ["squeue", "-h", "-r", "-o", "%i %T"]
        if states:
            words += ["-t", ",".join(states)]
        return [tuple(line.split()) for line in self.run(*words).stdout.splitlines()]

    def stop(self):
        if "slurmctld" in self.daemons:
            self.run("scancel", "-u", getpass.getuser(), check=False)
        for name in sorted(self.daemons, key=lambda name: name == "munged"):
            self.stop_daemon(name)
        for pid in self.leftovers():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def leftovers(self, program=None):
        """Pids of this cluster's processes, by the configuration's path in their environment: all, or of a program."""
        mark = f"SLURM_CONF={self.configuration}".encode()
        pids = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                ours = mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid()
                if ours and (program is None or os.readlink(entry / "exe") == program):
                    pids.append(int(entry.name))
            except OSError:
                pass
        return pids
