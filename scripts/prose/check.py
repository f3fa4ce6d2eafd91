"""Reports prose that is hard to read in Markdown pages and in petlab's help.

usage: check.py [--petlab PROGRAM] PAGE...

Exits with 1 if anything is reported. Code, tables' code and link targets are not prose.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

from markdown_it import MarkdownIt
from proselint.checks import __register__ as proselint_checks
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

LONGEST_SENTENCE = 30  # words
LONGEST_PURPOSE = 65  # characters of a command's first line of help
PASSIVE_CHAIN = 3  # passive verbs in one sentence

# proselint's checks of wording. Typography is left to Markdown, spelling to the authors.
CHECKS = {
    name: True
    for name in (
        "archaism",
        "cliches",
        "hedging",
        "industrial_language",
        "lexical_illusions",
        "malapropisms",
        "mixed_metaphors",
        "mondegreens",
        "needless_variants",
        "nonwords",
        "oxymorons",
        "redundancy",
        "uncomparables",
        "weasel_words",
    )
}
ABBREVIATIONS = ("e.g.", "i.e.", "vs.", "et al.", "cf.", "etc.")
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+(?:not\s+|then\s+|also\s+|\w+ly\s+)*"
    r"(?:\w{2,}ed|taken|given|written|read|run|kept|left|shown|found|chosen|drawn|built|put|sent)\b"
)
PHRASES_FILE = pathlib.Path(__file__).with_name("phrases.tsv")


@dataclasses.dataclass
class Block:
    """A paragraph, heading, list item, table cell or help text."""

    place: str  # start of a message: FILE:LINE, or a command
    text: str


def read_phrases() -> list[tuple[re.Pattern[str], str]]:
    phrases = []
    for line in PHRASES_FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            expression, advice = line.split("\t")
            phrases.append((re.compile(rf"\b(?:{expression})\b", re.I), advice))
    return phrases


def page_blocks(file: pathlib.Path) -> Iterator[Block]:
    line = 1
    for token in MarkdownIt("commonmark").enable("table").parse(file.read_text()):
        if token.map:
            line = token.map[0] + 1
        if token.type != "inline":
            continue
        text = ""
        for child in token.children or []:
            if child.type == "text":
                text += child.content
            elif child.type == "code_inline":
                # A distinct word for each name, so that no two look like a doubled word.
                text += "`" + re.sub(r"\W+", "_", child.content) + "`"
            elif child.type in ("softbreak", "hardbreak"):
                text += " "
        yield Block(f"{file}:{line}", text)


def help_of(petlab: str, *words: str) -> str:
    done = subprocess.run([petlab, "help", *words], capture_output=True, text=True, check=True)
    return done.stdout


def help_blocks(petlab: str, command: tuple[str, ...] = ()) -> Iterator[Block]:
    """The texts of `petlab help`, of each command and of the commands inside it."""
    place = " ".join(("petlab help", *command))
    lines = help_of(petlab, *command).splitlines()
    if command:
        yield Block(f"{place} (purpose)", lines[0])
        lines = lines[1:]
    inner = []
    text = ""
    heading = ""
    for line in [*lines, ""]:
        continued = re.match(r" {26,}(\S.*)", line)
        if continued:
            text += " " + continued[1]
            continue
        if text.strip():
            yield Block(place, text.strip())
        text = ""
        entry = re.match(r"  (\S+(?: \S+)*)(?: {2,}(.*))?$", line)
        if line and not line.startswith(" "):
            heading = line
            if not line.endswith(":") and not line.startswith("Usage:"):
                text = line
        elif entry:
            text = entry[2] or ""
            if heading == "Subcommands:" or (not command and re.fullmatch(r"[a-z]+", entry[1])):
                inner.append(entry[1])
    for name in inner:
        yield from help_blocks(petlab, (*command, name))


def field_blocks(petlab: str) -> Iterator[Block]:
    for line in help_of(petlab, "fields").splitlines():
        yield Block("petlab help fields", re.sub(r" {2,}", ". ", line))


def sentences(text: str) -> list[str]:
    for abbreviation in ABBREVIATIONS:
        text = text.replace(abbreviation, abbreviation.replace(".", ""))
    return [part for part in re.split(r"(?<=[.!?])[)\"”]?\s+", text.strip()) if part]


def words(sentence: str) -> int:
    return len(re.findall(r"`[^`]*`|[^\W_][\w'’.,%-]*", sentence))


def faults(block: Block, phrases: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    for sentence in sentences(block.text):
        count = words(sentence)
        if count > LONGEST_SENTENCE:
            yield f"{count} words in a sentence, at most {LONGEST_SENTENCE}: {sentence}"
        passives = PASSIVE.findall(sentence)
        if len(passives) >= PASSIVE_CHAIN:
            yield f"a chain of passive verbs ({', '.join(passives)}): {sentence}"
    prose = re.sub(r"`[^`]*`", "`code`", block.text)
    for pattern, advice in phrases:
        for match in pattern.finditer(prose):
            yield f"'{match[0]}'; write {advice}"
    if block.place.endswith("(purpose)") and len(block.text) > LONGEST_PURPOSE:
        yield f"{len(block.text)} characters, at most {LONGEST_PURPOSE}: {block.text}"
    # proselint cannot check an empty text.
    if block.text.strip():
        for found in LintFile(block.place, block.text).lint({"checks": CHECKS, "max_errors": 1000}):
            yield found.check_result.message


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--petlab")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    blocks = [block for page in arguments.pages for block in page_blocks(page)]
    if arguments.petlab:
        blocks += [*help_blocks(arguments.petlab), *field_blocks(arguments.petlab)]
    phrases = read_phrases()
    CheckRegistry().register_many(proselint_checks)
    found = 0
    for block in blocks:
        for fault in faults(block, phrases):
            print(f"{block.place}: {fault}")
            found += 1
    if not blocks or found:
        print(f"{found} faults in {len(blocks)} texts")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
