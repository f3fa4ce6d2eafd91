#!/usr/bin/env python3
"""Creates tests/golden/petl: modules and masks in a tiny RoBERTa, computed by formula with torch.

    make_petl.py [FOLDER]

Needs transformers 4.57.6, torch 2.13.0 and safetensors 0.8.0 (scripts/library_venv.sh). Computes
outputs, loss, gradients and five optimizer steps (AdamW 1e-2 and 3e-2 for scores, decay 0.1, clipped
at 1) in float64 without dropout. Tests check max|x - y| <= tolerance · max(1e-3, max|y|).
"""
import json
import math
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

SIZES = dict(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
             intermediate_size=20, max_position_embeddings=24)
D, LAYERS, STEPS = 12, 2, 5


def mask_of(scores, k):
    """Masks the (1 - k) · n smallest |scores|, earlier ones first among equals. The gradient of scores
    is the mask's, times the score's sign."""
    size = scores.detach().abs()
    hard = torch.ones(scores.numel(), dtype=scores.dtype)
    hard[torch.argsort(size.flatten(), stable=True)[:int((1.0 - k) * scores.numel())]] = 0
    hard = hard.reshape(scores.shape)
    return hard + (scores.abs() - size)


class Case:
    def __init__(self, model, method, seed):
        self.model, self.method = model, method
        self.random = np.random.default_rng(seed)
        self.trained = {}  # by the names of the golden files
        self.fixed = {}    # random masks
        layers, shapes = range(LAYERS), self.shapes()
        learned = method["variant"] != "random"
        for name, shape in shapes.items():
            self.trained["module." + name] = self.draw(shape, 0.3)
            if name.endswith("bias"):
                continue
            for l in layers:
                if learned:
                    self.trained[f"score.layer.{l}.{name}"] = self.draw(shape, 1)
                else:
                    self.fixed[f"mask.layer.{l}.{name}"] = torch.tensor(
                        self.random.permutation(np.arange(math.prod(shape)) % 2).reshape(shape),
                        dtype=torch.float64)
            for t in range(method.get("tasks", 1) if method.get("tasks", 1) > 1 else 0):
                self.trained[f"score.task.{t}.{name}"] = self.draw(shape, 1)
        for name, shape in (("dense.weight", (D, D)), ("dense.bias", (D,)),
                            ("out_proj.weight", (3, D)), ("out_proj.bias", (3,))):
            self.trained["head.classifier." + name] = self.draw(shape, 0.3)
        for tensor in self.trained.values():
            tensor.requires_grad_(True)
        for l in layers:
            self.change(model.encoder.layer[l], l)

    def draw(self, shape, std):
        return torch.tensor(self.random.normal(0, std, shape), dtype=torch.float64)

    def shapes(self):
        if self.method["module"] == "adapter":
            bn = self.method["bn"]
            return {"down.weight": (bn, D), "down.bias": (bn,), "up.weight": (D, bn), "up.bias": (D,)}
        r = self.method["r"]
        return {f"{which}.lora_{matrix}": (r, D) if matrix == "A" else (D, r)
                for which in ("query", "value") for matrix in "AB"}

    def masks(self):
        masks = dict(self.fixed)
        for name, tensor in self.trained.items():
            if name.startswith("score."):
                masks["mask." + name[6:]] = mask_of(tensor, self.method["k"])
        return masks

    def weight(self, name, layer):
        value = self.trained["module." + name]
        masks = self.masks()
        mask = masks.get(f"mask.layer.{layer}.{name}")
        if mask is None:
            return value
        task = masks.get(f"mask.task.{self.method.get('task_of_the_batch', 0)}.{name}")
        if task is not None:
            combine = self.method["combine"]
            mask = (1 - (1 - mask) * (1 - task) if combine == "or" else
                    mask * task if combine == "and" else mask + task)
        return value * mask

    def change(self, layer, l):
        """Adds the module to a layer of the model."""
        if self.method["module"] == "adapter":
            output = layer.output

            def forward(hidden, x):
                y = output.dense(hidden)
                a = output.LayerNorm(y + x)
                inner = torch.relu(a @ self.weight("down.weight", l).T + self.weight("down.bias", l))
                z = inner @ self.weight("up.weight", l).T + self.weight("up.bias", l) + y
                return output.LayerNorm(z + x)

            output.forward = forward
            return
        scale = self.method["alpha"] / self.method["r"]
        for which in ("query", "value"):
            linear = getattr(layer.attention.self, which)

            def forward(x, linear=linear, which=which):
                low = x @ self.weight(which + ".lora_A", l).T
                return (x @ linear.weight.T + linear.bias +
                        scale * (low @ self.weight(which + ".lora_B", l).T))

            linear.forward = forward

    def compute(self, batch):
        ids, mask, labels = batch
        out = self.model(ids, attention_mask=mask, output_hidden_states=True)
        head = {n[len("head.classifier."):]: t for n, t in self.trained.items()
                if n.startswith("head.")}
        inner = torch.tanh(out.hidden_states[-1][:, 0] @ head["dense.weight"].T + head["dense.bias"])
        logits = inner @ head["out_proj.weight"].T + head["out_proj.bias"]
        return out.hidden_states, logits, torch.nn.functional.cross_entropy(logits, labels)

    def run(self, batches):
        tensors = {n: t.detach().clone() for n, t in self.trained.items()}
        tensors |= {n: m.detach().to(torch.uint8) for n, m in self.masks().items()}
        hidden, logits, loss = self.compute(batches[0])
        tensors |= {f"out.hidden.{i}": h.detach() for i, h in enumerate(hidden)}
        tensors |= {"out.logits": logits.detach(), "out.loss": loss.detach()}
        groups = {}
        for name, tensor in self.trained.items():
            groups.setdefault((name.startswith("score."), name.endswith("bias")), []).append(tensor)
        optimizer = torch.optim.AdamW([
            dict(params=params, lr=3e-2 if score else 1e-2, weight_decay=0.0 if bias else 0.1)
            for (score, bias), params in groups.items()], betas=(0.9, 0.999), eps=1e-8)
        norms, trajectory = [], []
        several = self.method.get("tasks", 1) > 1
        for step in range(1 if several else STEPS):
            optimizer.zero_grad(set_to_none=False)
            loss = self.compute(batches[step])[2]
            trajectory.append(loss.item())
            loss.backward()
            if step == 0:
                tensors |= {f"grad.{n}": t.grad.clone() for n, t in self.trained.items()
                            if t.grad is not None}
            if several:
                break
            norms.append(float(torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)))
            optimizer.step()
            if step == 0:
                tensors |= {f"after.{n}": t.detach().clone() for n, t in self.trained.items()}
                tensors |= {f"after.{n}": m.detach().to(torch.uint8)
                            for n, m in self.masks().items()}
        tensors["out.trajectory"] = torch.tensor(trajectory, dtype=torch.float64)
        return tensors, norms


