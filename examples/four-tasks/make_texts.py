#!/usr/bin/env python3
"""Writes the texts of four GLUE tasks, from which a vocabulary is trained, and a T5's sizes.

usage: make_texts.py GLUE FOLDER

GLUE holds CoLA/train.tsv, SST-2/train.tsv, MRPC/train.tsv and RTE/train.tsv as GLUE distributes
them. FOLDER gets texts.txt, the sentences and the words that stand around them, and config.json.
"""

import json
import pathlib
import sys

CONFIG = {
    "model_type": "t5",
    "vocab_size": 1,
    "d_model": 128,
    "d_kv": 32,
    "num_heads": 4,
    "d_ff": 512,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "dropout_rate": 0.1,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "feed_forward_proj": "relu",
    "layer_norm_epsilon": 1e-6,
    "tie_word_embeddings": True,
}
# What petlab writes around them, often enough to become tokens.
AROUND = "cola sst2 mrpc rte sentence: sentence1: sentence2: 0 1\n" * 50

if len(sys.argv) != 3:
    sys.exit(__doc__)
glue, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
with open(folder / "texts.txt", "w", encoding="utf-8") as texts:
    for task in ("CoLA", "SST-2", "MRPC", "RTE"):
        with open(glue / task / "train.tsv", encoding="utf-8-sig") as rows:
            for row in rows:
                texts.write(" ".join(row.split("\t")))
    texts.write(AROUND)
(folder / "config.json").write_text(json.dumps(CONFIG) + "\n")
