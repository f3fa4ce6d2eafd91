#!/usr/bin/env python3
"""Compares petlab with Hugging Face's transformers on random small T5 checkpoints: hidden states,
logits, both losses, gradients, and generated texts for every setting.

usage: random_t5.py FOLDER_OF_PROGRAMS [--cases N] [--seed S]

Each case is a folder with the golden layout (tests/support/golden.h). trainer_tests reads the cases
and prints the worst difference. Sizes, kind (1.0, 1.1), file format and weights are random. If
float32 and float64 generate different texts, there is a tie, and other inputs are drawn.

Runs in the virtual environment of scripts/library_venv.sh, which scripts/setup.sh --dev makes.
"""
import argparse
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
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from transformers import T5Config, T5ForConditionalGeneration  # noqa: E402
from transformers.models.t5.modeling_t5 import T5Attention  # noqa: E402

torch.set_num_threads(1)
SOURCES, MAX_LENGTH, SCORE_TOLERANCE = 5, 16, 1e-4
TESTS = ["every T5 of the golden models*", "every generation of the golden models*"]


def drawn_config(rng):
    return T5Config(
        vocab_size=rng.randrange(40, 900), d_model=8 * rng.randrange(2, 8),
        d_kv=rng.randrange(3, 14), num_heads=rng.randrange(1, 6), d_ff=rng.randrange(10, 120),
        num_layers=rng.randrange(1, 4), num_decoder_layers=rng.randrange(1, 4),
        relative_attention_num_buckets=rng.choice([8, 16, 32]),
        relative_attention_max_distance=rng.choice([24, 64, 128]), feed_forward_proj=rng.choice(["relu", "gated-gelu"]),
        tie_word_embeddings=rng.random() < 0.5, layer_norm_epsilon=rng.choice([1e-6, 1e-5]),
        dropout_rate=0.1, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)


def made_model(config, rng):
    generator = torch.Generator().manual_seed(rng.getrandbits(60))
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() == 1:
                weight.copy_(1 + 0.3 * noise)
            elif "relative_attention_bias" in name:
                weight.copy_(noise)
            elif name in ("shared.weight", "lm_head.weight"):
                # Tied embeddings are also the output projection, divided by the root of the width.
                weight.copy_(noise * (2 if config.tie_word_embeddings else 0.7))
            else:
                weight.copy_(noise * 1.5 / weight.shape[1] ** 0.5 *
                             (weight.shape[1] ** -0.25 if ".q." in name else 1))
    return model


def drawn_ids(rng, config, length):
    return [rng.randrange(2, config.vocab_size) for _ in range(length - 1)] + [1]


def padded(rows, filler):
    width = max(map(len, rows))
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def computed(model, ids, mask, labels, long_ids, long_decoder_ids):
    """The expected tensors by name, without the inputs. Gradients are those of the mean losses."""
    found = {}
    out = model(input_ids=ids, attention_mask=mask, labels=labels, output_hidden_states=True)
    for i, state in enumerate(out.encoder_hidden_states):
        found[f"encoder_hidden_states.{i}"] = state
    for i, state in enumerate(out.decoder_hidden_states):
        found[f"decoder_hidden_states.{i}"] = state
    found["logits"] = out.logits
    for name, prefix, smoothing in (("loss", "grad.", 0.0),
                                    ("loss_smoothed", "grad_smoothed.", 0.1)):
        loss = F.cross_entropy(out.logits.flatten(0, 1), labels.flatten(), ignore_index=-100,
                               label_smoothing=smoothing)
        found[name] = loss.reshape(1)
        model.zero_grad()
        loss.backward(retain_graph=True)
        for weight, parameter in model.named_parameters():
            if weight != "lm_head.weight":
                found[prefix + weight] = parameter.grad.clone()
    with torch.no_grad():
        far = model(input_ids=long_ids, decoder_input_ids=long_decoder_ids,
                    output_hidden_states=True)
    found["long.encoder_last_hidden_state"] = far.encoder_last_hidden_state
    found["long.decoder_last_hidden_state"] = far.decoder_hidden_states[-1]
    return {name: tensor.detach() for name, tensor in found.items()}


def write_expected(folder, model, rng):
    config = model.config
    sources = [drawn_ids(rng, config, rng.randrange(1, 30)) for _ in range(SOURCES)]
    ids = padded(sources, 0)
    mask = padded([[1] * len(row) for row in sources], 0)
    labels = padded([drawn_ids(rng, config, rng.randrange(1, 12)) for _ in range(SOURCES)], -100)
    fixed = {
        "input_ids": ids, "attention_mask": mask, "labels": labels,
        "decoder_input_ids": model._shift_right(labels),
        "long.input_ids": padded([drawn_ids(rng, config, 150)], 0),
        "long.decoder_input_ids": padded([[0, *drawn_ids(rng, config, 139)]], 0)}
    arguments = (ids, mask, labels, fixed["long.input_ids"], fixed["long.decoder_input_ids"])
    wanted = computed(model, *arguments)
    exact = computed(double_of(model), *arguments)
    positions = torch.arange(-200, 201)
    buckets = {"relative_position": positions}
    for name, both in (("bidirectional", True), ("causal", False)):
        buckets[name] = T5Attention._relative_position_bucket(
            positions, both, config.relative_attention_num_buckets,
            config.relative_attention_max_distance)
    described = {}
    for name, tensor in wanted.items():
        deviation = (tensor.double() - exact[name]).abs().max().item()
        described[name] = {"atol": 1e-5 * max(1.0, tensor.abs().max().item()) + 4 * deviation,
                           "rtol": 1e-5}
    tensors = fixed | wanted | {f"buckets.{name}": values for name, values in buckets.items()}
    safetensors.torch.save_file({name: tensor.contiguous().clone()
                                 for name, tensor in tensors.items()},
                                folder / "expected.safetensors")
    (folder / "expected.json").write_text(json.dumps({"tensors": described}))