def batches(count):
    random = np.random.default_rng(3)
    made = []
    for _ in range(count):
        ids, mask = torch.full((4, 10), 1), torch.zeros((4, 10), dtype=torch.long)
        for row, length in enumerate((10, 7, 3, 5)):
            ids[row, :length] = torch.tensor(random.integers(2, SIZES["vocab_size"], length))
            mask[row, :length] = 1
        made.append((ids, mask, torch.tensor(random.integers(0, 3, 4))))
    return made


def backbone(folder):
    config = transformers.RobertaConfig(**SIZES, type_vocab_size=1, pad_token_id=1,
                                        layer_norm_eps=1e-5, attn_implementation="eager",
                                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = transformers.RobertaModel(config, add_pooling_layer=False)
    random = np.random.default_rng(17)
    weights = {}
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.is_floating_point():
            value = torch.tensor(random.normal(0, 0.3, tuple(tensor.shape)), dtype=torch.float32)
            weights[name] = value + 1 if name.endswith("LayerNorm.weight") else value
    model.load_state_dict(weights, strict=False)
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file({"roberta." + n: t for n, t in weights.items()},
                                folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(
        model_type="roberta", hidden_act="gelu", type_vocab_size=1, layer_norm_eps=1e-5,
        pad_token_id=1, **SIZES), indent=1) + "\n")
    return model.double().eval().requires_grad_(False)


