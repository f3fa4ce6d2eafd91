#!/usr/bin/env python3
"""Creates tests/golden/models: tiny random encoders and their results from transformers and torch.

    make_models.py [FOLDER]

Needs transformers 4.57.6, torch 2.13.0 and safetensors 0.8.0 (scripts/library_venv.sh). Computes in
float32 and eval mode. Tests check abs(x - y) <= atol + rtol · abs(y) with the tolerances of each
tensor in expected.json.
"""
import json
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers
from transformers.models.roberta import modeling_roberta

SIZES = dict(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
             intermediate_size=20, max_position_embeddings=24)
GRADIENTS = ["embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
             "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight",
             "encoder.layer.0.attention.self.query.weight", "encoder.layer.0.attention.self.key.weight",
             "encoder.layer.0.attention.self.value.bias",
             "encoder.layer.0.attention.output.dense.weight",
             "encoder.layer.1.attention.output.LayerNorm.bias",
             "encoder.layer.1.intermediate.dense.weight", "encoder.layer.1.output.dense.weight",
             "encoder.layer.1.output.LayerNorm.weight"]


def fill(module, seed):
    random = np.random.default_rng(seed)
    for name, tensor in sorted(module.state_dict().items()):
        if tensor.is_floating_point():
            value = torch.tensor(random.normal(0, 0.3, tuple(tensor.shape)), dtype=torch.float32)
            tensor.copy_(value + 1 if name.endswith("LayerNorm.weight") else value)


def batch(seed, pad, first):
    """Draws four sequences of 15, 9, 4 and 1 tokens, padded on the right."""
    random = np.random.default_rng(seed)
    ids = torch.full((4, 15), pad)
    mask = torch.zeros((4, 15), dtype=torch.long)
    for row, length in enumerate((15, 9, 4, 1)):
        ids[row, :length] = torch.tensor(random.integers(first, SIZES["vocab_size"], length))
        mask[row, :length] = 1
    return ids, mask


class Head(torch.nn.Module):
    def __init__(self, outputs, seed):
        super().__init__()
        d = SIZES["hidden_size"]
        self.dense, self.out_proj = torch.nn.Linear(d, d), torch.nn.Linear(d, outputs)
        fill(self, seed)

    def forward(self, hidden):
        return self.out_proj(torch.tanh(self.dense(hidden[:, 0])))


def write(folder, tensors):
    safetensors.torch.save_file({n: t.detach().contiguous() for n, t in tensors.items()},
                                folder / "expected.safetensors")
    told = {name: dict(shape=list(t.shape), atol=1e-5, rtol=1e-5) for name, t in tensors.items()}
    (folder / "expected.json").write_text(json.dumps(dict(
        made_with=dict(transformers=transformers.__version__, torch=torch.__version__),
        tensors=told), indent=1) + "\n")


def encoder_case(folder, encoder, tensors, heads):
    inputs = dict(input_ids=tensors["input_ids"], attention_mask=tensors["attention_mask"])
    if "token_type_ids" in tensors:
        inputs["token_type_ids"] = tensors["token_type_ids"]
    out = encoder(**inputs, output_hidden_states=True)
    for i, hidden in enumerate(out.hidden_states):
        tensors[f"hidden_states.{i}"] = hidden
    for kind, file, outputs, labels in (("cls", "head", 3, torch.tensor([2, 0, 1, 1])),
                                        ("reg", "head_regression", 1,
                                         torch.tensor([0.5, 3.0, -1.0, 2.25]))):
        head = Head(outputs, heads + outputs)
        safetensors.torch.save_file(dict(head.state_dict()), folder / f"{file}.safetensors")
        encoder.zero_grad()
        logits = head(encoder(**inputs).last_hidden_state)
        loss = (torch.nn.functional.cross_entropy(logits, labels) if outputs > 1 else
                torch.nn.functional.mse_loss(logits[:, 0], labels))
        loss.backward()
        tensors |= {f"{kind}.labels": labels, f"{kind}.logits": logits, f"{kind}.loss": loss}
        for name, weight in head.named_parameters():
            tensors[f"{kind}.grad.head.{name}"] = weight.grad.clone()
        weights = dict(encoder.named_parameters())
        for name in GRADIENTS:
            tensors[f"{kind}.grad.{name}"] = weights[name].grad.clone()
    return tensors


