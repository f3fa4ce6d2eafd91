#!/usr/bin/env python3
"""Times trials as HyperQueue's tasks, for bench/slurm.py: a process for each, with a worker of one core for each slot.

usage: slurm_hyperqueue.py SLOTS TRIALS SECONDS LOAD; needs `pip install hyperqueue`. Its package has no program that Slurm's
jobs could run, so its workers run on this machine, without Slurm's delays. Prints the seconds.
"""
import sys
import tempfile
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

slots, trials, seconds, load = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
with tempfile.TemporaryDirectory() as folder, LocalCluster(folder) as cluster:
    for _ in range(slots):
        cluster.start_worker(WorkerConfig(cores=1))
    client = cluster.client()
    began = time.monotonic()
    job = Job(default_workdir=folder)
    for _ in range(trials):
        job.program([sys.executable, "-c", f"import time; time.sleep({load}); time.sleep({seconds})"], stdout=None, stderr=None)
    assert client.wait_for_jobs([client.submit(job)])
    print(time.monotonic() - began)
