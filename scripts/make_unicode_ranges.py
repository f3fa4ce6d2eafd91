#!/usr/bin/env python3
"""Writes metrics/unicode_ranges.inc from the tables of the `regex` package, which sacrebleu uses.

    python scripts/make_unicode_ranges.py VERSION > metrics/unicode_ranges.inc

VERSION is the Unicode version that the installed `regex` implements (its changelog says which).
"""
import sys

import regex

NAMES = {"P": "kPunctuation", "S": "kSymbol", "N": "kNumber"}


def ranges():
    found = []
    for category, name in NAMES.items():
        pattern = regex.compile(r"\p{%s}" % category)
        for c in range(0x110000):
            if not 0xD800 <= c < 0xE000 and pattern.match(chr(c)):
                found.append((c, name))
    merged = []
    for c, name in sorted(found):
        if merged and merged[-1][1] == c - 1 and merged[-1][2] == name:
            merged[-1][1] = c
        else:
            merged.append([c, c, name])
    return merged


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"// Code points of the general categories P, S and N in Unicode {sys.argv[1]}: first, last,")
    print("// category. Written by scripts/make_unicode_ranges.py.")
    print("// clang-format off")
    line = ""
    for first, last, name in ranges():
        item = "{0x%X, 0x%X, %s}, " % (first, last, name)
        if len(line) + len(item) > 99:
            print(line.rstrip())
            line = ""
        line += item
    print(line.rstrip())
    print("// clang-format on")


if __name__ == "__main__":
    main()