def double_of(model):
    twin = T5ForConditionalGeneration(model.config)
    twin.load_state_dict(model.state_dict())
    return twin.eval().double()


def settings(rng):
    """Yields a case's settings, greedy and beam search, as arguments of generate."""
    def some(wanted):
        options = dict(wanted)
        if rng.random() < 0.4:
            options["min_length"] = rng.randrange(2, 8)
        if rng.random() < 0.4:
            options["no_repeat_ngram_size"] = rng.randrange(1, 4)
        return options
    for beams in (1, 1, 2, 4, rng.randrange(3, 8)):
        options = {} if beams == 1 else {
            "num_beams": beams, "early_stopping": rng.random() < 0.5,
            "length_penalty": rng.choice([1.0, 0.6, 0.0, 1.7])}
        yield some(options)


def outputs(model, inputs, options):
    beams = options.get("num_beams", 1)
    with torch.no_grad():
        made = model.generate(
            input_ids=padded(inputs, 0), attention_mask=padded([[1] * len(i) for i in inputs], 0),
            max_length=MAX_LENGTH, do_sample=False, num_return_sequences=beams,
            return_dict_in_generate=True, output_scores=True,
            # The cache has the encoder's number of layers; some decoders have more.
            use_cache=False, **options)
    texts = []
    for row in made.sequences.tolist():
        text = row[1:]
        if 1 in text:
            text = text[:text.index(1) + 1]
        texts.append([0, *text])
    if beams > 1:
        scores = made.sequences_scores.tolist()
        nbest = [{"ids": ids, "score": score} for ids, score in zip(texts, scores)]
        return [{"nbest": nbest[i:i + beams]} for i in range(0, len(nbest), beams)]
    # generate's scores exclude banned words, so compute the texts' log probabilities again.
    sums = []
    for source, text in zip(inputs, texts):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([source]),
                           decoder_input_ids=torch.tensor([text[:-1]])).logits[0]
        steps = logits.log_softmax(-1)
        sums.append(sum(steps[i, word].item() for i, word in enumerate(text[1:])))
    return [{"ids": ids, "sum_logprob": total} for ids, total in zip(texts, sums)]


def same_texts(a, b):
    def ids(of):
        return [[one["ids"] for one in text.get("nbest", [text])] for text in of]
    return ids(a) == ids(b)


def write_generation(folder, model, rng):
    """Writes generation.json. Returns how many draws of inputs had a tie."""
    twin, ties = double_of(model), 0
    all_settings = list(settings(rng))
    while True:
        inputs = [drawn_ids(rng, model.config, rng.randrange(1, 20)) for _ in range(3)]
        cases = {}
        for n, options in enumerate(all_settings):
            made = outputs(model, inputs, options)
            if not same_texts(made, outputs(twin, inputs, options)):
                break
            cases[f"{n}: {json.dumps(options)}"] = {"options": options, "outputs": made}
        if len(cases) == len(all_settings):
            break
        ties += 1
        if ties == 50:
            sys.exit(f"{folder}: fifty drawings with a tie each, expected one without")
    (folder / "generation.json").write_text(json.dumps(
        {"max_length": MAX_LENGTH, "score_tolerance": SCORE_TOLERANCE, "input_ids": inputs,
         "cases": cases}))
    return ties


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="petlab-random-t5-") as golden:
        ties = 0
        for case in range(options.cases):
            rng = random.Random(f"{options.seed}/{case}")
            folder = pathlib.Path(golden, "models", f"t5-{case}")
            folder.mkdir(parents=True)
            model = made_model(drawn_config(rng), rng)
            model.save_pretrained(folder, safe_serialization=rng.random() < 0.6,
                                  max_shard_size=rng.choice(["5GB", "40KB"]))
            write_expected(folder, model, rng)
            ties += write_generation(folder, model, rng)
        print(f"{options.cases} checkpoints, seed {options.seed}; {ties} drawings of inputs had a tie",
              flush=True)
        done = subprocess.run([options.programs / "trainer_tests", ",".join(TESTS)],
                              env=os.environ | {"PETLAB_GOLDEN_DIR": golden,
                                                "PETLAB_GOLDEN_COUNTS": ""},
                              stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    # Catch2 succeeds even if no test has these names, so check that both ran.
    for wanted in (f"golden: {options.cases} cases of models/t5\n", "cases of models/generation\n"):
        if wanted not in done.stdout:
            sys.exit(f"trainer_tests did not print '{wanted.strip()}'")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
