#!/usr/bin/env python3
"""Creates golden training runs with an implementation independent of petlab's.

It uses an encoder in PyTorch with autograd, in float64, torch's AdamW and clipping, and the
schedule of transformers. Random numbers (initial values, masks, batches, dropout) follow the
description in trainer/compute/random_stream.h. It is a single file, so that a training run can be
read in order. It writes into its folder:

    backbone/    config.json and model.safetensors of a tiny BERT
    NAME.json    configuration, tokens, and the expected results of each step and epoch

    make_training.py [FOLDER]   with torch, transformers and safetensors (scripts/library_venv.sh)
"""
import json
import math
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

SEED = 42
SIZES = dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=12, max_position_embeddings=12, type_vocab_size=2)
M32 = 0xFFFFFFFF


# ---- Random numbers, by trainer/compute/random_stream.h
class Purpose:
    shuffle, initialisation, random_mask, embedding, attention, attention_output, feed_forward, \
        head_input, head_output, module, task_choice, random_task_mask = range(1, 13)


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & M32, (a >> 32) ^ c[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


class Stream:
    def __init__(self, purpose, seed=SEED, step=0, layer=0, example=0, position=0):
        self.key = philox([purpose, layer, 0x7065746C, 0x61620001], [seed & M32, seed >> 32])[:2]
        self.tail = [position, example, step]
        self.block, self.left = 0, []

    def bits(self):
        if not self.left:
            self.left = philox([self.block, *self.tail], self.key)
            self.block += 1
        return self.left.pop(0)

    def below(self, bound):
        while True:
            low = self.bits()
            number = self.bits() << 32 | low
            if number >= 2**64 % bound:
                return number % bound

    def uniform(self):
        return (self.bits() >> 8) / 2.0**24

    def normal(self):
        radius = (self.bits() + 1) / 2.0**32
        angle = self.bits() / 2.0**32
        return math.sqrt(-2 * math.log(radius)) * math.cos(2 * math.pi * angle)


def permutation(task, epoch, n):
    order, stream = list(range(n)), Stream(Purpose.shuffle, layer=task, step=epoch)
    for left in range(n, 1, -1):
        other = stream.below(left)
        order[left - 1], order[other] = order[other], order[left - 1]
    return order


def dropout_row(p, width, **place):
    """The factors for a row of an activation."""
    dropped = round(p * 65536)
    scale = float(np.float32(65536 / (65536 - dropped)))
    stream, row = Stream(**place), []
    while len(row) < width:
        bits = stream.bits()
        row += [0.0 if half < dropped else scale for half in (bits & 0xFFFF, bits >> 16)]
    return row[:width]


# The numbers and kinds of the streams of initial values (trainer/modules/module.h).
INIT = dict(adapter_down=1, adapter_up=2, lora_query_a=3, lora_value_a=4, prefix_embedding=5,
            prefix_hidden=6, prefix_output=7, head_dense=8, head_out=9, lora_query_b=10,
            lora_value_b=11, prefix_p=12, prefix_hidden_bias=13, prefix_output_bias=14)
VALUES, SCORES, TASK_SCORES, RANDOM_MASK = range(4)


def initial(shape, what, draw, kind=VALUES, seed=SEED):
    stream = Stream(Purpose.initialisation, seed=seed, layer=INIT[what] * 4 + kind)
    numbers = [float(np.float32(draw(stream))) for _ in range(math.prod(shape))]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def normal(shape, what, std, **more):
    return initial(shape, what, lambda stream: std * stream.normal(), **more)


def uniform(shape, what, bound, **more):
    return initial(shape, what, lambda stream: bound * (2 * stream.uniform() - 1), **more)


# ---- Masks (reference/method.md, "Sharing and masking")
def learned_mask(scores, k):
    """1 for the largest |scores|. The gradient is that of the identity of |scores|."""
    size = scores.detach().abs()
    zeros = int((1.0 - k) * scores.numel())
    hard = torch.ones(scores.numel(), dtype=torch.float64)
    hard[torch.argsort(size.flatten(), stable=True)[:zeros]] = 0
    hard = hard.reshape(scores.shape)
    return hard + (scores.abs() - size)


def random_mask(purpose, shape, what, number, k):
    n = math.prod(shape)
    stream = Stream(purpose, layer=number, example=INIT[what] * 4 + RANDOM_MASK)
    zeros, mask = int((1.0 - k) * n), []
    for i in range(n):
        zero = stream.below(n - i) < zeros
        zeros -= zero
        mask.append(0.0 if zero else 1.0)
    return torch.tensor(mask, dtype=torch.float64).reshape(shape)


class Weight:
    """A weight of a module, shared or one for each layer, with its masks."""

    def __init__(self, run, name, what, values, bound=None, masked=True, decayed=True):
        config, layers = run.config["module"], SIZES["num_hidden_layers"]
        share = config["share"]
        self.mask = config["mask"] if masked else "none"
        self.k = config.get("sparsity_ratio", 0.5)
        self.tasks = len(run.tasks)
        # One stream fills the values of all layers in order.
        self.values = run.add(name, values((1 if share else layers, )), decayed)
        shape = self.values.shape[1:]
        self.scores = self.task_scores = None
        if self.mask == "learned":
            self.scores = run.add(name + ".scores",
                                  uniform((layers, *shape), what, bound, kind=SCORES), True, True)
            if len(run.tasks) > 1:
                # A tensor for each task, so that torch skips those without a batch yet.
                every = uniform((len(run.tasks), *shape), what, bound, kind=TASK_SCORES)
                self.task_scores = [
                    run.add(f"{name}.task_scores/{task}", scores.clone(), True, True)
                    for task, scores in enumerate(every)]
        if self.mask == "random":
            self.masks = [random_mask(Purpose.random_mask, shape, what, layer, self.k)
                          for layer in range(layers)]
            self.task_masks = [random_mask(Purpose.random_task_mask, shape, what, task, self.k)
                               for task in range(len(run.tasks))]

    def of(self, layer, task):
        value = self.values[layer if len(self.values) > 1 else 0]
        if self.mask == "none":
            return value
        if self.mask == "random":
            mask, task_mask = self.masks[layer], self.task_masks[task]
        else:
            mask = learned_mask(self.scores[layer], self.k)
            if self.task_scores is not None:
                task_mask = learned_mask(self.task_scores[task], self.k)
        if self.tasks > 1:
            mask = 1 - (1 - mask) * (1 - task_mask)
        return value * mask


# ---- The model
class Run:
    """Everything that a trial trains."""

    def __init__(self, config, tasks, backbone):
        self.config, self.tasks = config, tasks
        self.parameters = {}  # name -> (tensor, decayed, scores)
        self.backbone = {name: tensor.double() for name, tensor in backbone.items()}
        kind = config["module"]["kind"]
        if kind == "full_finetuning":
            for name in sorted(self.backbone):
                decayed = "LayerNorm" not in name and not name.endswith(".bias")
                self.backbone[name] = self.add(name, self.backbone[name].clone(), decayed)
        elif kind == "adapter":
            self.make_adapter(config["module"])
        elif kind == "lora":
            self.make_lora(config["module"])
        else:
            assert kind == "head_only"
        d = SIZES["hidden_size"]
        self.heads = []
        for number, task in enumerate(tasks):
            seed = SEED + (number << 32)
            name = f"head.{number}."
            self.heads.append(dict(
                dense=self.add(name + "dense.weight", normal((d, d), "head_dense", 0.02, seed=seed),
                               True),
                dense_bias=self.add(name + "dense.bias", torch.zeros(d, dtype=torch.float64), False),
                out=self.add(name + "out_proj.weight",
                             normal((self.outputs(task), d), "head_out", 0.02, seed=seed), True),
                out_bias=self.add(name + "out_proj.bias",
                                  torch.zeros(self.outputs(task), dtype=torch.float64), False)))

    @staticmethod
    def outputs(task):
        return len(task["classes"]) if task["classes"] else 1

    def add(self, name, tensor, decayed, scores=False):
        tensor.requires_grad_(True)
        self.parameters[name] = (tensor, decayed, scores)
        return tensor

    def make_adapter(self, config):
        d, bn = SIZES["hidden_size"], config["bottleneck"]
        zeros = lambda size: lambda own: torch.zeros((*own, size), dtype=torch.float64)
        self.down = Weight(self, "down.weight", "adapter_down",
                           lambda own: normal((*own, bn, d), "adapter_down", 0.02), 1 / bn**0.5)
        self.down_bias = Weight(self, "down.bias", None, zeros(bn), masked=False, decayed=False)
        self.up = Weight(self, "up.weight", "adapter_up",
                         lambda own: normal((*own, d, bn), "adapter_up", 0.02), 1 / d**0.5)
        self.up_bias = Weight(self, "up.bias", None, zeros(d), masked=False, decayed=False)

    def make_lora(self, config):
        d, r = SIZES["hidden_size"], config["rank"]
        self.lora = {}
        for which in ("query", "value"):
            a, b = f"lora_{which}_a", f"lora_{which}_b"
            self.lora[which] = (
                Weight(self, which + ".lora_A", a, lambda own, a=a: uniform((*own, r, d), a, d**-0.5),
                       d**-0.5),
                Weight(self, which + ".lora_B", b,
                       lambda own: torch.zeros((*own, d, r), dtype=torch.float64), r**-0.5))

    def linear(self, name, x):
        return x @ self.backbone[name + ".weight"].T + self.backbone[name + ".bias"]

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.backbone[name + ".weight"],
                                              self.backbone[name + ".bias"], self.eps)

    eps = 1e-12

    def projected(self, name, which, layer, task, x):
        y = self.linear(name + "attention.self." + which, x)
        if self.config["module"]["kind"] == "lora" and which in ("query", "value"):
            a, b = self.lora[which]
            scale = self.config["module"]["alpha"] / self.config["module"]["rank"]
            y = y + scale * (x @ a.of(layer, task).T @ b.of(layer, task).T)
        return y

    def logits(self, task, ids, example=0, step=None):
        """The logits of one example. `step` is None outside training."""
        rates = (0.0, 0.0) if step is None else self.rates

        def drop(x, purpose, layer, p=rates[0]):
            if p == 0:
                return x
            rows = [dropout_row(p, x.shape[1], purpose=purpose, step=step, layer=layer,
                                example=example, position=position) for position in range(len(x))]
            return x * torch.tensor(rows, dtype=torch.float64)

        b, n, heads = self.backbone, len(ids), SIZES["num_attention_heads"]
        x = (b["embeddings.word_embeddings.weight"][ids] +
             b["embeddings.position_embeddings.weight"][:n] +
             b["embeddings.token_type_embeddings.weight"][0])
        x = drop(self.norm("embeddings.LayerNorm", x), Purpose.embedding, 0)
        for l in range(SIZES["num_hidden_layers"]):
            name = f"encoder.layer.{l}."
            split = lambda y: y.reshape(n, heads, -1).transpose(0, 1)
            q, k, v = (split(self.projected(name, which, l, task, x))
                       for which in ("query", "key", "value"))
            p = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), -1)
            rows = p.transpose(0, 1).reshape(n, heads * n)
            p = drop(rows, Purpose.attention, l, rates[1]).reshape(n, heads, n).transpose(0, 1)
            seen = (p @ v).transpose(0, 1).reshape(n, -1)
            y = drop(self.linear(name + "attention.output.dense", seen), Purpose.attention_output, l)
            x = self.norm(name + "attention.output.LayerNorm", y + x)
            inner = torch.nn.functional.gelu(self.linear(name + "intermediate.dense", x))
            y = drop(self.linear(name + "output.dense", inner), Purpose.feed_forward, l)
            if self.config["module"]["kind"] == "adapter":
                a = self.norm(name + "output.LayerNorm", y + x)
                inner = torch.relu(a @ self.down.of(l, task).T + self.down_bias.of(l, task))
                y = inner @ self.up.of(l, task).T + self.up_bias.of(l, task) + y
            x = self.norm(name + "output.LayerNorm", y + x)
        if step is None:
            self.last_hidden = x
        head = self.heads[task]
        first = drop(x[:1], Purpose.head_input, 0)
        inner = drop(torch.tanh(first @ head["dense"].T + head["dense_bias"]), Purpose.head_output, 0)
        return (inner @ head["out"].T + head["out_bias"])[0]

    @property
    def rates(self):
        told = self.config["training"]["dropout"]
        return (told, told) if told >= 0 else (BACKBONE["hidden_dropout_prob"],
                                               BACKBONE["attention_probs_dropout_prob"])


