#!/usr/bin/env python3
"""LoRA with Hugging Face's transformers and PEFT, as a worker of petlab.

    pip install torch transformers peft ./python
    petlab run examples/peft.yaml --worker "python3 examples/peft_worker.py"

It trains single-task classification (GLUE's single sentences and pairs, or a task of your own with
labels) on an encoder, one process for many trials. docs/python.md has what it gave on CoLA, beside
petlab-trainer.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
import time
from collections.abc import Iterator
from pathlib import Path

import peft
import torch
import transformers

import petlab

# Seeds each permutation of a task's rows, the same for every trial (docs/reference/tasks.md).
SPLIT_SEED = 42
HELD_OUT = 1000

Example = tuple[list[str], int]


def read_rows(layout: dict, file: Path, classes: tuple[str, ...]) -> list[Example]:
    """A file's rows as texts and the number of the label. Raises TrialFailed naming the line."""
    if layout["format"] not in ("tsv", "csv"):
        raise petlab.TrialFailed(f"{file}: format is {layout['format']}, must be tsv or csv")
    plain = layout["format"] == "tsv"
    rows = []
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(
            lines,
            delimiter="\t" if plain else ",",
            quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
        )
        names = next(reader) if layout.get("header", True) else None
        column = {name: at for at, name in enumerate(names)} if names else None
        for row in reader:
            try:
                cells = [
                    row[column[name] if column else int(name)]
                    for name in [*layout["text_columns"], layout["target_column"]]
                ]
                rows.append((cells[:-1], classes.index(cells[-1])))
            except (IndexError, KeyError, ValueError) as error:
                raise petlab.TrialFailed(f"{file}:{reader.line_num}: {error}") from error
    return rows


def load_splits(trial: petlab.Trial) -> dict[str, list[Example]]:
    """Training, validation and test examples, split as petlab-trainer splits them."""
    task = trial.tasks[0]
    if task.raw.get("kind") != "classification" or task.raw.get("target") != "label":
        raise petlab.TrialFailed(f"task {task.name} has no labels; this worker needs them")
    files = task.files()
    rows = {
        part: read_rows(dict(files.layout), file, task.classes)
        for part, file in (
            ("train", files.train),
            ("validation", files.validation),
            ("test", files.test),
        )
        if file is not None
    }

    def permuted(part: str) -> list[Example]:
        generator = torch.Generator().manual_seed(SPLIT_SEED)
        return [rows[part][i] for i in torch.randperm(len(rows[part]), generator=generator)]

    rule = task.raw["split"]
    if rule == "glue_small":
        order, half = permuted("validation"), len(rows["validation"]) // 2
        splits = {"train": rows["train"], "validation": order[:half], "test": order[half:]}
    elif rule == "glue_large":
        order = permuted("train")
        held = len(order) // 2 if len(order) < 2 * HELD_OUT else HELD_OUT
        splits = {"train": order[held:], "validation": order[:held], "test": rows["validation"]}
    elif rule == "given":
        splits = rows
    else:
        raise petlab.TrialFailed(f"task {task.name}: split is {rule}, which this worker lacks")
    data = trial.config.data
    for part, most in (
        ("train", data.max_train_examples),
        ("validation", data.max_validation_examples),
        ("test", data.max_test_examples),
    ):
        splits[part] = splits[part][: most or None]
    return splits


def confusion(predicted: list[int], wanted: list[int]) -> tuple[int, int, int, int]:
    pairs = list(zip(predicted, wanted, strict=True))
    return tuple(pairs.count(pair) for pair in ((1, 1), (0, 0), (1, 0), (0, 1)))


def accuracy(predicted: list[int], wanted: list[int]) -> float:
    return sum(p == w for p, w in zip(predicted, wanted, strict=True)) / len(wanted)


def f1(predicted: list[int], wanted: list[int]) -> float | None:
    right, _, wrong, missed = confusion(predicted, wanted)
    return 2 * right / (2 * right + wrong + missed) if right + wrong + missed else None


def matthews(predicted: list[int], wanted: list[int]) -> float:
    tp, tn, fp, fn = confusion(predicted, wanted)
    size = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / size if size else 0.0


