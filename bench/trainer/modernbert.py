#!/usr/bin/env python3
"""Compares training steps of petlab's ModernBERT with eager PyTorch's (transformers).

usage: modernbert.py TRAINER_BENCH [--layers N] [--lengths 64,128,…] [--batch N] [--steps N] [--rounds N]

Both train on the same lengths with one thread, at ModernBERT-base's width, in alternating rounds. Eager PyTorch pads
each batch to its longest text. Kinds: full fine-tuning, and an adapter in each layer, which petlab shares and masks.
Prints tokens per second of both, text tokens without padding.

Runs in the virtual environment of scripts/library_venv.sh.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "trainer" / "libraries"))
import library_venv  # noqa: E402

library_venv.enter("transformers and torch are")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from transformers import ModernBertConfig, ModernBertModel  # noqa: E402

torch.set_num_threads(1)
WARM = 2


class Adapter(nn.Module):
    def __init__(self, layer, d, size=64):
        super().__init__()
        self.down, self.up = nn.Linear(d, size), nn.Linear(size, d)
        layer.mlp_norm.register_forward_pre_hook(lambda _, given: setattr(self, "x", given[0]))
        layer.mlp.register_forward_hook(lambda _, __, y: y + self.up(torch.relu(self.down(y + self.x))))


def theirs(folder, kind, batches, attention):
    model = ModernBertModel.from_pretrained(folder, attn_implementation=attention).train()
    d = model.config.hidden_size
    head = nn.Sequential(nn.Linear(d, d), nn.Tanh(), nn.Linear(d, 2))
    trained = list(head.parameters())
    if kind == "adapter":
        model.requires_grad_(False)
        trained += [p for layer in model.layers for p in Adapter(layer, d).parameters()]
    else:
        trained += list(model.parameters())
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    tokens = 0
    for number, lengths in enumerate(batches[:1] * WARM + batches):
        if number == WARM:
            begin = time.perf_counter()
        ids = torch.randint(100, 50000, (len(lengths), max(lengths)))
        mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
        optimizer.zero_grad()
        states = model(ids, mask.long()).last_hidden_state
        nn.functional.cross_entropy(head(states[:, 0]), torch.tensor([i % 2 for i in range(len(lengths))])).backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        tokens += sum(lengths) if number >= WARM else 0
    return tokens / (time.perf_counter() - begin)


def ours(program, folder, kind, batches, work):
    file = work / "lengths"
    file.write_text("".join(" ".join(map(str, lengths)) + "\n" for lengths in batches))
    done = subprocess.run([program, "step", "--backbone", folder, "--lengths", file, "--threads", "1", "--warm",
                           str(WARM), "--module", kind], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])["tokens_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--lengths", default="32,128,512")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    drawn = random.Random(7)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        ModernBertModel(ModernBertConfig(num_hidden_layers=options.layers, reference_compile=False)).save_pretrained(work)
        for longest in map(int, options.lengths.split(",")):
            batches = [[drawn.randint(longest // 3, longest) for _ in range(options.batch)] for _ in range(options.steps)]
            for kind in ("adapter", "full_finetuning"):
                rates = {"petlab": [], "eager": [], "sdpa": []}
                for _ in range(options.rounds):
                    rates["petlab"].append(ours(options.program, work, kind, batches, work))
                    for attention in ("eager", "sdpa"):
                        rates[attention].append(theirs(work, kind, batches, attention))
                print(json.dumps({"kind": kind, "longest": longest,
                                  **{arm: round(statistics.median(of)) for arm, of in rates.items()}}), flush=True)


if __name__ == "__main__":
    main()