BACKBONE = dict(model_type="bert", hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=0,
                hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.2, **SIZES)


# ---- Metrics
def ranks(values):
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2
            for value in values]


def correlation(a, b):
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def metric(name, gold, found):
    if name == "accuracy":
        return sum(g == f for g, f in zip(gold, found)) / len(gold)
    if name == "f1":
        hits = sum(g == f == 1 for g, f in zip(gold, found))
        return 2 * hits / (gold.count(1) + found.count(1)) if hits else 0.0
    if name == "pearson":
        return correlation(gold, found)
    assert name == "spearman"
    return correlation(ranks(gold), ranks(found))


def evaluate(run, task, split):
    data = run.tasks[task]["splits"][split]
    with torch.no_grad():
        logits = [run.logits(task, ids) for ids in data["ids"]]
    found = ([int(x.argmax()) for x in logits] if run.tasks[task]["classes"] else
             [float(x[0]) for x in logits])
    return {name: metric(name, data["targets"], found) for name in run.tasks[task]["metrics"]}


# ---- Training
def batches(run):
    """Yields (task, examples) of every step."""
    training, sizes = run.config["training"], [len(t["splits"]["train"]["ids"]) for t in run.tasks]
    size = training["batch_size"]
    epoch_steps = -(-sum(sizes) // size)
    if len(sizes) == 1:
        for step in range(epoch_steps * training["epochs"]):
            order = permutation(0, step // epoch_steps, sizes[0])
            at = step % epoch_steps * size
            yield 0, order[at:at + size]
        return
    weights = [n**0.1 for n in sizes]
    given = [0] * len(sizes)
    for step in range(epoch_steps * training["epochs"]):
        at = np.float32(Stream(Purpose.task_choice, step=step).uniform()) * sum(weights)
        task = 0
        while task + 1 < len(sizes) and at >= sum(weights[:task + 1]):
            task += 1
        orders = {}
        examples = []
        for i in range(given[task], given[task] + size):
            epoch = i // sizes[task]
            if epoch not in orders:
                orders[epoch] = permutation(task, epoch, sizes[task])
            examples.append(orders[epoch][i % sizes[task]])
        given[task] += size
        yield task, examples


def norms(run):
    squares = {}
    for name, (tensor, _, _) in sorted(run.parameters.items()):
        name = name.split("/")[0]
        squares[name] = squares.get(name, 0.0) + float(tensor.detach().square().sum())
    return {name: math.sqrt(square) for name, square in squares.items()}


def train(config, tasks, backbone):
    torch.manual_seed(0)
    run = Run(config, tasks, backbone)
    training = config["training"]
    groups = {}
    for tensor, decayed, scores in run.parameters.values():
        groups.setdefault((decayed, scores), []).append(tensor)
    optimizer = torch.optim.AdamW(
        [dict(params=params, weight_decay=training["weight_decay"] if decayed else 0.0,
              lr=training["mask_learning_rate" if scores else "learning_rate"])
         for (decayed, scores), params in groups.items()], betas=(0.9, 0.999), eps=1e-8)
    plan = list(batches(run))
    epoch_steps = len(plan) // training["epochs"]
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, math.ceil(training["warmup_ratio"] * len(plan)), len(plan))
    steps, metrics, epoch_losses = [], [], []
    best = None
    whole = tasks[0]["name"] if len(tasks) == 1 else "all"
    for step, (task, examples) in enumerate(plan):
        optimizer.zero_grad(set_to_none=False)
        data = tasks[task]["splits"]["train"]
        losses = []
        for example in examples:
            logits = run.logits(task, data["ids"][example], example, step)
            target = data["targets"][example]
            if tasks[task]["classes"]:
                losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(target)))
            else:
                losses.append((logits[0] - float(np.float32(target)))**2)
        loss = sum(losses) / len(examples)
        loss.backward()
        tensors = [tensor for tensor, _, _ in run.parameters.values() if tensor.grad is not None]
        if training["max_grad_norm"] > 0:
            norm = float(torch.nn.utils.clip_grad_norm_(tensors, training["max_grad_norm"]))
        else:
            norm = float(torch.cat([t.grad.flatten() for t in tensors]).norm())
        rate = optimizer.param_groups[0]["lr"] / optimizer.param_groups[0]["initial_lr"]
        optimizer.step()
        schedule.step()
        epoch_losses.append(loss.item())
        steps.append(dict(step=step + 1, task=task, examples=examples, loss=loss.item(),
                          gradient_norm=norm, rate_factor=rate, norms=norms(run)))
        if (step + 1) % epoch_steps:
            continue
        metrics.append([step + 1, "train", whole, "loss", sum(epoch_losses) / len(epoch_losses)])
        epoch_losses = []
        chosen = selection(run, metrics, step + 1)
        if best is None or (chosen is not None and (best[1] is None or chosen > best[1])):
            best = (step + 1, chosen, {name: tensor.detach().clone()
                                       for name, (tensor, _, _) in run.parameters.items()})
    with torch.no_grad():
        for name, value in best[2].items():
            run.parameters[name][0].copy_(value)
    for t, task in enumerate(tasks):
        for name, value in evaluate(run, t, "test").items():
            metrics.append([best[0], "test", task["name"], name, value])
    return dict(best_step=best[0], steps=steps, metrics=metrics)


