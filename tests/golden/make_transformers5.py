#!/usr/bin/env python3
"""Creates the golden values of transformers 5: files as it saves them, read as it reads them.

    make_transformers5.py [FOLDER]

tokenizers/*/truncation_left.jsonl: `truncation_side: left`; needs the vocabularies of
make_tokenizers.py, and creates that of T5. transformers5/t5_embeddings: the names under which a T5
may store its embedding, and the logits of each.

Needs transformers 5.24.0, torch 2.13.0, sentencepiece 0.2.3 and protobuf.
"""
import io
import json
import pathlib
import shutil
import sys
import tempfile

import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file

from texts import LETTERS, SENTENCES  # in this folder

PAIRS = [(SENTENCES[0], SENTENCES[1]), ("", SENTENCES[2]), (SENTENCES[3], ""), ("x", "y")]
# Every way to divide a few places between two texts.
PAIRS += [(" ".join("abcdefgh"[:first]), " ".join("hgfedcba"[:second]))
          for first in range(1, 9, 2) for second in range(1, 9)]


def rows(tokenizer, texts, limits, types):
    found = []
    for text, pair in texts:
        for most in limits:
            # Passed as lists, because an empty pair is dropped otherwise.
            options = dict(truncation="longest_first", max_length=most) if most else {}
            encoded = tokenizer([text], None if pair is None else [pair], **options)
            row = dict(n=len(found), text=text, ids=encoded["input_ids"][0])
            if pair is not None:
                row["pair"] = pair
            if most:
                row |= dict(truncation_side=tokenizer.truncation_side, max_length=most)
            if types:
                row["type_ids"] = encoded["token_type_ids"][0]
            found.append(row)
    return found


def write(file, found):
    file.write_text("".join(json.dumps(row) + "\n" for row in found))


def sentencepiece_folder(folder):
    """A T5 vocabulary without a table of normalisation, which alone has 240 KB."""
    folder.mkdir(parents=True, exist_ok=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=130,
        model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        normalization_rule_name="identity", minloglevel=2)
    (folder / "spiece.model").write_bytes(model.getvalue())
    settings = dict(tokenizer_class="T5Tokenizer", extra_ids=100)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings) + "\n")
    plain = transformers.T5Tokenizer.from_pretrained(folder)
    write(folder / "cases.jsonl",
          rows(plain, [(text, None) for text in SENTENCES[:4]] + PAIRS[:4], [0], types=False))


def truncation(folder):
    mask = transformers.AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    for name, kind, more in (("wordpiece", transformers.BertTokenizerFast, {}),
                             ("byte-bpe", transformers.RobertaTokenizerFast,
                              dict(mask_token=mask)),
                             ("sentencepiece", transformers.T5Tokenizer, {})):
        tokenizer = kind.from_pretrained(folder / name, truncation_side="left", **more)
        found = rows(tokenizer, [(text, None) for text in SENTENCES[:3] + LETTERS[:6]] + PAIRS,
                     (4, 5, 8, 13), types=name == "wordpiece")
        write(folder / name / "truncation_left.jsonl", found)


SHARED, ENCODER, DECODER, OUTPUT = (
    "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
    "lm_head.weight")
# The matrices, "first" and "second", under these names of a checkpoint.
STORED = [{SHARED: "first"}, {ENCODER: "first"}, {DECODER: "first"}, {OUTPUT: "first"},
          {ENCODER: "first", DECODER: "first"}, {SHARED: "first", OUTPUT: "second"},
          {ENCODER: "first", OUTPUT: "second"}, {DECODER: "first", OUTPUT: "second"},
          {SHARED: "first", ENCODER: "first", DECODER: "first", OUTPUT: "second"},
          {SHARED: "first", ENCODER: "first", DECODER: "first", OUTPUT: "first"},
          {DECODER: "first", OUTPUT: "first"},
          # Encoder and decoder with embeddings of their own, which petlab refuses.
          {SHARED: "first", DECODER: "second"}, {SHARED: "first", ENCODER: "second"},
          {ENCODER: "first", DECODER: "second"}]


def t5_embeddings(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    config = transformers.T5Config(vocab_size=13, d_model=8, d_kv=4, num_heads=2, d_ff=12,
                                   num_layers=1, num_decoder_layers=1)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        saved = json.loads(pathlib.Path(temporary, "config.json").read_text())
        weights = load_file(pathlib.Path(temporary, "model.safetensors"))
    weights["first"] = weights.pop(SHARED)
    weights["second"] = torch.randn(13, 8)
    (folder / "config.json").write_text(json.dumps(saved, indent=1) + "\n")
    save_file(weights, folder / "weights.safetensors", metadata={"format": "pt"})
    (folder / "weights.safetensors").chmod(0o644)
    source, target = [5, 3, 12, 1], [0, 7, 2, 9]
    cases = []
    for names in STORED:
        with tempfile.TemporaryDirectory() as temporary:
            layers = {name: one for name, one in weights.items() if "." in name}
            save_file(layers | {name: weights[one].clone() for name, one in names.items()},
                      pathlib.Path(temporary, "model.safetensors"), metadata={"format": "pt"})
            shutil.copy(folder / "config.json", temporary)
            loaded = transformers.T5ForConditionalGeneration.from_pretrained(temporary).eval()
        case = dict(stored=names, embeddings=1)
        if torch.equal(loaded.encoder.embed_tokens.weight, loaded.decoder.embed_tokens.weight):
            with torch.no_grad():
                logits = loaded(input_ids=torch.tensor([source]),
                                decoder_input_ids=torch.tensor([target])).logits[0]
            case |= dict(source=source, target=target, logits=logits.tolist())
        else:
            case["embeddings"] = 2
        cases.append(case)
    write(folder / "cases.jsonl", cases)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    sentencepiece_folder(folder / "tokenizers/sentencepiece")
    truncation(folder / "tokenizers")
    t5_embeddings(folder / "transformers5/t5_embeddings")


if __name__ == "__main__":
    main()
