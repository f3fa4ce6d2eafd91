#!/usr/bin/env python3
"""Compares the logits of petlab-trainer with those of PEFT and AdapterHub's adapters, for modules
exported by petlab and for modules imported from these libraries.

Both libraries are tested here because they share the backbones and the check.

usage: module_formats.py FOLDER_OF_PROGRAMS

Runs in the virtual environment of scripts/library_venv.sh, which scripts/setup.sh --dev makes.
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys

import library_venv

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
library_venv.enter("PEFT and AdapterHub are")
sys.path.insert(0, str(SOURCE / "tests/end_to_end"))
import adapters  # noqa: E402
import peft  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import tiny_world  # noqa: E402
from tiny_world import TRAINER, TinyWorld  # noqa: E402
from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode  # noqa: E402

torch.set_num_threads(1)
D_MODEL, LAYERS = 24, 3
SHAPE = {"hidden_size": D_MODEL, "num_hidden_layers": LAYERS, "num_attention_heads": 3,
         "intermediate_size": 40, "initializer_range": 0.4}
LABELS = ["poor", "fair", "fine"]
TEXTS = ["the film is good", "bad", "a very very bad plot", "not good not bad", "the plot",
         "is the film not the very good film", "good\tthe plot is bad", "film\ta plot"]
MODELS = {"bert": (transformers.BertConfig, transformers.BertModel,
                   transformers.BertForSequenceClassification),
          "roberta": (transformers.RobertaConfig, transformers.RobertaModel,
                      transformers.RobertaForSequenceClassification)}
SWEEP = """sweep: tiny
base:
  backbone: ./{kind}
  module: {{kind: {module}, {sizes}}}
  training: {{epochs: 2, batch_size: 12, learning_rate: 2e-2, mask_learning_rate: 5e-2}}
variants:
{variants}
"""
SINGLE = {"vanilla": "module.share: false, module.mask: none",
          "propetl": "module.share: true, module.mask: learned, module.sparsity_ratio: 0.5",
          "random": "module.share: true, module.mask: random, module.sparsity_ratio: 0.5",
          "only_share": "module.share: true, module.mask: none",
          "only_mask": "module.share: false, module.mask: learned, module.sparsity_ratio: 0.3"}
TASK = """task: {name}
files: {{train: {name}-train.tsv, validation: {name}-dev.tsv, test: {name}-dev.tsv}}
columns: {{text: sentence, {target}}}
{more}
"""


def randomise(model, seed, scale=0.2):
    """Draws the model's weights: the libraries' new modules have no effect on the output."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if value.requires_grad:
                value.copy_(torch.randn(value.shape, generator=generator) * scale)