METRICS = {"accuracy": accuracy, "f1": f1, "matthews": matthews}


LACKING = ("steps", "warmup_steps", "label_smoothing", "evaluate_every", "compute")


def require_defaults(training: petlab.TrainingConfig) -> None:
    """A field that this worker knows nothing of would be ignored."""
    for field in dataclasses.fields(training):
        value = getattr(training, field.name)
        if field.name in LACKING and value != field.default:
            raise petlab.TrialFailed(
                f"training.{field.name} is {value!r}, which this worker lacks: "
                f"it is always {field.default!r}"
            )


# Kept from one trial of the process to the next.
tokenizer_of = functools.cache(transformers.AutoTokenizer.from_pretrained)


class Run:
    """One trial: its model, its optimizer and where it stands."""

    def __init__(self, trial: petlab.Trial) -> None:
        config = trial.config
        module, training = config.module, config.training
        task = trial.tasks[0]
        if module.kind != "lora" or module.share or module.mask != "none" or len(trial.tasks) > 1:
            raise petlab.TrialFailed("this worker trains LoRA, unshared, unmasked, on one task")
        require_defaults(training)
        if config.evaluation.keep_predictions:
            raise petlab.TrialFailed("evaluation.keep_predictions: this worker keeps none")
        for metric in task.metrics:
            if metric not in METRICS or (metric != "accuracy" and len(task.classes) != 2):
                raise petlab.TrialFailed(f"task {task.name}: this worker lacks metric {metric}")
        self.trial = trial
        self.device = trial.device
        torch.set_num_threads(trial.threads)
        torch.manual_seed(config.seed)
        folder = trial.backbone_folder
        self.tokenizer = tokenizer_of(folder)
        self.splits = {
            part: [(self.encode(texts), label) for texts, label in examples]
            for part, examples in load_splits(trial).items()
        }
        dropout = (
            {}
            if training.dropout < 0
            else {
                "hidden_dropout_prob": training.dropout,
                "attention_probs_dropout_prob": training.dropout,
            }
        )
        backbone = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=len(task.classes), **dropout
        )
        lora = peft.LoraConfig(
            task_type=peft.TaskType.SEQ_CLS,
            r=module.rank,
            lora_alpha=module.alpha,
            target_modules=["query", "value"],
        )
        self.model = peft.get_peft_model(backbone, lora).to(self.device)
        self.trained = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        plain = [p for n, p in self.trained.items() if n.endswith("bias") or "LayerNorm" in n]
        decayed = [p for p in self.trained.values() if not any(p is q for q in plain)]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": training.weight_decay},
                {"params": plain, "weight_decay": 0.0},
            ],
            lr=training.learning_rate,
        )
        self.steps_an_epoch = math.ceil(len(self.splits["train"]) / training.batch_size)
        self.steps = self.steps_an_epoch * training.epochs
        self.schedule = transformers.get_linear_schedule_with_warmup(
            self.optimizer, math.ceil(training.warmup_ratio * self.steps), self.steps
        )
        self.step = 0
        self.seconds = 0.0
        self.best = (-math.inf, 0)  # score on validation, step
        self.best_weights: dict[str, torch.Tensor] = {}

    def encode(self, texts: list[str]) -> list[int]:
        most = self.trial.config.data.max_tokens
        return self.tokenizer(*texts, truncation=True, max_length=most)["input_ids"]

    def batch(self, examples: list) -> tuple[dict, torch.Tensor]:
        inputs = self.tokenizer.pad(
            {"input_ids": [ids for ids, _ in examples]}, return_tensors="pt"
        ).to(self.device)
        return inputs, torch.tensor([label for _, label in examples], device=self.device)

    def epoch(self, number: int) -> Iterator[list]:
        """An epoch's batches; of the seed alone, so that a resumed attempt draws the same."""
        generator = torch.Generator().manual_seed(self.trial.config.seed * 1000 + number)
        train, size = self.splits["train"], self.trial.config.training.batch_size
        order = torch.randperm(len(train), generator=generator).tolist()
        for begin in range(0, len(order), size):
            yield [train[i] for i in order[begin : begin + size]]

    def train_step(self, examples: list) -> float:
        began = time.monotonic()
        self.model.train()
        parts = self.trial.config.training.gradient_accumulation
        size = math.ceil(len(examples) / parts)
        loss = 0.0
        for begin in range(0, len(examples), size):
            part = examples[begin : begin + size]
            inputs, labels = self.batch(part)
            logits = self.model(**inputs).logits
            mean = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
            (mean / len(examples)).backward()
            loss += mean.item() / len(examples)
        if not math.isfinite(loss):
            raise petlab.TrialFailed(f"the loss at step {self.step + 1} is {loss}", "not_finite")
        if (most := self.trial.config.training.max_grad_norm) > 0:
            torch.nn.utils.clip_grad_norm_(self.trained.values(), most)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        self.step += 1
        self.seconds += time.monotonic() - began
        return loss

    @torch.no_grad()
    def evaluate(self, split: str, step: int) -> float:
        """Reports the task's metrics; their mean over those that select."""
        began = time.monotonic()
        self.model.eval()
        examples = sorted(self.splits[split], key=lambda example: len(example[0]))
        predicted: list[int] = []
        for begin in range(0, len(examples), 64):
            inputs, _ = self.batch(examples[begin : begin + 64])
            predicted += self.model(**inputs).logits.argmax(-1).tolist()
        wanted = [label for _, label in examples]
        task = self.trial.tasks[0]
        scores = {name: METRICS[name](predicted, wanted) for name in task.metrics}
        for name, value in scores.items():
            self.trial.metric(name, value, split=split, step=step)
        self.trial.log(f"step {step}: {split} {scores}")
        self.seconds += time.monotonic() - began
        chosen = [scores[name] for name in task.select_by]
        return -math.inf if None in chosen else sum(chosen) / len(chosen)

    def state(self) -> dict:
        return {
            "weights": {name: p.detach() for name, p in self.trained.items()},
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "best": self.best,
            "best_weights": self.best_weights,
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict) -> None:
        self.set_weights(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.best, self.best_weights = state["best"], state["best_weights"]
        torch.set_rng_state(state["random"])

    @torch.no_grad()
    def set_weights(self, weights: dict[str, torch.Tensor]) -> None:
        for name, parameter in self.trained.items():
            parameter.copy_(weights[name])

    def checkpoint(self) -> None:
        self.trial.checkpoint(self.step, lambda file: torch.save(self.state(), file))

    def run(self) -> None:
        trial, training = self.trial, self.trial.config.training
        if (state := trial.restore(torch.load)) is not None:
            self.restore(state)
            trial.log(f"resumes at step {self.step}")
        while self.step < self.steps:
            number, done = divmod(self.step, self.steps_an_epoch)
            for at, examples in enumerate(self.epoch(number)):
                if at < done:
                    continue  # before the checkpoint
                loss = self.train_step(examples)
                trial.progress(self.step, self.steps, loss)
                every = training.checkpoint_every
                at_end = at + 1 == self.steps_an_epoch
                if not at_end and (trial.stopping or (every and self.step % every == 0)):
                    self.checkpoint()
            score = self.evaluate("validation", self.step)
            if score > self.best[0] or not self.best_weights:
                self.best = (score, self.step)
                self.best_weights = {n: p.detach().clone() for n, p in self.trained.items()}
            if self.step < self.steps:
                self.checkpoint()
        self.set_weights(self.best_weights)
        self.evaluate("test", self.best[1])
        self.model.save_pretrained(trial.folder / "peft")
        trial.finish(
            self.steps,
            artifact="peft/adapter_model.safetensors",
            stored_bits=32 * sum(p.numel() for n, p in self.trained.items() if "lora_" in n),
            train_seconds=self.seconds,
            examples={trial.config.task: {n: len(rows) for n, rows in self.splits.items()}},
        )


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    petlab.Worker(
        "peft-worker",
        version=peft.__version__,
        numerics={
            "version": "1",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        devices=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"],
    ).run(lambda trial: Run(trial).run())
