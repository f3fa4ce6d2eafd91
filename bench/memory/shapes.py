#!/usr/bin/env python3
"""Trains trials of real sizes for two steps each and compares their memory with the estimates of
`petlab plan --memory`; bench/memory.sh starts it."""
import argparse
import array
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

ROBERTA = {"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768,
           "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
           "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
           "hidden_act": "gelu", "pad_token_id": 1, "hidden_dropout_prob": 0.1,
           "attention_probs_dropout_prob": 0.1}
T5 = {"model_type": "t5", "vocab_size": 32128, "d_model": 768, "d_kv": 64, "num_heads": 12,
      "d_ff": 3072, "num_layers": 12, "num_decoder_layers": 12, "dropout_rate": 0.1}
# Enough for any length below: texts and targets are cut to data.max_tokens.
LETTERS = 700
# Pieces of the T5 vocabulary. The others are <extra_id_…>, of which a tokenizer has at most 10,000.
PIECES = T5["vocab_size"] - 10000
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CLASSES = """task: letters
files: {train: train.tsv, validation: few.tsv, test: few.tsv}
columns: {text: text, label: label}
labels: ["0", "1"]
metrics: [accuracy]
select_by: [accuracy]
"""
TEXTS = """task: copies
files: {train: train.tsv, validation: few.tsv, test: few.tsv}
columns: {text: text, target: target}
metrics: [token-error-rate]
select_by: [token-error-rate]
text_to_text: {source: "{text1}"}
"""
# Fields of each variant; USUAL_FIELDS supplies the missing ones.
SHAPES = {
    # The length of 32 sentences of CoLA.
    "roberta-adapter-32x12": {"module.kind": "adapter", "module.share": True,
                              "module.mask": "learned", "data.max_tokens": 12,
                              "data.max_validation_examples": 400, "data.max_test_examples": 400},
    "roberta-adapter": {"module.kind": "adapter", "module.share": True, "module.mask": "learned"},
    "roberta-lora": {"module.kind": "lora"},
    "roberta-prefix": {"module.kind": "prefix"},
    "roberta-full": {"module.kind": "full_finetuning"},
    "roberta-head": {"module.kind": "head_only"},
    "roberta-adapter-bf16": {"module.kind": "adapter", "training.compute": "bf16"},
    "roberta-full-bf16": {"module.kind": "full_finetuning", "training.compute": "bf16"},
    "t5-adapter": {"module.kind": "adapter", "module.share": True, "module.mask": "learned"},
    "t5-lora": {"module.kind": "lora"},
    "t5-prefix": {"module.kind": "prefix"},
    "t5-full": {"module.kind": "full_finetuning"},
    "t5-hyperformer": {"module.kind": "hyperformer++"},
    "t5-beams": {"module.kind": "adapter", "training.batch_size": 2, "decoding.beams": 4},
}
USUAL_FIELDS = {
    "roberta": {"backbone": "./roberta-base", "task": "letters.yaml", "training.batch_size": 32,
                "data.max_tokens": 128},
    "t5": {"backbone": "./t5-base", "task": "copies.yaml", "training.batch_size": 32,
           "data.max_tokens": 128, "data.max_target_tokens": 32, "decoding.max_tokens": 32},
}
USUAL = "roberta-adapter-32x12,roberta-adapter,roberta-lora,roberta-full,t5-adapter,t5-full"


def roberta_tensors(config):
    """Name and shape of each tensor of a RoBERTa encoder."""
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


