#!/usr/bin/env python3
"""Reduces PNG pictures to a palette of 128 colours, in place. Texts and lines stay sharp.

usage: shrink.py PICTURE...
"""

import sys

from PIL import Image

COLOURS = 128

for path in sys.argv[1:]:
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(
            COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
    reduced.save(path, optimize=True)