def mask_operator(folder):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(23)
    tensors, cases = {}, []
    for n, kind in ((1, "distinct"), (10, "distinct"), (48, "distinct"), (48, "ties"),
                    (300, "distinct"), (300, "ties")):
        scores = random.normal(0, 1, n).astype(np.float32)
        if kind == "ties":
            scores = np.round(scores * 2).astype(np.float32) / 2
        name = f"n{n}.{kind}"
        tensors["score." + name] = torch.tensor(scores)
        for k in (0.1, 0.3, 0.5, 0.9, 1.0):
            zeros = int((1.0 - k) * n)
            mask = np.ones(n, dtype=np.uint8)
            mask[np.argsort(np.abs(scores), kind="stable")[:zeros]] = 0
            ones = np.flatnonzero(mask)
            tensors[f"mask.{name}.k{k}"] = torch.tensor(np.packbits(mask, bitorder="little"))
            cases.append(dict(n=n, scores=name, k=k, zeros=zeros, ones=len(ones),
                              first_ones=ones[:6].tolist(), sum_of_one_indices=int(ones.sum())))
    safetensors.torch.save_file(tensors, folder / "tensors.safetensors")
    (folder / "case.json").write_text(json.dumps(dict(cases=cases), indent=1) + "\n")
    # Cases in which (1 - k) · n, truncated in double precision, is not the exact integer part.
    pairs = [[n, k / 100, int((1.0 - k / 100) * n)] for n in (10, 30, 100, 300) for k in range(100)
             if int((1.0 - k / 100) * n) != (100 - k) * n // 100]
    (folder / "delicate_counts.json").write_text(json.dumps(dict(pairs=pairs)) + "\n")


CASES = {
    "adapter_learned": dict(module="adapter", variant="propetl", bn=3, k=0.5),
    "adapter_random": dict(module="adapter", variant="random", bn=3, k=0.5),
    "lora_learned": dict(module="lora", variant="propetl", r=2, alpha=3.0, k=0.7),
    "tasks_or": dict(module="adapter", variant="propetl", bn=3, k=0.4, tasks=3,
                     task_of_the_batch=1, combine="or"),
    "tasks_and": dict(module="adapter", variant="propetl", bn=3, k=0.6, tasks=2,
                      task_of_the_batch=1, combine="and"),
}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent / "petl")
    made = batches(STEPS)
    backbone(folder / "backbone_roberta")
    stored = {}
    for step, (ids, mask, labels) in enumerate(made):
        stored |= {f"roberta.{step}.ids": ids, f"roberta.{step}.mask": mask,
                   f"roberta.{step}.labels": labels}
    safetensors.torch.save_file(stored, folder / "batches.safetensors")
    for seed, (name, method) in enumerate(CASES.items()):
        case = Case(backbone(folder / "backbone_roberta"), method, 100 + seed)
        tensors, norms = case.run(made)
        told = dict(case=name, backbone="backbone_roberta", method=method,
                    tolerance=dict(float32={"outputs and losses": 2e-5, "gradients": 2e-4}))
        if norms:
            told |= dict(optimizer="AdamW", expected=dict(grad_norm_before_clip=norms))
        (folder / name).mkdir(exist_ok=True)
        safetensors.torch.save_file({n: t.contiguous() for n, t in tensors.items()},
                                    folder / name / "tensors.safetensors")
        (folder / name / "case.json").write_text(json.dumps(told, indent=1) + "\n")
        print(name, [round(n, 3) for n in norms])
    mask_operator(folder / "mask_operator")
    for file in sorted(folder.rglob("*.*")):
        if file.is_file():
            print(f"{file.stat().st_size:7} {file.relative_to(folder)}")


if __name__ == "__main__":
    main()