def t5_tensors(config):
    """Name and shape of each tensor of a T5 1.0."""
    d, inner = config["d_model"], config["d_kv"] * config["num_heads"]
    shapes = {"shared.weight": (config["vocab_size"], d)}
    for stack, layers in (("encoder", config["num_layers"]),
                          ("decoder", config["num_decoder_layers"])):
        for layer in range(layers):
            sub_layers = ["SelfAttention"] + ["EncDecAttention"] * (stack == "decoder")
            for number, name in enumerate(sub_layers):
                at = f"{stack}.block.{layer}.layer.{number}."
                for matrix in "qkv":
                    shapes[f"{at}{name}.{matrix}.weight"] = (inner, d)
                shapes[f"{at}{name}.o.weight"] = (d, inner)
                shapes[at + "layer_norm.weight"] = (d,)
                if layer == 0 and number == 0:
                    shapes[f"{at}{name}.relative_attention_bias.weight"] = (32, config["num_heads"])
            at = f"{stack}.block.{layer}.layer.{len(sub_layers)}."
            shapes[at + "DenseReluDense.wi.weight"] = (config["d_ff"], d)
            shapes[at + "DenseReluDense.wo.weight"] = (d, config["d_ff"])
            shapes[at + "layer_norm.weight"] = (d,)
        shapes[f"{stack}.final_layer_norm.weight"] = (d,)
    return shapes


def write_safetensors(file, shapes):
    """Writes N(0, 0.02) from one repeated block, and 1 for weights of norms: only the sizes matter."""
    draw = random.Random(3)
    block = array.array("f", (draw.gauss(0, 0.02) for _ in range(1 << 18)))
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            count = math.prod(shape)
            is_norm = name.endswith(("LayerNorm.weight", "layer_norm.weight"))
            values = array.array("f", [1.0]) * count if is_norm else block
            while count > 0:
                part = values[:count]
                out.write(part.tobytes())
                count -= len(part)


