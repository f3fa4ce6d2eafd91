#!/usr/bin/env python3
"""Compares petlab with Hugging Face's transformers on random small ModernBERTs: hidden states,
gradients of every weight, 20 training steps of every kind of module, and the tokenizer. The
reference is transformers in float64.

usage: random_modernbert.py FOLDER_OF_PROGRAMS [--cases N] [--seed S]

Each case is a folder with the golden layout (tests/support/golden.h), which trainer_tests reads.
transformers computes the backbone; hooks add the modules to it, and torch trains them.

Runs in the virtual environment of scripts/library_venv.sh, which scripts/setup.sh --dev makes.
"""
import argparse
import contextlib
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import library_venv

library_venv.enter("transformers and torch are")
import safetensors.torch  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from transformers import ModernBertConfig, ModernBertModel  # noqa: E402
from transformers.models.modernbert import modeling_modernbert as theirs  # noqa: E402

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
STEPS, BATCH, CLASSES, LEARNING_RATE, DECAY = 20, 4, 3, 1e-3, 0.1
FLOAT32_FACTOR, LEAST_SHARE = 3, 0.1
KINDS = ["full_finetuning", "adapter", "lora", "prefix", "head_only"]
TESTS = ["every encoder of the golden models*", "every golden module of an encoder*"]
TEXTS = ["Hello world", " two  spaces   three", "cafe\u0301 r\u00e9sum\u00e9 \u212b", "don't I'll 12a34b",
         "\u1112\u1161\u11ab \ud55c", "a [MASK] b[SEP]c", "\U0001f600 tab\t\tend ", "", "S\u0326i t\u0326ara\u0306"]


def drawn_config(rng):
    heads = rng.randrange(1, 5)
    return ModernBertConfig(
        vocab_size=rng.randrange(40, 300), hidden_size=heads * 2 * rng.randrange(4, 9),
        num_attention_heads=heads, num_hidden_layers=rng.randrange(2, 6),
        intermediate_size=rng.randrange(10, 60), max_position_embeddings=48,
        norm_eps=rng.choice([1e-5, 1e-6]), global_attn_every_n_layers=rng.randrange(2, 5),
        local_attention=rng.randrange(2, 20), global_rope_theta=rng.choice([160000.0, 500.0]),
        local_rope_theta=rng.choice([10000.0, 30.0]), attention_bias=rng.random() < 0.5,
        mlp_bias=rng.random() < 0.5, norm_bias=rng.random() < 0.5, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, cls_token_id=1, sep_token_id=2, reference_compile=False,
        attn_implementation="sdpa")


def exact_rotary(self, x, position_ids, usual=theirs.ModernBertRotaryEmbedding.forward):
    """transformers computes cosines and sines in float32 for every type. This keeps float64."""
    if x.dtype == torch.float32:
        return usual(self, x, position_ids)
    size = 2 * len(self.inv_freq)
    angles = position_ids[..., None] / self.config.rope_theta ** (torch.arange(0, size, 2) / size)
    exact = angles.cos().repeat(1, 1, 2), angles.sin().repeat(1, 1, 2)
    torch.testing.assert_close(exact, usual(self, x, position_ids), atol=1e-5, rtol=0)
    return exact


theirs.ModernBertRotaryEmbedding.forward = exact_rotary


def drawn(generator, shape, deviation, mean=0.0):
    """Normal numbers that float32 can hold, so that files of float32 contain them."""
    return (mean + deviation * torch.randn(shape, generator=generator)).float().double()


def made_model(config, generator):
    model = ModernBertModel(config).eval()
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if "norm" in name:
                weight.copy_(drawn(generator, weight.shape, 0.2, 0.0 if "bias" in name else 1.0))
            elif weight.dim() == 1:
                weight.copy_(drawn(generator, weight.shape, 0.1))
            else:
                weight.copy_(drawn(generator, weight.shape, weight.shape[1] ** -0.5))
    return model