class ModuleFormats(TinyWorld):
    def setUp(self):
        super().setUp()
        for kind in MODELS:
            self.make_backbone(kind)
        films = TASK.format(name="films", target="label: label",
                            more="labels: [poor, fair, fine]\nmetrics: [accuracy]\n"
                                 "select_by: [accuracy]")
        self.write("films.yaml", films)
        self.write("plots.yaml", films.replace("films", "plots"))
        self.write("grades.yaml", TASK.format(name="grades", target="score: grade",
                                              more="metrics: [pearson]\nselect_by: [pearson]"))
        for name in ("films", "plots", "grades"):
            for part, rows in (("train", 36), ("dev", 12)):
                lines = ["label\tgrade\tsentence"]
                for i in range(rows):
                    grade = (i * 7 + rows + len(name)) % 3
                    word = ["bad", "a", "good"][grade]
                    lines.append(f"{LABELS[grade]}\t{grade / 2 + i % 2}\tthe film is {word}"
                                 + " very" * (i % 4))
                self.write(f"{name}-{part}.tsv", "\n".join(lines) + "\n")
        self.write("texts.txt", "\n".join(TEXTS) + "\n")

    def make_backbone(self, kind):
        config_class, _, model_class = MODELS[kind]
        folder = self.root / kind
        torch.manual_seed(7)
        if kind == "bert":
            words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + tiny_world.WORDS
            self.write("bert/vocab.txt", "\n".join(words) + "\n")
            config = config_class(vocab_size=len(words), max_position_embeddings=40,
                                  num_labels=3, **SHAPE)
        else:
            symbols = ["<s>", "<pad>", "</s>", "<unk>", *bytes_to_unicode().values(),
                       "\u0120f", "is", "<mask>"]
            self.write("roberta/vocab.json", json.dumps({s: i for i, s in enumerate(symbols)}))
            self.write("roberta/merges.txt", "#version: 0.2\n\u0120 f\ni s\n")
            config = config_class(vocab_size=len(symbols), max_position_embeddings=60,
                                  type_vocab_size=1, pad_token_id=1, bos_token_id=0,
                                  eos_token_id=2, num_labels=3, **SHAPE)
        model = model_class(config)
        with torch.no_grad():
            for name, value in model.named_parameters():
                if "LayerNorm" in name:
                    value.add_(torch.randn_like(value) * 0.1)
                elif name.endswith("bias"):
                    value.copy_(torch.randn_like(value) * 0.1)
        model.save_pretrained(folder)

    def model(self, kind, outputs=3):
        """Loads the backbone with its head, as a user would."""
        return MODELS[kind][2].from_pretrained(
            self.root / kind, num_labels=outputs, ignore_mismatched_sizes=True).eval()

    def trainer(self, *words, code=0):
        done = self.petlab(*words, program=TRAINER)
        self.assertEqual(done.code, code, done)
        return done

    def predicted(self, artifact):
        """petlab's logits or scores of TEXTS: (texts, outputs)."""
        lines = self.trainer("predict", "--artifact", artifact, "--input", "texts.txt").out
        rows = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual(len(rows), len(TEXTS))
        for row in rows:
            if "label" in row:
                self.assertEqual(row["label"], LABELS[max(range(3), key=row["logits"].__getitem__)])
        return torch.tensor([row.get("logits") or [row["score"]] for row in rows])

    def inputs(self, kind):
        """TEXTS as the libraries' inputs, tokenized by petlab."""
        process = subprocess.run(
            [TRAINER, "tokenize", "--backbone", f"./{kind}"], cwd=self.root,
            env=self.environment(), input="\n".join(TEXTS).replace("\t", "\n") + "\n",
            stdout=subprocess.PIPE, text=True, check=True)
        parts = map(json.loads, process.stdout.splitlines())
        rows = []
        for text in TEXTS:
            first = next(parts)
            second = next(parts)[1:] if "\t" in text else []
            if kind == "roberta" and second:
                second = [first[-1]] + second
            rows.append((first + second, [0] * len(first) + [int(kind == "bert")] * len(second)))
        width = max(len(ids) for ids, _ in rows)
        pad = 1 if kind == "roberta" else 0
        batch = {"input_ids": [ids + [pad] * (width - len(ids)) for ids, _ in rows],
                 "attention_mask": [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows],
                 "token_type_ids": [types + [0] * (width - len(types)) for _, types in rows]}
        if kind == "roberta":
            del batch["token_type_ids"]
        return {name: torch.tensor(value) for name, value in batch.items()}

    def logits(self, model, kind):
        if not hasattr(self, "kept_inputs"):
            self.kept_inputs = {}
        if kind not in self.kept_inputs:
            self.kept_inputs[kind] = self.inputs(kind)
        model.eval()
        with torch.no_grad():
            return model(**self.kept_inputs[kind]).logits

    def same(self, ours, theirs):
        self.assertEqual(ours.shape, theirs.shape)
        self.assertGreater(theirs.abs().max(), 0.01)
        # The check needs a module whose output depends on the text.
        self.assertGreater((theirs - theirs[0]).abs().max(), 1e-3)
        apart = (ours - theirs).abs().max().item() / max(1.0, theirs.abs().max().item())
        self.assertLessEqual(apart, 1e-5)

    def train(self, kind, module, variants, sizes):
        """Trains the variants and returns their artifacts by name."""
        text = "\n".join(f"  {name}: {{{fields}}}" for name, fields in variants.items())
        self.write("sweep.yaml", SWEEP.format(kind=kind, module=module, variants=text, sizes=sizes))
        runs = f"{kind}-{module}"
        done = self.run_sweep("--db", f"{runs}.db", "--runs", runs)
        self.assertEqual(done.code, 0, done)
        rows = self.query("SELECT DISTINCT variant, trial_id FROM sweep_results", f"{runs}.db")
        self.assertEqual({row["variant"] for row in rows}, set(variants))
        return {row["variant"]: self.root / runs / row["trial_id"] / "1/artifact.petl"
                for row in rows}

    def single(self, module, sizes):
        for kind in MODELS:
            # One backbone suffices to test merging of masks.
            names = SINGLE if kind == "roberta" else ["vanilla", "propetl"]
            variants = {name: f"task: films.yaml, {SINGLE[name]}" for name in names}
            variants["score"] = f"task: grades.yaml, {SINGLE['propetl']}"
            for name, artifact in self.train(kind, module, variants, sizes).items():
                yield kind, name, artifact

    def multi(self, module, sizes):
        for kind in MODELS:
            hybrid = {"hybrid": "tasks: [films.yaml, plots.yaml], " + SINGLE["propetl"]}
            for artifact in self.train(kind, module, hybrid, sizes).values():
                yield kind, artifact

    # ---- LoRA and PEFT
    def load_peft(self, kind, folder, outputs=3):
        return peft.PeftModel.from_pretrained(self.model(kind, outputs), self.root / folder)

    def test_exported_lora_computes_the_same_in_peft(self):
        for kind, name, artifact in self.single("lora", "rank: 5, alpha: 7"):
            with self.subTest(kind=kind, variant=name):
                self.trainer("export", "--artifact", artifact, "--format", "peft", "--out", "out")
                ours = self.predicted(artifact)
                model = self.load_peft(kind, "out", 1 if name == "score" else 3)
                self.same(ours, self.logits(model, kind))
                # Users deploy the update merged into the backbone's weights.
                self.same(ours, self.logits(model.merge_and_unload(), kind))
                # Imports the export again.
                self.trainer("import", "--format", "peft", "--from", "out", "--backbone",
                             f"./{kind}", "--out", "again.petl", "--task",
                             "grades.yaml" if name == "score" else "films.yaml")
                self.assertTrue(torch.equal(self.predicted("again.petl"), ours))
                storage = json.loads(self.petlab("storage", "again.petl", "--json").out)
                # 32 bits for A and B of query and value in each layer; the head is not counted.
                self.assertEqual(storage["bls_bits"], 32 * 4 * 5 * D_MODEL * LAYERS)
                shutil.rmtree(self.root / "out")

    def test_exported_lora_of_a_modernbert_computes_the_same_in_peft(self):
        shutil.copytree(self.root / "roberta", self.root / "modern")
        torch.manual_seed(8)
        vocabulary = len(json.loads((self.root / "modern/vocab.json").read_text()))
        transformers.ModernBertModel(transformers.ModernBertConfig(
            vocab_size=vocabulary, max_position_embeddings=60, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            cls_token_id=0, sep_token_id=2, num_labels=3, local_attention=4, reference_compile=False,
            **SHAPE | {"num_attention_heads": 2})).save_pretrained(self.root / "modern")
        artifact = self.train("modern", "lora", {"one": f"task: films.yaml, {SINGLE['propetl']}"},
                              "rank: 5, alpha: 7")["one"]
        self.trainer("export", "--artifact", artifact, "--format", "peft", "--out", "out")
        base = transformers.AutoModel.from_pretrained(self.root / "modern")
        model = peft.PeftModel.from_pretrained(base, self.root / "out").eval()
        head = safetensors.torch.load_file(self.root / "out/head.safetensors")
        ours = self.predicted(artifact)
        for one in (model, model.merge_and_unload()):
            with torch.no_grad():
                first = one(**self.inputs("roberta")).last_hidden_state[:, 0]
            inner = torch.tanh(first @ head["dense.weight"].T + head["dense.bias"])
            self.same(ours, inner @ head["out_proj.weight"].T + head["out_proj.bias"])
        self.trainer("import", "--format", "peft", "--from", "out", "--backbone", "./modern", "--out", "again.petl",
                     "--task", "films.yaml")
        self.assertTrue(torch.equal(self.predicted("again.petl"), ours))
        # What reaches the keys has no counterpart.
        weights = safetensors.torch.load_file(self.root / "out/adapter_model.safetensors")
        name = "base_model.model.layers.1.attn.Wqkv.lora_B.weight"
        weights[name][D_MODEL + 1, 0] = 1
        safetensors.torch.save_file(weights, self.root / "out/adapter_model.safetensors")
        self.refused(f"tensor {name} acts on keys, or mixes queries and values, must be 0 there: ", "import",
                     "--format", "peft", "--from", "out", "--backbone", "./modern", "--out", "bad.petl")

    def test_hybrid_masks_are_merged_for_the_named_task(self):
        for kind, artifact in self.multi("lora", "rank: 4, alpha: 8"):
            refused = self.trainer("export", "--artifact", artifact, "--format", "peft", "--out",
                                   "out", code=2)
            self.assertEqual(refused.err, "petlab-trainer: the artifact has 2 tasks: name one of "
                                          "films, plots with --task\n")
            different = []
            for task in ("films", "plots"):
                self.trainer("export", "--artifact", artifact, "--format", "peft", "--out",
                             task, "--task", task)
                self.trainer("import", "--format", "peft", "--from", task, "--backbone",
                             f"./{kind}", "--out", "one.petl", "--task", f"{task}.yaml")
                different.append(self.logits(self.load_peft(kind, task), kind))
                self.same(self.predicted("one.petl"), different[-1])
                # The task's metrics must equal those of the multi-task trial.
                both = self.trainer("predict", "--artifact", artifact, "--task", "films.yaml",
                                    "--task", "plots.yaml").out.splitlines()
                own = self.trainer("predict", "--artifact", "one.petl", "--task",
                                   f"{task}.yaml").out
                of_task = [json.loads(line) for line in both if json.loads(line)["task"] == task]
                self.assertEqual(json.loads(own)["metrics"], of_task[0]["metrics"])
            self.assertGreater((different[0] - different[1]).abs().max(), 1e-3)

    def import_peft(self, kind, model, **save):
        model.save_pretrained(self.root / "theirs", **save)
        self.trainer("import", "--format", "peft", "--from", "theirs", "--backbone", f"./{kind}",
                     "--out", "in.petl", "--task", "films.yaml")
        self.same(self.predicted("in.petl"), self.logits(model, kind))
        shutil.rmtree(self.root / "theirs")

    def test_pefts_lora_computes_the_same_in_petlab(self):
        for kind in MODELS:
            for options in ({"task_type": "SEQ_CLS", "r": 4, "lora_alpha": 12},
                            {"r": 3, "lora_alpha": 3, "init_lora_weights": "gaussian"},
                            {"task_type": "SEQ_CLS", "r": 6, "lora_alpha": 4, "use_rslora": True},
                            {"r": 4, "target_modules": r".*\.(query|value)"}):
                with self.subTest(kind=kind, **options):
                    config = peft.LoraConfig(**{"target_modules": ["query", "value"]} | options)
                    model = peft.get_peft_model(self.model(kind), config)
                    randomise(model, 5)
                    self.import_peft(kind, model, safe_serialization=options["r"] != 3)

    def test_lora_on_a_bare_encoder_takes_the_backbones_head(self):
        for kind, (_, encoder, _) in MODELS.items():
            config = peft.LoraConfig(r=2, target_modules=["query", "value"])
            bare = peft.get_peft_model(encoder.from_pretrained(self.root / kind), config)
            randomise(bare, 6)
            bare.save_pretrained(self.root / "theirs")
            self.trainer("import", "--format", "peft", "--from", "theirs", "--backbone",
                         f"./{kind}", "--out", "in.petl", "--task", "films.yaml")
            whole = peft.get_peft_model(self.model(kind), config)
            for name, value in bare.named_parameters():
                if "lora_" in name:
                    rest = name.removeprefix("base_model.model.")
                    whole.get_parameter(f"base_model.model.{kind}.{rest}").data.copy_(value)
            self.same(self.predicted("in.petl"), self.logits(whole, kind))

    def refused(self, wanted, *words, code=1):
        done = self.trainer(*words, code=code)
        self.assertIn(wanted, done.err)
        self.assertEqual(len(done.err.splitlines()), 1)

    def test_unsupported_lora_settings_are_refused_by_name(self):
        words = ("import", "--format", "peft", "--from", "theirs", "--backbone", "./roberta",
                 "--out", "in.petl")
        for options, wanted in (
                ({"target_modules": ["query", "key"]},
                 'target_modules is ["query","key"], must be query and value: '),
                ({"target_modules": ["query"]}, "has no tensor base_model.model.roberta.encoder."
                                                "layer.0.attention.self.value.lora_A.weight"),
                ({"target_modules": r".*\.(query|value|key)"}, "attention.self.key.lora_A.weight cannot be imported: "),
                ({"use_dora": True}, "use_dora is true, must be absent or switched off: "),
                ({"bias": "all"}, 'bias is "all", must be "none": '),
                ({"lora_bias": True}, "lora_bias is true, must be absent or switched off: "),
                ({"rank_pattern": {"layer.1.attention.self.query": 2}},
                 'rank_pattern is {"layer.1.attention.self.query":2}, must be absent or '),
                ({"init_lora_weights": "pissa"}, 'init_lora_weights is "pissa", must be true, '),
                ({"modules_to_save": ["word_embeddings"]},
                 "word_embeddings.weight cannot be imported: "),
                ({"layers_to_transform": [0, 2]}, "layers_to_transform is [0,2], must be ")):
            with self.subTest(**options):
                config = peft.LoraConfig(**{"target_modules": ["query", "value"], "r": 2} | options)
                peft.get_peft_model(self.model("roberta"), config).save_pretrained(
                    self.root / "theirs")
                # PEFT writes this set of names in any order.
                file = self.root / "theirs/adapter_config.json"
                fields = json.loads(file.read_text())
                if isinstance(fields["target_modules"], list):
                    fields["target_modules"].sort(reverse=True)
                file.write_text(json.dumps(fields))
                self.refused(wanted, *words)
        tuned = peft.get_peft_model(self.model("roberta"), peft.IA3Config(
            target_modules=["query"], feedforward_modules=[]))
        tuned.save_pretrained(self.root / "theirs")
        self.refused('adapter_config.json: peft_type is "IA3", must be "LORA"', *words)
        # Neither the module nor the backbone has a head.
        encoder = MODELS["roberta"][1].from_pretrained(self.root / "roberta",
                                                       add_pooling_layer=False)
        encoder.save_pretrained(self.root / "bare")
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(self.root / "roberta" / name, self.root / "bare")
        peft.get_peft_model(encoder, peft.LoraConfig(r=2, target_modules=["query", "value"])) \
            .save_pretrained(self.root / "theirs")
        self.refused("the head's dense layer is missing; looked for "
                     "base_model.model.classifier.dense in ", *words[:5], "--backbone", "./bare",
                     *words[7:])

    # ---- adapters and AdapterHub
    def load_hub(self, kind, folder, flexible, outputs=3, **options):
        if flexible:
            model = adapters.AutoAdapterModel.from_pretrained(self.root / kind)
        else:
            model = self.model(kind, outputs)
            adapters.init(model)
        name = model.load_adapter(str(self.root / folder), **options)
        model.set_active_adapters(name)
        return model

    def test_exported_adapters_compute_the_same_in_adapterhub(self):
        # The library computes the bottleneck from a factor, and 24 / 7 is not a whole number.
        for kind, name, artifact in self.single("adapter", "bottleneck: 7"):
            with self.subTest(kind=kind, variant=name):
                self.trainer("export", "--artifact", artifact, "--format", "adapterhub", "--out",
                             "out")
                ours = self.predicted(artifact)
                outputs = 1 if name == "score" else 3
                model = self.load_hub(kind, "out", True, use_safetensors=name == "random")
                self.same(ours, self.logits(model, kind))
                if kind == "roberta":  # BERT's class has half of the head in its backbone
                    model = self.load_hub(kind, "out", False, outputs)
                    self.same(ours, self.logits(model, kind))
                self.trainer("import", "--format", "adapterhub", "--from", "out", "--backbone",
                             f"./{kind}", "--out", "again.petl")
                self.assertTrue(torch.equal(self.predicted("again.petl"), ours))
                storage = json.loads(self.petlab("storage", "again.petl", "--json").out)
                self.assertEqual(storage["bls_bits"],
                                 32 * (2 * 7 * D_MODEL + 7 + D_MODEL) * LAYERS)
                shutil.rmtree(self.root / "out")

    def test_every_bottleneck_survives_the_librarys_factor(self):
        hub = json.loads(self.hub_folder("roberta", "factors").joinpath("adapter_config.json")
                         .read_text())["config"]
        self.assertEqual(int(D_MODEL // hub["reduction_factor"]), 6)
        for bottleneck in (5, 13, 15, 17):
            factor = D_MODEL / bottleneck
            if bottleneck > 5:
                # The quotient is rounded up to a float, so the library's bottleneck is one less.
                self.assertEqual(int(D_MODEL // factor), bottleneck - 1)
                factor = math.nextafter(factor, 0)
            model = adapters.AutoAdapterModel.from_pretrained(self.root / "roberta")
            model.add_adapter("a", config=adapters.SeqBnConfig(reduction_factor=factor))
            weight = model.get_adapter("a")[0]["output_adapter"].adapter_up.weight
            self.assertEqual(weight.shape[1], bottleneck)
            model.add_classification_head("a", num_labels=3)
            model.train_adapter("a")
            randomise(model, 3)
            shutil.rmtree(self.root / "theirs", ignore_errors=True)
            model.save_adapter(str(self.root / "theirs"), "a")
            self.import_hub("roberta", model)
            self.trainer("export", "--artifact", "in.petl", "--format", "adapterhub", "--out", "o")
            self.same(self.logits(self.load_hub("roberta", "o", True), "roberta"),
                      self.predicted("in.petl"))

    def hub_folder(self, kind, name, head=True, **config):
        model = adapters.AutoAdapterModel.from_pretrained(self.root / kind)
        model.add_adapter(name, config=adapters.SeqBnConfig(**{"reduction_factor": 4} | config))
        if head:
            model.add_classification_head(name, num_labels=3)
        model.save_adapter(str(self.root / "theirs"), name)
        return self.root / "theirs"

    def import_hub(self, kind, model):
        self.trainer("import", "--format", "adapterhub", "--from", "theirs", "--backbone",
                     f"./{kind}", "--out", "in.petl", "--task", "films.yaml")
        self.same(self.predicted("in.petl"), self.logits(model, kind))

    def test_adapterhubs_adapters_compute_the_same_in_petlab(self):
        for kind in MODELS:
            for config, head, safe in (({}, {"layers": 2}, False),
                                       ({"scaling": 0.3}, {"layers": 2}, True),
                                       ({"reduction_factor": 5.0},
                                        {"layers": 1, "use_pooler": True}, False)):
                with self.subTest(kind=kind, config=config, head=head):
                    model = adapters.AutoAdapterModel.from_pretrained(self.root / kind)
                    model.add_adapter("petl", config=adapters.SeqBnConfig(
                        **{"reduction_factor": 3} | config))
                    model.add_classification_head("petl", num_labels=3, **head)
                    model.train_adapter("petl")
                    randomise(model, 4)
                    model.save_adapter(str(self.root / "theirs"), "petl", use_safetensors=safe)
                    if kind == "roberta" and "use_pooler" in head:
                        # The library initialised a pooler that it did not save.
                        self.refused("the head's dense layer is missing; looked for "
                                     "roberta.pooler.dense in ", "import", "--format", "adapterhub", "--from",
                                     "theirs", "--backbone", "./roberta", "--out", "in.petl")
                    else:
                        self.import_hub(kind, model)
                    shutil.rmtree(self.root / "theirs")
            with self.subTest(kind=kind, model="of the backbone's own class"):
                model = self.model(kind)
                adapters.init(model)
                model.add_adapter("petl", config="seq_bn")
                model.train_adapter("petl")
                randomise(model, 8)
                model.save_adapter(str(self.root / "theirs"), "petl")
                self.import_hub(kind, model)
                # A module without a head gets the backbone's.
                shutil.rmtree(self.root / "theirs")
                model = self.model(kind)
                adapters.init(model)
                model.add_adapter("petl", config="seq_bn")
                for name, value in model.named_parameters():
                    value.requires_grad_(".adapters." in name)
                randomise(model, 8)
                model.set_active_adapters("petl")
                model.save_adapter(str(self.root / "theirs"), "petl", with_head=False)
                self.import_hub(kind, model)
                shutil.rmtree(self.root / "theirs")

    def test_unsupported_adapter_settings_are_refused_by_name(self):
        words = ("import", "--format", "adapterhub", "--from", "theirs", "--backbone",
                 "./roberta", "--out", "in.petl")
        for config, wanted in (
                ({"mh_adapter": True}, "config: mh_adapter is true, must be false: "),
                ({"non_linearity": "swish"}, 'non_linearity is "swish", must be "relu": '),
                ({"original_ln_before": False}, "original_ln_before is false, must be true: "),
                ({"ln_after": True}, "ln_after is true, must be absent or switched off: "),
                ({"residual_before_ln": "post_add"}, 'residual_before_ln is "post_add", must be '),
                ({"use_gating": True}, "use_gating is true, must be absent or switched off: "),
                ({"scaling": "learned"}, 'scaling is "learned", must be a number: '),
                ({"leave_out": [1]}, "leave_out is [1], must be absent or switched off: "),
                ({"inv_adapter": "nice", "inv_adapter_reduction_factor": 2.0},
                 'inv_adapter is "nice", must be '),
                ({"phm_layer": True, "phm_dim": 2, "reduction_factor": 2},
                 "phm_layer is true, must be ")):
            with self.subTest(**config):
                self.hub_folder("roberta", "petl", **config)
                self.refused(wanted, *words)
                shutil.rmtree(self.root / "theirs")
        model = adapters.AutoAdapterModel.from_pretrained(self.root / "roberta")
        for name, config, head, wanted in (
                ("p", adapters.PrefixTuningConfig(), {}, 'architecture is "prefix_tuning", must '),
                ("l", adapters.LoRAConfig(), {}, 'architecture is "lora", must be null: '),
                ("h", "seq_bn", {"layers": 3}, "layers is 3, must be 2 without use_pooler: "),
                ("a", "seq_bn", {"activation_function": "relu"},
                 'activation_function is "relu", must be "tanh": ')):
            model.add_adapter(name, config=config)
            model.add_classification_head(name, num_labels=3, **head)
            model.save_adapter(str(self.root / "theirs"), name)
            self.refused(wanted, *words)
            shutil.rmtree(self.root / "theirs")
        model.add_adapter("t", config="seq_bn")
        model.add_tagging_head("t", num_labels=3)
        model.save_adapter(str(self.root / "theirs"), "t")
        self.refused('head_config.json: config: head_type is "tagging", must be '
                     '"classification": ', *words)

    def test_a_module_without_support_in_a_format_is_not_exported(self):
        variants = {"lora": "task: films.yaml, module: {kind: lora, rank: 2}",
                    "adapter": "task: films.yaml, module: {kind: adapter, bottleneck: 2}",
                    "prefix": "task: films.yaml, module: {kind: prefix, prefix_length: 2, "
                              "prefix_hidden: 4}",
                    "head": "task: films.yaml, module: {kind: head_only}"}
        text = "\n".join(f"  {name}: {{{fields}}}" for name, fields in variants.items())
        self.write("sweep.yaml", "sweep: tiny\nbase:\n  backbone: ./bert\n"
                                 "  training: {epochs: 1, batch_size: 12}\nvariants:\n" + text)
        self.assertEqual(self.run_sweep().code, 0)
        rows = self.query("SELECT DISTINCT variant, trial_id FROM sweep_results")
        files = {row["variant"]: self.root / "sweep.runs" / row["trial_id"] / "1/artifact.petl"
                 for row in rows}
        for variant, format, wanted, code in (
                ("lora", "adapterhub", "the artifact's module.kind is lora, must be adapter: ", 2),
                ("adapter", "peft", "the artifact's module.kind is adapter, must be lora: ", 2),
                ("prefix", "peft", "the artifact's module.kind is prefix, must be lora: ", 2),
                ("head", "peft", "module.kind is head_only, which has no weights of its own", 1),
                ("lora", "onnx", "--format is onnx, must be one of peft, adapterhub", 2)):
            self.refused(wanted, "export", "--artifact", files[variant], "--format", format,
                         "--out", "out", code=code)
            self.assertFalse((self.root / "out").exists())
        self.refused("must be a task of the artifact: films", "export", "--artifact",
                     files["lora"], "--format", "peft", "--out", "out", "--task", "plots", code=2)
        # An imported module also records its backbone's digest.
        self.hub_folder("roberta", "petl")
        self.trainer("import", "--format", "adapterhub", "--from", "theirs", "--backbone",
                     "./roberta", "--out", "in.petl")
        folder = shutil.copytree(self.root / "roberta", self.root / "other")
        fields = json.loads((folder / "config.json").read_text())
        self.write("other/config.json", json.dumps(fields | {"num_hidden_layers": 2}))
        self.refused("other: the backbone's digest is ", "export", "--artifact", "in.petl",
                     "--format", "adapterhub", "--out", "out", "--backbone", "./other")
        self.assertFalse((self.root / "out").exists())

    def test_other_labels_than_the_tasks_are_refused(self):
        self.hub_folder("roberta", "petl", head=False)
        model = adapters.AutoAdapterModel.from_pretrained(self.root / "roberta")
        model.add_adapter("petl", config="seq_bn")
        model.add_classification_head("petl", num_labels=3,
                                      id2label={0: "fine", 1: "fair", 2: "poor"})
        model.save_adapter(str(self.root / "theirs"), "petl")
        words = ("import", "--format", "adapterhub", "--from", "theirs", "--backbone",
                 "./roberta", "--out", "in.petl")
        self.refused("the module's head has the outputs fine, fair, poor, task films needs poor, "
                     "fair, fine", *words, "--task", "films.yaml")
        self.refused("task cola needs 0, 1", *words, "--task", "cola")
        self.refused("--task is colla, must be a built-in task or the file of a declaration",
                     *words, "--task", "colla", code=2)
        self.trainer(*words)
        rows = self.trainer("predict", "--artifact", "in.petl", "--input", "texts.txt").out
        for row in map(json.loads, rows.splitlines()):
            best = max(range(3), key=row["logits"].__getitem__)
            self.assertEqual(row["label"], ["fine", "fair", "poor"][best])


if __name__ == "__main__":
    tiny_world.main()