def byte_letters():
    """The letter that a byte-level BPE uses for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    others = [byte for byte in range(256) if byte not in letters]
    return letters | {byte: chr(256 + number) for number, byte in enumerate(others)}


def vocabulary_of_pairs(size):
    """Ids and merges of a byte-level BPE of this size. The texts use every few ids, each a pair of
    letters, spread so that they read the whole embedding table."""
    words = ["<s>", "<pad>", "</s>", "<unk>", *byte_letters().values(), "<mask>"]
    pairs = [(a, b) for a in ALPHABET for b in ALPHABET]
    step = (size - len(words)) // len(pairs)
    ids = {word: i for i, word in enumerate(words)}
    ids |= {a + b: len(words) + step * i for i, (a, b) in enumerate(pairs)}
    return ids, "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs)


def text_of(draw, gap):
    return gap.join(draw.choice(ALPHABET) for _ in range(LETTERS))


def make_world(work, trainer):
    """Creates backbones with random weights and two tasks with long texts."""
    for name, config, tensors in (("roberta-base", ROBERTA, roberta_tensors(ROBERTA)),
                                  ("t5-base", T5, t5_tensors(T5))):
        folder = work / name
        folder.mkdir()
        write_safetensors(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(json.dumps(config))
    ids, merges = vocabulary_of_pairs(ROBERTA["vocab_size"])
    (work / "roberta-base/vocab.json").write_text(json.dumps(ids))
    (work / "roberta-base/merges.txt").write_text(merges)
    draw = random.Random(5)
    words = ["".join(draw.choices(ALPHABET, k=3)) for _ in range(2 * PIECES)]
    (work / "texts.txt").write_text("\n".join(" ".join(words[i::500]) for i in range(500)) + "\n")
    small = T5 | {"d_model": 8, "d_kv": 4, "num_heads": 2, "d_ff": 8, "num_layers": 1,
                  "num_decoder_layers": 1}
    (work / "small.json").write_text(json.dumps(small))
    # Only its pieces are used.
    answer([trainer, "init", "--config", "small.json", "--texts", "texts.txt", "--vocabulary",
            PIECES, "--out", "small"], work)
    about = json.loads((work / "small/tokenizer_config.json").read_text())
    about["extra_ids"] = T5["vocab_size"] - PIECES
    (work / "t5-base/tokenizer_config.json").write_text(json.dumps(about))
    (work / "small/spiece.model").rename(work / "t5-base/spiece.model")
    for name, rows in (("train", 64), ("few", 800)):
        lines = ["text\tlabel\ttarget"]
        lines += [f"{text_of(draw, '')}\t{i % 2}\t{text_of(draw, ' ')}" for i in range(rows)]
        (work / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (work / "letters.yaml").write_text(CLASSES)
    (work / "copies.yaml").write_text(TEXTS)


def write_sweep(work, shapes, seeds=1):
    # Two steps: the second one runs with the memory that the first validation keeps.
    base = {"training.steps": 2, "training.evaluate_every": 1, "data.max_validation_examples": 16,
            "data.max_test_examples": 16}
    lines = ["sweep: memory", f"base: {json.dumps(base)}", "variants:"]
    for name in shapes:
        fields = USUAL_FIELDS[name.split("-")[0]] | SHAPES[name]
        lines += [f"  {name}{f'-{seed}' * (seeds > 1)}: {json.dumps(fields | {'seed': seed})}"
                  for seed in range(1, seeds + 1)]
    (work / "sweep.yaml").write_text("\n".join(lines) + "\n")


def answer(words, work):
    done = subprocess.run([str(word) for word in words], cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words} failed with exit code {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def peak_of(work, trial):
    """The first attempt's peak memory in MiB, from the trainer's last event."""
    events = work / "petlab.runs" / trial / "1/events.jsonl"
    return math.ceil(json.loads(events.read_text().splitlines()[-1])["peak_memory_mib"])


def measure_gangs(args, petlab, shapes):
    """Compares gangs of equal trials with the formula of docs/reference/memory.md."""
    print("| shape | trials together | one alone | estimate | measured | of it |\n|" + " --- |" * 6)
    for name in shapes:
        write_sweep(args.work, [name], args.gang)
        answer([petlab, "run", "sweep.yaml", "--device", "cpu", "--slots", 1, "--threads",
                args.threads, "--gang", args.gang, "--retries", 0], args.work)
        plan = json.loads(answer([petlab, "plan", "sweep.yaml", "--memory", "--json"], args.work))
        measured = max(peak_of(args.work, trial["id"]) for trial in plan["trials"])
        one = {key: value for key, value in plan["trials"][0]["memory"].items()
               if key.endswith("_mib")}
        estimate = (one["program_mib"] + one["backbone_mib"] +
                    args.gang * (one["weights_mib"] - one["backbone_mib"] + one["optimizer_mib"]) +
                    max(args.gang * one["at_step_mib"], one["at_update_mib"],
                        one["at_evaluation_mib"]))
        print(f"| {name} | {args.gang} | {plan['trials'][0]['memory']['total_mib']:,} | {estimate:,} "
              f"| {measured:,} | {estimate / measured:.2f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--shapes", default=USUAL)
    p.add_argument("--gang", type=int, default=1)
    args = p.parse_args()
    petlab = args.bin / "petlab"
    shapes = list(SHAPES) if args.shapes == "all" else args.shapes.split(",")
    for name in shapes:
        if name not in SHAPES:
            p.error(f"--shapes: found {name}, expected some of {', '.join(SHAPES)}, or all")
    make_world(args.work, args.bin / "petlab-trainer")
    if args.gang > 1:
        return measure_gangs(args, petlab, shapes)
    write_sweep(args.work, shapes)
    # A process per trial: the peak of a shared process would include the trials before.
    answer([petlab, "run", "sweep.yaml", "--device", "cpu", "--slots", 1, "--threads",
            args.threads, "--fresh-workers", "--retries", 0], args.work)
    plan = json.loads(answer([petlab, "plan", "sweep.yaml", "--memory", "--json"], args.work))
    print("| shape | tokens | weights | optimizer | activations | workspace | estimate | measured |"
          " of it |\n|" + " --- |" * 9)
    for trial in plan["trials"]:
        memory = trial["memory"]
        measured = peak_of(args.work, trial["id"])
        tokens = " + ".join(str(memory[key]) for key in ("tokens", "target_tokens")
                            if key in memory)
        parts = [memory[f"{part}_mib"] for part in ("weights", "optimizer", "activations",
                                                    "workspace", "total")]
        print("| " + " | ".join([trial["variant"], tokens, *(f"{part:,}" for part in parts),
                                 f"{measured:,}", f"{memory['total_mib'] / measured:.2f}"]) + " |")


if __name__ == "__main__":
    main()
