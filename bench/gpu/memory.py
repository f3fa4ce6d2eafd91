#!/usr/bin/env python3
"""Compares planned memory with measured memory for trials of RoBERTa-base's shape on a GPU. All texts
have the maximum length. scripts/first_gpu_hour.sh starts it."""
import json
import os
import pathlib
import subprocess
import sys

ROBERTA = {"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
           "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514,
           "type_vocab_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "pad_token_id": 1}
WORDS = "one two three four five six seven eight nine ten".split()


def answer(*command):
    return json.loads(subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                                     check=True, text=True).stdout)


def main():
    programs, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(ROBERTA))
    (folder / "texts.txt").write_text("".join(" ".join(WORDS) + "\n" for _ in range(100)))
    cola = folder / "data/glue/CoLA"
    cola.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 256), ("dev", 64)):
        (cola / f"{name}.tsv").write_text("".join(
            f"made\t{i % 2}\t\t{' '.join(WORDS[(i + j) % 10] for j in range(200))}\n"
            for i in range(lines)))
    backbone = folder / "roberta"
    if not backbone.exists():
        subprocess.run([programs / "petlab-trainer", "init", "--config", folder / "config.json",
                        "--texts", folder / "texts.txt", "--vocabulary", "300", "--out", backbone],
                       check=True, stdout=subprocess.DEVNULL)
    os.environ["PETLAB_DATA"] = str(folder / "data")
    sweep = pathlib.Path(__file__).parent / "memory.yaml"
    own = folder / "memory.yaml"
    own.write_text(sweep.read_text().replace("backbone: BACKBONE", f"backbone: {backbone}"))
    petlab, database = programs / "petlab", folder / "petlab.db"
    subprocess.run([petlab, "run", own, "--db", database, "--device", "gpu", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    taken = {row["trial_id"]: row["mib"] for row in answer(
        petlab, "query", "--db", database, "--format", "json",
        "SELECT t.trial_id AS trial_id, max(a.device_memory_mib) AS mib "
        "FROM attempts a JOIN trials t ON t.key = a.trial GROUP BY 1")}
    planned = answer(petlab, "plan", own, "--db", database, "--memory", "--device", "gpu", "--json")
    print("| variant | compute | planned, MiB | taken, MiB | planned / taken |\n" + "| --- " * 5 + "|")
    for trial in planned["trials"]:
        plan, mib = trial["memory"]["total_mib"], taken[trial["id"]]
        compute = trial["config"]["training"].get("compute", "float32")
        print(f"| {trial['variant']} | {compute} | {plan:.0f} | {mib:.0f} | {plan / mib:.2f} |")


if __name__ == "__main__":
    main()