def selection(run, metrics, step):
    """Evaluates on the validation data. Returns the mean over all selecting metrics."""
    chosen = []
    for t, task in enumerate(run.tasks):
        found = evaluate(run, t, "validation")
        for name, value in found.items():
            metrics.append([step, "validation", task["name"], name, value])
        chosen += [found[name] for name in task["select_by"]]
    return None if None in chosen else sum(chosen) / len(chosen)


# ---- Inputs
def texts(seed, count, words):
    """Random examples of 3 to 9 tokens, including [CLS] (2) and [SEP] (3)."""
    random = np.random.default_rng(seed)
    return [[2, *(int(w) for w in random.integers(4, words, random.integers(1, 8))), 3]
            for _ in range(count)]


def films(name="films", train=10, seed=1):
    splits = {}
    for split, count in (("train", train), ("validation", 9), ("test", 7)):
        ids = texts(seed * 10 + len(splits), count, SIZES["vocab_size"])
        # A sentence is good if most of its words are even. Every fourth label is wrong.
        targets = [int(2 * sum(i % 2 == 0 for i in row[1:-1]) > len(row) - 2) ^ (n % 4 == 3)
                   for n, row in enumerate(ids)]
        splits[split] = dict(ids=ids, targets=targets)
    return dict(name=name, classes=["bad", "good"], metrics=["accuracy", "f1"],
                select_by=["accuracy", "f1"], splits=splits)


