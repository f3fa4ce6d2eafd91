"""Draws Vega-Lite specifications: draw.py [KIND SPECIFICATION PICTURE]...

Nothing is read from a network: a specification contains its data, and no address is allowed.
"""
import sys

import vl_convert

VERSION = "6.4"
NOWHERE = []

arguments = sys.argv[1:]
for kind, specification, picture in zip(arguments[0::3], arguments[1::3], arguments[2::3]):
    with open(specification, encoding="utf-8") as file:
        text = file.read()
    if kind == "svg":
        drawn = vl_convert.vegalite_to_svg(text, VERSION, allowed_base_urls=NOWHERE).encode()
    elif kind == "pdf":
        drawn = vl_convert.vegalite_to_pdf(text, VERSION, allowed_base_urls=NOWHERE)
    else:
        drawn = vl_convert.vegalite_to_png(text, VERSION, scale=2, allowed_base_urls=NOWHERE)
    with open(picture, "wb") as file:
        file.write(drawn)
