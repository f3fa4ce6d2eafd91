#!/usr/bin/env python3
"""Creates stand-ins for the backbones and data sets of sweeps/paper, in a folder for PETLAB_HOME.

usage: world.py FOLDER

A plan reads the shapes of the backbones (config.json), on which storage depends, and the digests of
weights and data. The shapes are therefore real; weights and data have a few bytes and are never
read by a worker.
"""

import json
import pathlib
import sys

BACKBONES: dict[str, dict[str, object]] = {
    "roberta-base": {
        "model_type": "roberta",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
    },
    "t5-base": {
        "model_type": "t5",
        "d_model": 768,
        "num_layers": 12,
        "num_heads": 12,
        "d_kv": 64,
        "d_ff": 3072,
        "vocab_size": 32128,
    },
    "t5-3b": {
        "model_type": "t5",
        "d_model": 1024,
        "num_layers": 24,
        "num_heads": 32,
        "d_kv": 128,
        "d_ff": 16384,
        "vocab_size": 32128,
    },
}
GLUE = ("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE")
TEXTS = ("wmt16-ro-en", "xsum")


def write(file: pathlib.Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def make(home: pathlib.Path) -> None:
    for name, config in BACKBONES.items():
        write(home / "models" / name / "config.json", json.dumps(config, indent=1) + "\n")
        write(home / "models" / name / "model.safetensors", f"weights of {name}\n")
    for folder in GLUE:
        development = "dev_matched" if folder == "MNLI" else "dev"
        for part in ("train", development):
            write(home / f"data/glue/{folder}/{part}.tsv", f"{part} of {folder}\n")
    for folder in TEXTS:
        for part in ("train", "validation", "test"):
            write(home / f"data/{folder}/{part}.jsonl", f"{part} of {folder}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(pathlib.Path(sys.argv[1]))
