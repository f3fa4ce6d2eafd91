#!/usr/bin/env python3
"""Times training steps on a GPU in alternating rounds: petlab's with and without its kernels, eager
PyTorch's, and those of other libraries. scripts/first_gpu_hour.sh starts it."""
import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trainer"))
import rounds  # noqa: E402


def arm(args):
    """Times one peer in a separate process and prints the tokens per second of each task."""
    sys.path.insert(0, str(args.peers))
    import glue_lengths
    import torch
    import train_step_peers
    from torch.nn import functional as F

    torch.set_default_device("cuda")
    module, optimizer, _ = train_step_peers.build(args.arm)
    module.train()
    trained = [p for p in module.parameters() if p.requires_grad]
    found = {}
    for task, path in json.loads(args.encoded).items():
        batches = train_step_peers.glue.pick_batches(
            glue_lengths.load(path), args.batch, args.steps, bucketed=True)
        labels = torch.arange(args.batch) % 2
        seconds = tokens = 0
        for number, rows in enumerate(batches + batches):  # the first half is a warm-up
            torch.cuda.synchronize()
            began = time.perf_counter()
            with torch.device("cpu"):
                ids, mask = glue_lengths.to_tensors(rows, None)
            whole = bool(mask.all())
            ids = ids.cuda()
            mask = None if whole and args.arm.startswith("pytorch-best") else mask.cuda()
            with torch.autocast("cuda", torch.bfloat16, enabled=args.arm.endswith("-bf16")):
                loss = F.cross_entropy(module(ids, mask).float(), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
            if number >= len(batches):
                seconds += time.perf_counter() - began
                tokens += sum(len(row) for row in rows)
        found[task] = tokens / seconds
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--bench", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", default="cola,mrpc")
    parser.add_argument("--arms", default="pytorch-best,pytorch-best-bf16,hf-peft-lora-grouped")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--encoded", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.arm:
        return arm(args)
    sys.path.insert(0, str(args.peers))
    import glue_lengths
    tasks = args.tasks.split(",")
    encoded = glue_lengths.encode(str(args.peers / "../data"), tasks, str(args.scratch))
    lengths = {}
    for task in tasks:
        lengths[task] = args.scratch / f"{task}.lengths"
        batches = glue_lengths.pick_batches(glue_lengths.load(encoded[task]), args.batch,
                                            args.steps, bucketed=True)
        lengths[task].write_text(
            "".join(" ".join(str(len(row)) for row in rows) + "\n" for rows in batches))
    ours = {"petlab": [], "petlab-bf16": ["--bf16"], "petlab-operations": ["--operations"],
            "petlab-operations-bf16": ["--bf16", "--operations"]}
    found = {}
    for _ in range(args.rounds):
        for name in args.arms.split(","):
            rates = rounds.json_lines(
                [sys.executable, __file__, "--peers", args.peers, "--bench", args.bench, "--scratch",
                 args.scratch, "--batch", args.batch, "--steps", args.steps, "--arm", name,
                 "--encoded", json.dumps(encoded)])[-1]
            for task in tasks:
                found.setdefault((task, name), []).append(rates[task])
        for name, options in ours.items():
            for task in tasks:
                row = rounds.json_lines([args.bench, "step", "--device", "cuda", "--lengths",
                                         lengths[task], "--warm", args.steps, *options])[-1]
                found.setdefault((task, name), []).append(row["tokens_per_second"])
    rows = []
    for (task, name), rates in sorted(found.items()):
        ratios = [rounds.spread([a / b for a, b in zip(found[task, own], rates)])
                  for own in ("petlab", "petlab-bf16")]
        rows.append([task, name, f"{statistics.median(rates):.0f}", *ratios])
    rounds.table(["task", "arm", "tokens per second", "petlab / arm", "petlab-bf16 / arm"], rows)


if __name__ == "__main__":
    main()