def lengths(name="lengths", train=7, seed=2):
    splits = {}
    for split, count in (("train", train), ("validation", 6), ("test", 5)):
        ids = texts(seed * 10 + len(splits), count, SIZES["vocab_size"])
        splits[split] = dict(ids=ids, targets=[len(row) / 4 + row[1] / 8 for row in ids])
    return dict(name=name, classes=[], metrics=["pearson", "spearman"], select_by=["pearson"],
                splits=splits)


def configuration(tasks, module, **training):
    config = dict(epochs=4, batch_size=4, gradient_accumulation=1, learning_rate=1e-2,
                  mask_learning_rate=5e-2, weight_decay=0.1, warmup_ratio=0.15, max_grad_norm=0.0,
                  dropout=0.0)
    config.update(training)
    return dict(tasks=[task["name"] for task in tasks], seed=SEED, module=module, training=config)


def cases():
    one = [films()]
    yield "full_finetuning", one, configuration(
        one, dict(kind="full_finetuning"), dropout=-1, max_grad_norm=0.6, gradient_accumulation=2,
        weight_decay=0.3)
    yield "propetl_adapter", one, configuration(
        one, dict(kind="adapter", bottleneck=3, share=True, mask="learned", sparsity_ratio=0.5),
        learning_rate=3e-2)
    yield "random_adapter", one, configuration(
        one, dict(kind="adapter", bottleneck=3, share=True, mask="random", sparsity_ratio=0.3),
        epochs=2, warmup_ratio=0.0, dropout=0.1)
    score = [lengths()]
    yield "lora", score, configuration(
        score, dict(kind="lora", rank=2, alpha=3.0, share=False, mask="learned",
                    sparsity_ratio=0.7), batch_size=3, warmup_ratio=0.34, max_grad_norm=5.7)
    # Two tasks of equal size, and one with a late first batch.
    three = [films(), lengths(), films("plots", seed=3)]
    yield "several_tasks", three, configuration(
        three, dict(kind="adapter", bottleneck=3, share=True, mask="learned", sparsity_ratio=0.4),
        epochs=2)
    yield "several_tasks_random", three, configuration(
        three, dict(kind="adapter", bottleneck=3, share=True, mask="random", sparsity_ratio=0.4),
        epochs=1)