def batch(rng, config):
    lengths = [rng.randrange(1, 40) for _ in range(BATCH)]
    ids = torch.zeros(BATCH, max(lengths), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.tensor(rng.choices(range(3, config.vocab_size), k=length))
        mask[row, :length] = 1
    return {"ids": ids, "mask": mask,
            "labels": torch.tensor(rng.choices(range(CLASSES), k=BATCH))}


def head_weights(d, outputs, generator):
    return {"dense.weight": drawn(generator, (d, d), d ** -0.5), "dense.bias": drawn(generator, d, 0.1),
            "out_proj.weight": drawn(generator, (outputs, d), d ** -0.5),
            "out_proj.bias": drawn(generator, outputs, 0.1)}


def logits_of(first, head):
    inner = torch.tanh(F.linear(first, head["dense.weight"], head["dense.bias"]))
    return F.linear(inner, head["out_proj.weight"], head["out_proj.bias"])


def hidden_states(out):
    """The last one after the final norm, as in transformers 5."""
    return [*out.hidden_states[:-1], out.last_hidden_state]


def save_backbone(folder, model):
    model.save_pretrained(folder, state_dict={name: weight.float() for name, weight in model.state_dict().items()})


# ---- the layout of golden/models
def write_model(folder, model, rng, generator):
    save_backbone(folder, model)
    heads = {"cls": head_weights(model.config.hidden_size, CLASSES, generator),
             "reg": head_weights(model.config.hidden_size, 1, generator)}
    safetensors.torch.save_file(heads["cls"], folder / "head.safetensors")
    safetensors.torch.save_file(heads["reg"], folder / "head_regression.safetensors")
    of = batch(rng, model.config)
    out = model(of["ids"], of["mask"], output_hidden_states=True)
    tensors = {"input_ids": of["ids"], "attention_mask": of["mask"]}
    wanted = {f"hidden_states.{i}": state for i, state in enumerate(hidden_states(out))}
    scores = 5 * torch.rand(BATCH, generator=generator)
    for kind, labels in (("cls", of["labels"]), ("reg", scores)):
        head = {name: weight.clone().requires_grad_() for name, weight in heads[kind].items()}
        model.zero_grad()
        logits = logits_of(model(of["ids"], of["mask"]).last_hidden_state[:, 0], head)
        loss = F.cross_entropy(logits, labels) if kind == "cls" else F.mse_loss(logits[:, 0], labels)
        loss.backward()
        tensors[f"{kind}.labels"] = labels
        wanted |= {f"{kind}.logits": logits, f"{kind}.loss": loss}
        wanted |= {f"{kind}.grad.head.{name}": weight.grad for name, weight in head.items()}
        wanted |= {f"{kind}.grad.{name}": weight.grad.clone()
                   for name, weight in model.named_parameters()}
    described = {name: {"atol": 1e-5 * max(1e-3, tensor.abs().max().item()), "rtol": 0}
                 for name, tensor in wanted.items()}
    tensors |= {name: tensor.detach() for name, tensor in wanted.items()}
    safetensors.torch.save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()},
                                folder / "expected.safetensors")
    (folder / "expected.json").write_text(json.dumps({"tensors": described}))


# ---- modules, as hooks of transformers' model
def adapter(model, rng, generator):
    d, size = model.config.hidden_size, rng.randrange(2, 6)
    weights = {}
    for number, layer in enumerate(model.layers):
        at = f"module.layer.{number}."
        weights |= {at + "down.weight": drawn(generator, (size, d), 0.3), at + "down.bias": drawn(generator, size, 0.1),
                    at + "up.weight": drawn(generator, (d, size), 0.3), at + "up.bias": drawn(generator, d, 0.1)}
        seen = {}
        layer.mlp_norm.register_forward_pre_hook(lambda _, given, seen=seen: seen.update(x=given[0]))

        def change(_, __, y, at=at, seen=seen):
            inner = torch.relu(F.linear(y + seen["x"], weights[at + "down.weight"], weights[at + "down.bias"]))
            return y + F.linear(inner, weights[at + "up.weight"], weights[at + "up.bias"])
        layer.mlp.register_forward_hook(change)
    return {"bn": size}, weights


def lora(model, rng, generator):
    d, rank, alpha = model.config.hidden_size, rng.randrange(1, 5), 3.0
    weights = {}
    for number, layer in enumerate(model.layers):
        at = f"module.layer.{number}."
        for projection in ("query", "value"):
            weights[f"{at}{projection}.lora_A"] = drawn(generator, (rank, d), 0.3)
            weights[f"{at}{projection}.lora_B"] = drawn(generator, (d, rank), 0.3)

        def change(_, given, joined, at=at):
            def added(name):
                return alpha / rank * (given[0] @ weights[f"{at}{name}.lora_A"].T @ weights[f"{at}{name}.lora_B"].T)
            return joined + torch.cat([added("query"), torch.zeros_like(given[0]), added("value")], -1)
        layer.attn.Wqkv.register_forward_hook(change)
    return {"r": rank, "alpha": alpha}, weights


