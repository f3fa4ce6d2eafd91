#!/usr/bin/env python3
"""Adapters that a hypernetwork makes, in a tiny T5: tests/golden/petl/hyperformer_t5.

    make_generated.py [FOLDER]

After make_petl.py, to whose batches it adds. With transformers 4.57.6, torch 2.13.0 and safetensors
0.8.0 (scripts/library_venv.sh). float64, no dropout: what is generated, outputs, loss, gradients. A
test compares max|x - y| <= tolerance · max(1e-3, max|y|).
"""
import json
import math
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
import transformers
from transformers.models.t5 import modeling_t5

SIZES = dict(vocab_size=40, d_model=12, d_kv=5, num_heads=2, d_ff=20, num_layers=2,
             num_decoder_layers=3, relative_attention_num_buckets=8,
             relative_attention_max_distance=12, dropout_rate=0.0, feed_forward_proj="relu")
D, LAYERS = 12, {"encoder": 2, "decoder": 3}
METHOD = dict(bn=3, task_embedding=4, mlp_hidden=6, projected=5, tasks=3, task_of_the_batch=2)
MADE = {"down.weight": (3, D), "down.bias": (3,), "up.weight": (D, 3), "up.bias": (D,),
        "post_norm.weight": (D,), "post_norm.bias": (D,)}
PLACES = ["feed_forward", "attention"]  # in the order of their embeddings


def in_its_own_type():
    """The library computes norms and softmax in float32, whatever the weights are."""
    def norm(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) +
                                             self.variance_epsilon)
    modeling_t5.T5LayerNorm.forward = norm
    torch.Tensor.float = lambda self: self


def backbone(folder):
    config = transformers.T5Config(**SIZES)
    model = transformers.T5ForConditionalGeneration(config).eval()
    random = np.random.default_rng(31)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            value = torch.tensor(random.normal(0, 0.3, tuple(tensor.shape)), dtype=torch.float32)
            tensor.copy_(1 + value if "layer_norm" in name else value)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    return model.double().requires_grad_(False)


def batch():
    random = np.random.default_rng(32)
    sources, targets = torch.zeros((3, 9), dtype=torch.long), torch.zeros((3, 5), dtype=torch.long)
    for row, (source, target) in enumerate(((9, 2), (4, 5), (1, 3))):
        sources[row, :source] = torch.tensor(random.integers(2, 40, source))
        targets[row, :target] = torch.tensor(random.integers(2, 40, target))
    return sources, (sources != 0).long(), targets


def parameters():
    """Embeddings, MLP, norm, and for each made tensor a linear map of the projection."""
    random = np.random.default_rng(33)
    e, h, p = METHOD["task_embedding"], METHOD["mlp_hidden"], METHOD["projected"]
    made = {}

    def draw(name, *shape, deviation=0.3, centre=0):
        value = random.normal(centre, deviation, shape).astype(np.float32)
        made[name] = torch.tensor(value, dtype=torch.float64).requires_grad_(True)

    draw("task_embedding", METHOD["tasks"], e, deviation=1)
    for side, layers in LAYERS.items():
        draw(f"{side}.layer_id", layers, e, deviation=1)
        draw(f"{side}.position", len(PLACES), e, deviation=1)
        draw(f"{side}.mlp.0.weight", h, 3 * e)
        draw(f"{side}.mlp.0.bias", h)
        draw(f"{side}.mlp.2.weight", p, h)
        draw(f"{side}.mlp.2.bias", p)
        draw(f"{side}.norm.weight", p, centre=1)
        draw(f"{side}.norm.bias", p)
        for name, shape in MADE.items():
            draw(f"{side}.{name}.weight", math.prod(shape), p)
            draw(f"{side}.{name}.bias", math.prod(shape))
    return made


def generate(trained, side, layer, place):
    at = side + "."
    embeddings = (trained["task_embedding"][METHOD["task_of_the_batch"]],
                  trained[at + "layer_id"][layer], trained[at + "position"][PLACES.index(place)])
    inner = F.relu(F.linear(torch.cat(embeddings), trained[at + "mlp.0.weight"],
                            trained[at + "mlp.0.bias"]))
    projected = F.layer_norm(
        F.linear(inner, trained[at + "mlp.2.weight"], trained[at + "mlp.2.bias"]),
        (METHOD["projected"],), trained[at + "norm.weight"], trained[at + "norm.bias"], 1e-6)
    return {name: F.linear(projected, trained[f"{at}{name}.weight"],
                           trained[f"{at}{name}.bias"]).reshape(shape)
            for name, shape in MADE.items()}


def attach(model, trained):
    """Lets the sub-layers' outputs pass the adapters; what was generated, by the test's names."""
    generated = {}
    for side in LAYERS:
        for number, block in enumerate(getattr(model, side).block):
            layer = number + (LAYERS["encoder"] if side == "decoder" else 0)
            for place, module in (("attention", block.layer[0].SelfAttention),
                                  ("feed_forward", block.layer[-1].DenseReluDense)):
                own = generate(trained, side, number, place)
                generated |= {f"out.generated.layer.{layer}.{place}.{name}": tensor
                              for name, tensor in own.items()}

                def change(y, own=own):
                    inner = F.gelu(F.linear(y, own["down.weight"], own["down.bias"]),
                                   approximate="tanh")
                    up = F.linear(inner, own["up.weight"], own["up.bias"])
                    return y + F.layer_norm(up, (D,), own["post_norm.weight"],
                                            own["post_norm.bias"], 1e-5)

                def hook(_, __, output, change=change):
                    if isinstance(output, tuple):
                        return (change(output[0]), *output[1:])
                    return change(output)

                module.register_forward_hook(hook)
    return generated


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent / "petl")
    in_its_own_type()
    model, trained = backbone(folder / "backbone_t5"), parameters()
    ids, mask, labels = batch()
    batches = safetensors.torch.load_file(folder / "batches.safetensors")
    batches |= {"t5.0.ids": ids, "t5.0.mask": mask, "t5.0.labels": labels}
    safetensors.torch.save_file(batches, folder / "batches.safetensors")
    generated = attach(model, trained)
    out = model(input_ids=ids, attention_mask=mask,
                decoder_input_ids=F.pad(labels[:, :-1], (1, 0)), output_hidden_states=True)
    log_p = F.log_softmax(out.logits, -1)
    each = -0.9 * log_p.gather(2, labels[..., None])[..., 0] - 0.1 * log_p.mean(-1)
    loss = each[labels != 0].mean()
    loss.backward()
    tensors = {"out.logits": out.logits, "out.loss": loss} | generated
    for side, states in (("encoder", out.encoder_hidden_states),
                         ("decoder", out.decoder_hidden_states)):
        tensors |= {f"out.{side}_hidden.{i}": state for i, state in enumerate(states)}
    for name, tensor in trained.items():
        tensors |= {"module." + name: tensor, "grad." + name: tensor.grad}
    told = dict(case="hyperformer_t5", backbone="backbone_t5", method=METHOD,
                tolerance=dict(float64=1e-9, float32={"outputs and loss": 2e-5,
                                                      "gradients": 2e-4}),
                bls=dict(bits=32 * sum(tensor.numel() for tensor in trained.values())))
    case = folder / "hyperformer_t5"
    case.mkdir(exist_ok=True)
    safetensors.torch.save_file({n: t.detach().contiguous() for n, t in tensors.items()},
                                case / "tensors.safetensors")
    (case / "case.json").write_text(json.dumps(told, indent=1) + "\n")
    print("loss", loss.item())


if __name__ == "__main__":
    main()