def bert(folder):
    folder.mkdir(parents=True, exist_ok=True)
    # Small embeddings and a large eps, so that a wrong eps shows.
    config = transformers.BertConfig(**SIZES, type_vocab_size=2, layer_norm_eps=1e-3,
                                     attn_implementation="eager")
    model = transformers.BertModel(config).eval()
    with torch.no_grad():
        fill(model, 11)
    ids, mask = batch(12, 0, 1)
    types = torch.zeros_like(ids)
    types[0, 6:], types[1, 4:9] = 1, 1
    write(folder, encoder_case(folder, model, dict(input_ids=ids, attention_mask=mask,
                                                   token_type_ids=types), 20))
    safetensors.torch.save_file(dict(model.state_dict()), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(
        model_type="bert", hidden_act="gelu", type_vocab_size=2, layer_norm_eps=1e-3,
        pad_token_id=0, **SIZES), indent=1) + "\n")


def roberta(folder):
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.RobertaConfig(**SIZES, type_vocab_size=1, layer_norm_eps=1e-5,
                                        pad_token_id=1, attn_implementation="eager")
    model = transformers.RobertaForMaskedLM(config).eval()
    with torch.no_grad():
        fill(model, 31)
    ids, mask = batch(32, 1, 2)
    tensors = dict(input_ids=ids, attention_mask=mask)
    tensors = encoder_case(folder, model.roberta, tensors, 40)
    # A pad id inside a sequence, since positions depend on the ids.
    inside = torch.tensor([[0, 7, 1, 9, 1, 4, 2]])
    model.zero_grad()
    last = model.roberta(inside, attention_mask=torch.ones_like(inside)).last_hidden_state
    last[0][0][0].backward()
    position = modeling_roberta.create_position_ids_from_input_ids(inside, 1)
    tensors |= {"interior_pad.input_ids": inside, "interior_pad.position_ids": position,
                "interior_pad.last_hidden_state": last}
    for table in ("word", "position"):
        name = f"embeddings.{table}_embeddings.weight"
        tensors[f"interior_pad.grad.{name}.first_rows"] = dict(
            model.roberta.named_parameters())[name].grad[:10].clone()
    write(folder, tensors)
    settings = json.dumps(dict(model_type="roberta", hidden_act="gelu", type_vocab_size=1,
                               layer_norm_eps=1e-5, pad_token_id=1, **SIZES), indent=1) + "\n"
    (folder / "config.json").write_text(settings)
    state = {n: t.detach() for n, t in model.state_dict().items()}
    stored = {n: t.clone() for n, t in state.items() if not n.startswith("lm_head.decoder.")}
    safetensors.torch.save_file(stored, folder / "model.safetensors")
    old = dict(state)
    old["roberta.embeddings.position_ids"] = torch.arange(24).expand((1, -1))
    torch.save(old, folder / "pytorch_model.bin")
    sharded = folder.parent / "roberta-tiny-sharded"
    sharded.mkdir(exist_ok=True)
    (sharded / "config.json").write_text(settings)
    names = sorted(stored)
    index = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        safetensors.torch.save_file({n: stored[n] for n in part}, sharded / file)
        index |= {n: file for n in part}
    (sharded / "model.safetensors.index.json").write_text(
        json.dumps(dict(weight_map=index), indent=1) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent / "models")
    bert(folder / "bert-tiny")
    roberta(folder / "roberta-tiny")
    for file in sorted(folder.rglob("*.*")):
        if file.is_file():
            print(f"{file.stat().st_size:7} {file.relative_to(folder)}")


if __name__ == "__main__":
    main()
