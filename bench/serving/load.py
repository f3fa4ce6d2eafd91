"""Measures the load described in bench/serving.sh.

    python load.py FOLDER_OF_PROGRAMS FOLDER ROUNDS TRIALS
"""
import asyncio
import json
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time

bin_folder, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
rounds, trials = int(sys.argv[3]), int(sys.argv[4])
PETLAB = str(bin_folder / "petlab")
BROWSER = "gzip, deflate, br, zstd"  # what browsers accept

(work / "backbone").mkdir()
(work / "backbone/config.json").write_text(json.dumps(
    {"model_type": "bert", "vocab_size": 1, "hidden_size": 8, "num_hidden_layers": 1,
     "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8,
     "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
(work / "backbone/model.safetensors").write_text("weights\n")
(work / "backbone/vocab.txt").write_text("[PAD]\n")
(work / "trials.yaml").write_text(
    "sweep: trivial\nbase:\n  backbone: ./backbone\n  task: cola\n  module.kind: adapter\n"
    "grid:\n  module.bottleneck: [1, 2, 3, 4, 5]\n"
    f"  seed: [{', '.join(str(seed) for seed in range(trials // 5))}]\n")


def run(name):
    return [PETLAB, "run", "trials.yaml", "--quiet", "--worker", str(bin_folder / "bench-worker"),
            "--db", f"{name}.db", "--runs", f"{name}.runs"]


def serve(database):
    server = subprocess.Popen([PETLAB, "serve", "--db", database, "--port", "0"], cwd=work,
                              stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
    return server, port


def end(server):
    began = time.perf_counter()
    server.send_signal(signal.SIGINT)
    server.wait()
    return time.perf_counter() - began


async def ask(port, target, encodings):
    """Seconds until the whole answer is there, and its bytes."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {encodings}\r\n"
                 "Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:80]
    return time.perf_counter() - began, len(answer)


async def requests(port, encodings):
    open_pages = []
    for target, count in (("/events", 64), ("/", 20)):
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n"
                         f"Accept-Encoding: {encodings}\r\n\r\n".encode())
            open_pages.append((reader, writer))
    answers = await asyncio.gather(*(ask(port, "/", encodings) for _ in range(200)))
    for _, writer in open_pages:
        writer.close()
    seconds = sorted(one for one, _ in answers)
    return {"requests": len(seconds), "encodings": encodings, "bytes": answers[0][1],
            "median_ms": round(1000 * statistics.median(seconds), 1),
            "slowest_ms": round(1000 * seconds[-1], 1)}


def watch(port, stop):
    """An open page: fetches the changes that the server announces."""
    async def follow():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        updates = 0
        while not stop.is_set():
            try:
                line = await asyncio.wait_for(reader.readline(), 0.2)
            except asyncio.TimeoutError:
                continue
            if line.startswith(b"event: page"):
                await ask(port, "/main", BROWSER)
                updates += 1
        writer.close()
        return updates
    watch.updates += asyncio.run(follow())


def one_run(name, served):
    """Trials per minute, and processor seconds of the server."""
    stop = threading.Event()
    process = subprocess.Popen(run(name), cwd=work)
    began = time.perf_counter()
    server, threads = None, []
    watch.updates = 0
    if served:
        while not (work / f"{name}.db").exists():
            time.sleep(0.005)
        server, port = serve(f"{name}.db")
        threads = [threading.Thread(target=watch, args=(port, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
    assert process.wait() == 0
    seconds = time.perf_counter() - began
    stop.set()
    for thread in threads:
        thread.join()
    told = {"run": name, "served": served, "trials_per_minute": round(60 * trials / seconds)}
    if served:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told["end_ms"] = round(1000 * end(server), 1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told["server_seconds"] = round(after.ru_utime + after.ru_stime - before.ru_utime
                                       - before.ru_stime, 2)
        told["updates"] = watch.updates
    return told


paces = {False: [], True: []}
for number in range(rounds):
    for served in (False, True):
        told = one_run(f"{'served' if served else 'alone'}{number}", served)
        paces[served].append(told["trials_per_minute"])
        print(json.dumps(told), flush=True)
for served, found in paces.items():
    print(json.dumps({"served": served, "trials_per_minute": statistics.median(found),
                      "lowest": min(found), "highest": max(found)}), flush=True)
server, port = serve("alone0.db")
for _ in range(rounds):
    for encodings in (BROWSER, "identity"):
        print(json.dumps(asyncio.run(requests(port, encodings))), flush=True)
print(json.dumps({"end_ms": round(1000 * end(server), 1)}), flush=True)
