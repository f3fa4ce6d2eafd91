"""Draws Vega-Lite specifications, and makes the script that draws them in a browser.

    draw.py pictures [KIND SPECIFICATION PICTURE]...
    draw.py page-script FOLDER FILE     prints the script's name, which contains its versions, and
                                        writes the script to FILE unless FOLDER has that name

Nothing is read from a network: a specification contains its data, and no address is allowed. The
exit code is 69 if vl-convert is not installed.
"""
import importlib.metadata
import os
import sys

VERSION = "6.4"  # of Vega-Lite
NOWHERE = []
PACKAGE = "vl-convert-python"
NOT_INSTALLED = 69


def draw(kind, specification, picture):
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


def page_script(folder, new):
    name = f"vega-lite-{VERSION}-vl-convert-{importlib.metadata.version(PACKAGE)}.js"
    print(name)
    if not os.path.exists(os.path.join(folder, name)):
        with open(new, "w", encoding="utf-8") as file:
            file.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VERSION))


try:
    import vl_convert
except ModuleNotFoundError:
    sys.exit(NOT_INSTALLED)
command, *arguments = sys.argv[1:]
if command == "page-script":
    page_script(*arguments)
else:
    for task in zip(arguments[0::3], arguments[1::3], arguments[2::3]):
        draw(*task)