def prefix(model, rng, generator):
    d, layers = model.config.hidden_size, len(model.layers)
    length, hidden = rng.randrange(1, 5), 6
    weights = {"module.embedding": drawn(generator, (length, d), 1.0),
               "module.mlp.0.weight": drawn(generator, (hidden, d), 0.3),
               "module.mlp.0.bias": drawn(generator, hidden, 0.1),
               "module.mlp.2.weight": drawn(generator, (layers * 2 * d, hidden), 0.5),
               "module.mlp.2.bias": drawn(generator, layers * 2 * d, 0.1)}

    def attention(module, qkv, attention_mask, sliding_window_mask, position_ids, local_attention, bs, dim, **_):
        inner = torch.tanh(F.linear(weights["module.embedding"], weights["module.mlp.0.weight"], weights["module.mlp.0.bias"]))
        every = F.linear(inner, weights["module.mlp.2.weight"], weights["module.mlp.2.bias"])
        own = every[:, 2 * d * module.layer_id:2 * d * (module.layer_id + 1)]

        def before(part):
            return part.view(length, module.num_heads, -1).transpose(0, 1).expand(bs, -1, -1, -1)
        cos, sin = module.rotary_emb(qkv, position_ids=position_ids)
        query, key, value = qkv.transpose(3, 1).unbind(dim=2)
        query, key = theirs.apply_rotary_pos_emb(query, key, cos, sin)
        mask = attention_mask if local_attention == (-1, -1) else sliding_window_mask
        scores = query @ torch.cat([before(own[:, :d]), key], 2).transpose(2, 3) * module.head_dim**-0.5
        scores = scores + F.pad(mask, (length, 0))
        return (scores.softmax(-1) @ torch.cat([before(own[:, d:]), value], 2)).transpose(1, 2).reshape(bs, -1, dim),
    theirs.MODERNBERT_ATTENTION_FUNCTION["sdpa"] = attention
    return {"length": length, "mlp_bottleneck": hidden}, weights


def full_finetuning(model, rng, generator):
    return {}, {f"module.{name}": weight for name, weight in model.named_parameters()}


def head_only(model, rng, generator):
    return {}, {}


@contextlib.contextmanager
def in_float32(weights):
    exact = [weight.data for weight in weights]
    for weight in weights:
        weight.data = weight.data.float()
    yield
    for weight, data in zip(weights, exact):
        weight.data = data


def difference(found, wanted):
    """The worst one, as check_gradients of tests/trainer/core/golden_petl_test.cpp measures it."""
    sizes = {name: gradient.abs().max().item() for name, gradient in wanted.items()}
    least = max(1e-3, LEAST_SHARE * max(sizes.values()))
    return max((found[name] - wanted[name]).abs().max().item() / max(size, least) for name, size in sizes.items())


def write_steps(folder, kind, model, batches, rng, generator):
    """Trains in float64 and writes the layout of a formula case of golden/petl.

    petlab takes these steps in float64, too. In float32 it computes each from float64's weights: over
    several steps, AdamW makes whole updates of gradients that are only rounding, in transformers as well.
    In some models, gradients in transformers' own float32 are further than 1e-5 from float64. There,
    petlab's may be FLOAT32_FACTOR times as far as the worst of transformers'.
    """
    usual = theirs.MODERNBERT_ATTENTION_FUNCTION["sdpa"]
    model.requires_grad_(False)
    sizes, module = globals()[kind](model, rng, generator)
    head = head_weights(model.config.hidden_size, CLASSES, generator)
    trained = module | {f"head.classifier.{name}": weight for name, weight in head.items()}
    for weight in trained.values():
        weight.requires_grad_()
    tensors = {name: weight.detach().clone() for name, weight in trained.items()}

    def is_decayed(name):
        return not name.endswith("bias") and "norm" not in name
    optimizer = torch.optim.AdamW(
        [{"params": [w for n, w in trained.items() if is_decayed(n) == decayed], "weight_decay": DECAY * decayed}
         for decayed in (True, False)], lr=LEARNING_RATE)

    def computed(of):
        out = model(of["ids"], of["mask"], output_hidden_states=True)
        logits = logits_of(out.last_hidden_state[:, 0], head)
        loss = F.cross_entropy(logits, of["labels"])
        gradients = dict(zip(trained, torch.autograd.grad(loss, trained.values())))
        return hidden_states(out), logits, loss, gradients
    losses, norms, their_worst = [], [], 0.0
    for step, of in enumerate(batches):
        states, logits, loss, gradients = computed(of)
        with in_float32([*model.parameters(), *trained.values()]):
            rounded = computed(of)[-1]
        their_worst = max(their_worst, difference(rounded, gradients))
        if step == 0:
            tensors |= {f"out.hidden.{i}": state.detach() for i, state in enumerate(states)}
            tensors |= {"out.logits": logits.detach(), "out.loss": loss.detach()}
            tensors |= {f"grad.{name}": gradient.clone() for name, gradient in gradients.items()}
        losses.append(loss.item())
        for name, weight in trained.items():
            weight.grad = gradients[name]
        norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), 1.0).item())
        optimizer.step()
        if step == 0:
            tensors |= {f"after.{name}": weight.detach().clone() for name, weight in trained.items()}
    theirs.MODERNBERT_ATTENTION_FUNCTION["sdpa"] = usual
    tensors["out.trajectory"] = torch.tensor(losses)
    folder.mkdir()
    safetensors.torch.save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()},
                                folder / "tensors.safetensors")
    (folder / "case.json").write_text(json.dumps({
        "backbone": "backbone_modernbert",
        "method": {"module": kind, "variant": "plain", "k": 0.5, **sizes},
        "optimizer": "AdamW", "learning_rate": LEARNING_RATE,
        "tolerance": {"float32": {"outputs and losses": 1e-5, "gradients": max(1e-5, FLOAT32_FACTOR * their_worst),
                                  "least_share_of_gradients": LEAST_SHARE}},
        "expected": {"grad_norm_before_clip": norms}}))


