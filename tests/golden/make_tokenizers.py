#!/usr/bin/env python3
"""Creates tests/golden/tokenizers: two small vocabularies and the output of their tokenizers.

    make_tokenizers.py [FOLDER]

Needs tokenizers 0.22.2 and transformers 4.57.6 (scripts/library_venv.sh).
"""
import base64
import json
import pathlib
import sys

import tokenizers
import transformers

from texts import LETTERS, SENTENCES  # in this folder

PAIRS = [("A short text.", "And its pair!"), ("x", "y"), ("the harbour", ""), ("", "only a pair"),
         (SENTENCES[0], SENTENCES[1])]
INVALID = [b"\x80", b"abc\xff def", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf",
           b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok \xc3( here"]


def cases(tokenizer, types):
    rows = []

    def add(text, pair=None, **more):
        options = {}
        if "max_length" in more:
            options |= dict(truncation="longest_first", max_length=more["max_length"])
        if "pad_to" in more:
            options |= dict(padding="max_length", max_length=more["pad_to"])
        # Passed as lists, because an empty pair is dropped otherwise.
        found = tokenizer([text], [pair] if pair is not None else None, **options)
        row = dict(n=len(rows), text=text, ids=found["input_ids"][0], **more)
        if pair is not None:
            row["pair"] = pair
        if types:
            row["type_ids"] = found["token_type_ids"][0]
        else:
            row["decoded"] = tokenizer.decode(row["ids"], skip_special_tokens=True,
                                              clean_up_tokenization_spaces=False)
        if "pad_to" in more:
            row["attention_mask"] = found["attention_mask"][0]
        rows.append(row)

    for text in LETTERS + SENTENCES:
        add(text)
    for text, pair in PAIRS:
        add(text, pair)
    for length in (3, 5, 8):
        add(SENTENCES[2], max_length=length)
        add(SENTENCES[2], SENTENCES[3], max_length=length + 3)
    add(SENTENCES[4], pad_to=40)
    return rows


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def wordpiece(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizers.BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(SENTENCES + LETTERS, vocab_size=300, min_frequency=1,
                             show_progress=False)
    vocabulary = made.get_vocab()
    (folder / "vocab.txt").write_text(
        "".join(f"{token}\n" for token, _ in sorted(vocabulary.items(), key=lambda x: x[1])))
    settings = dict(tokenizer_class="BertTokenizer", do_lower_case=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings) + "\n")
    write(folder / "cases.jsonl", cases(
        transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), do_lower_case=True),
        True))


def byte_bpe(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(SENTENCES + LETTERS, vocab_size=420, min_frequency=2,
                             show_progress=False,
                             special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    made.save_model(str(folder))
    # <mask> is last, as in RoBERTa's files.
    vocabulary = json.loads((folder / "vocab.json").read_text())
    order = sorted(vocabulary, key=vocabulary.get)
    order.append(order.pop(order.index("<mask>")))
    (folder / "vocab.json").write_text(
        json.dumps({token: i for i, token in enumerate(order)}, ensure_ascii=False) + "\n")
    mask = dict(content="<mask>", lstrip=True, rstrip=False)
    settings = dict(tokenizer_class="RobertaTokenizer", add_prefix_space=False, mask_token=mask)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings) + "\n")
    write(folder / "cases.jsonl", cases(transformers.RobertaTokenizerFast(
        vocab_file=str(folder / "vocab.json"), merges_file=str(folder / "merges.txt"),
        mask_token=transformers.AddedToken("<mask>", lstrip=True)), False))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent / "tokenizers")
    wordpiece(folder / "wordpiece")
    byte_bpe(folder / "byte-bpe")
    write(folder / "invalid_utf8.jsonl",
          [dict(n=n, base64=base64.b64encode(text).decode()) for n, text in enumerate(INVALID)])
    for file in sorted(folder.rglob("*.*")):
        if file.is_file():
            print(f"{file.stat().st_size:7} {file.relative_to(folder)}")


if __name__ == "__main__":
    main()