def backbone():
    random = np.random.default_rng(7)
    config = transformers.BertConfig(**{k: v for k, v in BACKBONE.items() if k != "model_type"})
    model = transformers.BertModel(config, add_pooling_layer=False)
    weights = {}
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        value = torch.tensor(random.normal(0, 0.3, tuple(tensor.shape)), dtype=torch.float32)
        weights[name] = value + 1 if name.endswith("LayerNorm.weight") else value
    model.load_state_dict(weights, strict=False)
    return model.double().eval(), weights


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    model, weights = backbone()
    (folder / "backbone").mkdir(parents=True, exist_ok=True)
    (folder / "backbone/config.json").write_text(json.dumps(BACKBONE, indent=1) + "\n")
    safetensors.torch.save_file(weights, folder / "backbone/model.safetensors")
    for name, tasks, config in cases():
        check = Run(config, tasks, weights)
        ids = tasks[0]["splits"]["train"]["ids"][1]
        if config["module"]["kind"] == "full_finetuning":
            check.logits(0, ids)
            theirs = model(torch.tensor([ids])).last_hidden_state[0]
            assert torch.allclose(check.last_hidden, theirs, atol=1e-12), "not what BERT computes"
        wanted = train(config, tasks, weights)
        norms_before = [step["gradient_norm"] for step in wanted["steps"]]
        limit = config["training"]["max_grad_norm"]
        if limit:
            assert min(norms_before) < limit < max(norms_before), norms_before
        print(name, "best", wanted["best_step"], "of", len(wanted["steps"]), "gradient norms",
              [round(x, 2) for x in norms_before])
        for row in wanted["metrics"]:
            print("   ", row)
        case = dict(config=config, tasks=tasks, wanted=wanted)
        text = json.dumps(case, indent=1)
        (folder / f"{name}.json").write_text(compact(text) + "\n")


def compact(text):
    """Puts lists of numbers on one line."""
    import re
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]",
                  lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", text)


if __name__ == "__main__":
    main()