# ---- the tokenizer
def write_tokenizer(folder, rng):
    """A tokenizer.json in the form of ModernBERT's, whose special tokens come after the vocabulary."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.normalizer = tokenizers.normalizers.NFC()
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(TEXTS * 3, tokenizers.trainers.BpeTrainer(
        vocab_size=320, show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    made.add_special_tokens([*special, tokenizers.AddedToken("[MASK]", lstrip=True, normalized=False)])
    made.add_tokens([tokenizers.AddedToken(" " * n, normalized=True) for n in (3, 2)])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=rng.choice(["[CLS] $A [SEP] $B [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"]),
        special_tokens=[(token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast",
         **{f"{name.lower()}_token": f"[{name}]" for name in ("UNK", "CLS", "SEP", "PAD", "MASK")}}))
    return made


def check_tokenizer(programs, folder, rng):
    made = write_tokenizer(folder, rng)
    texts = TEXTS + ["".join(rng.choices(" abeE'\u0301\u0327\u00e9\u1112\u1161\n1[", k=rng.randrange(1, 30))) for _ in range(200)]
    texts = [text.replace("\n", " ") for text in texts]
    done = subprocess.run([programs / "petlab-trainer", "tokenize", "--backbone", folder], check=True,
                          input="".join(text + "\n" for text in texts), stdout=subprocess.PIPE, text=True)
    for text, line in zip(texts, done.stdout.splitlines(), strict=True):
        if json.loads(line) != made.encode(text).ids:
            sys.exit(f"{text!r}: petlab's ids are {line}, must be {made.encode(text).ids}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for case in range(options.cases):
        rng = random.Random(f"{options.seed}/{case}")
        generator = torch.Generator().manual_seed(rng.getrandbits(60))
        with tempfile.TemporaryDirectory(prefix="petlab-random-modernbert-") as golden:
            model = made_model(drawn_config(rng), generator)
            write_model(pathlib.Path(golden, "models", "modernbert"), model, rng, generator)
            petl = pathlib.Path(golden, "petl")
            save_backbone(petl / "backbone_modernbert", model)
            batches = [batch(rng, model.config) for _ in range(STEPS)]
            safetensors.torch.save_file({f"roberta.{step}.{name}": tensor for step, of in enumerate(batches)
                                         for name, tensor in of.items()}, petl / "batches.safetensors")
            for kind in KINDS:
                write_steps(petl / kind, kind, copy.deepcopy(model), batches, rng, generator)
            done = subprocess.run([options.programs / "trainer_tests", ",".join(TESTS)],
                                  env=os.environ | {"PETLAB_GOLDEN_DIR": golden, "PETLAB_GOLDEN_COUNTS": ""},
                                  stdout=subprocess.PIPE, text=True)
            check_tokenizer(options.programs, petl / "backbone_modernbert", rng)
        print(f"case {case}:", done.stdout, flush=True)
        # Catch2 succeeds even if no test has these names, so check that both ran.
        for wanted in ("golden: 1 cases of models/encoders\n", f"golden: {len(KINDS)} cases of petl/encoders\n"):
            if wanted not in done.stdout:
                sys.exit(f"trainer_tests did not print '{wanted.strip()}'")
        if done.returncode != 0:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
