#!/usr/bin/env python3
"""LoRA, IA³ and prompt tuning of a Llama with Hugging Face's PEFT, as a worker of petlab.

    pip install torch transformers peft ./python
    petlab run examples/llama/sweep.yaml --worker "python3 examples/llama/worker.py"

petlab knows neither the backbone nor these kinds: the catalog declares them. The text is petlab's
license, byte by byte; its last fifth is validation and test data.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import peft
import torch
import transformers

import petlab
from petlab.loop import Loop

TEXT = Path(__file__).resolve().parents[2] / "LICENSE"

CATALOG = petlab.Catalog(
    backbones=("llama",),
    uses=(
        "training.steps",
        "training.batch_size",
        "training.learning_rate",
        "training.checkpoint_every",
    ),
    defaults={"training.batch_size": 8, "training.learning_rate": 1e-2, "training.steps": 100},
    kinds=[
        petlab.Kind("lora", "low-rank updates of some projections", uses=["module.rank"]),
        petlab.Kind(
            "ia3",
            "rescaled keys, values and feed-forward activations",
            storage={
                "biases": "2*num_key_value_heads*head_dim + intermediate_size",
                "layers": "num_hidden_layers",
            },
        ),
        petlab.Kind(
            "prompt",
            "trained vectors before the text",
            storage={"weights": ["vectors*hidden_size"], "per_model": True},
            size="vectors",
            sizes={"vectors": "module.vectors"},
        ),
    ],
    fields=[
        petlab.Field(
            "module.targets",
            str,
            "qv",
            "which projections get LoRA",
            values=("qv", "all"),
            kinds=["lora"],
        ),
        petlab.Field("module.vectors", int, 8, "length of the prompt", min=1, kinds=["prompt"]),
        petlab.Field("lm.block", int, 64, "bytes of a training text", min=8, max=256),
    ],
    metrics=[petlab.Metric("perplexity", "lower")],
    tasks=[petlab.DeclaredTask("license", ["perplexity", "accuracy"], help="petlab's license")],
)


def peft_config(config: petlab.Config) -> peft.PeftConfig:
    kind = config.module.kind
    if kind == "lora":
        targets = ["q_proj", "v_proj"] if config["module.targets"] == "qv" else "all-linear"
        return peft.LoraConfig(
            task_type="CAUSAL_LM", r=config.module.rank, lora_alpha=32, target_modules=targets
        )
    if kind == "ia3":
        return peft.IA3Config(
            task_type="CAUSAL_LM",
            target_modules=["k_proj", "v_proj", "down_proj"],
            feedforward_modules=["down_proj"],
        )
    return peft.PromptTuningConfig(
        task_type="CAUSAL_LM", num_virtual_tokens=config["module.vectors"]
    )


@torch.no_grad()
def scores(model: torch.nn.Module, rows: torch.Tensor) -> dict[str, float]:
    """Perplexity and accuracy of the next byte."""
    model.eval()
    logits = model(input_ids=rows).logits[:, -rows.shape[1] :][:, :-1]
    model.train()
    following = rows[:, 1:]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
    right = (logits.argmax(-1) == following).double().mean()
    return {"perplexity": math.exp(loss), "accuracy": float(right)}


def train(trial: petlab.Trial) -> None:
    config, training = trial.config, trial.config.training
    torch.set_num_threads(trial.threads)
    transformers.set_seed(config.seed)
    backbone = transformers.LlamaForCausalLM.from_pretrained(trial.backbone_folder)
    model = peft.get_peft_model(backbone, peft_config(config)).to(trial.device)
    text = torch.tensor(list(TEXT.read_bytes()), device=trial.device)
    tenth, block = len(text) // 10, config["lm.block"]
    parts = {
        "validation": text[8 * tenth : 9 * tenth],
        "test": text[9 * tenth : 10 * tenth],
    }
    held_out = {name: part.unfold(0, 64, 64) for name, part in parts.items()}
    blocks = text[: 8 * tenth].unfold(0, block, 1)

    optimizer = torch.optim.AdamW(
        [weight for weight in model.parameters() if weight.requires_grad],
        lr=training.learning_rate,
    )
    for step in Loop(trial, training.steps, model=model, optimizer=optimizer):
        rows = blocks[torch.randint(len(blocks), (training.batch_size,)).to(trial.device)]
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        trial.progress(step, training.steps, loss)
    for split, rows in held_out.items():
        for name, value in scores(model, rows).items():
            trial.metric(name, value, split=split, step=training.steps)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    torch.save(trained, trial.folder / "module.pt")
    bits = sum(32 * weight.numel() for weight in trained.values())
    trial.finish(artifact="module.pt", bls_bits=bits, stored_bits=bits)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    petlab.Worker(
        "llama",
        version="1",
        numerics={"version": "1", "torch": torch.__version__, "peft": peft.__version__},
        catalog=CATALOG,
    ).run(train)
