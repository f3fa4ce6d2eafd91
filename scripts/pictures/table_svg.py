#!/usr/bin/env python3
"""A table of a report as an SVG for documents, light and dark as its reader's page is.

usage: petlab report table1 --format json | table_svg.py > table1.svg

Texts stay texts. The best of a column is bold, the second best underlined, published numbers stand
below measured ones. A report that is not one table is refused.
"""

import json
import sys
from xml.sax.saxutils import escape

SIZE, SMALL = 13, 10.5
LINE, UNDER = 23, 13
GAP = 28
# Of Helvetica and what stands in for it, in parts of the size; near enough to set columns apart.
NARROW, WIDE = set("iIjl.,:;|'()[] /"), set("mwMW%@—ABCDEFGHKNOPQRSTUVXY")
STYLE = """
text { font-family: Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 13px; fill: #1c2330; }
.soft { fill: #5b6472; } .small { font-size: 10.5px; } .best { font-weight: bold; }
.second { text-decoration: underline; } line { stroke: #1c2330; } rect { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ef; } .soft { fill: #9aa4b2; } line { stroke: #e6e9ef; } rect { fill: #14171d; }
}"""


def width(text, size=SIZE):
    return size * sum(0.3 if c in NARROW else 0.75 if c in WIDE else 0.56 for c in text)


def number(value, digits):
    return f"{value:,.{digits}f}".replace("-", "−")


def decimals(column):
    """As many as the published numbers of the column have, else two."""
    published = [
        cell["published"] for cell in column if isinstance(cell.get("published"), (int, float))
    ]
    return (
        max((len(str(value).partition(".")[2]) for value in published if value % 1), default=2)
        if published
        else 2
    )


def shown(cell, digits):
    """(value, spread, published) of a cell."""
    published = cell.get("published")
    if isinstance(published, (int, float)):
        published = number(published, digits)
    if cell["kind"] == "text":
        return cell["text"], "", published or ""
    if cell["kind"] != "number":
        return "—", "", published or ""
    spread = f" ±{number(cell['deviation'], digits)}" if cell["deviation"] else ""
    return number(cell["mean"], digits), spread, published or ""


def best_of(column):
    """Indices of the best and the second best cells, by their shown values."""
    ranked = sorted({cell["mean"] for cell in column if cell["kind"] == "number"}, reverse=True)
    places = [
        [i for i, cell in enumerate(column) if cell["kind"] == "number" and cell["mean"] == value]
        for value in ranked[:2]
    ]
    return (places[0], places[1]) if len(ranked) > 2 else ([], [])


def main():
    report = json.load(sys.stdin)
    if "rows" not in report:
        sys.exit(f"table_svg.py: report {report.get('report')} is not one table")
    rows, heads = report["rows"], report["columns"]
    columns = [[row["cells"][at] for row in rows] for at in range(len(heads))]
    digits = [decimals(column) for column in columns]
    marks = [
        best_of(column) if any(cell.get("deviation") for cell in column) else ([], [])
        for column in columns
    ]
    texts = [[shown(cell, digits[at]) for cell in column] for at, column in enumerate(columns)]
    names = [row["name"] for row in rows]
    label = max(map(width, names)) + GAP
    widths = [
        max(
            [width(head["name"])]
            + [width(value) + width(spread, SMALL) for value, spread, _ in column]
        )
        + GAP
        for head, column in zip(heads, texts, strict=True)
    ]
    total = label + sum(widths) + GAP
    out, y = [], 26

    def text(x, content, classes="", anchor="end"):
        out.append(
            f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
            f"{f' class={chr(34)}{classes}{chr(34)}' if classes else ''}>{content}</text>"
        )

    def rule(at, weight):
        out.append(
            f'<line x1="8" x2="{total - 8:.1f}" y1="{at}" y2="{at}" stroke-width="{weight}"/>'
        )

    rule(8, 1.4)
    x = label
    for head, size in zip(heads, widths, strict=True):
        x += size
        text(x, escape(head["name"]), "soft")
    rule(y + 8, 0.8)
    y += 8
    for at in range(len(rows)):
        y += LINE
        text(12, escape(names[at]), anchor="start")
        x = label
        below = []
        for column, size in enumerate(widths):
            x += size
            value, spread, published = texts[column][at]
            best, second = marks[column]
            style = "best" if at in best else "second" if at in second else ""
            parts = f'<tspan class="{style}">{escape(value)}</tspan>' if style else escape(value)
            if spread:
                parts += f'<tspan class="soft small">{escape(spread)}</tspan>'
            text(x, parts)
            below.append((x, published))
        if any(published for _, published in below):
            y += UNDER
            for x, published in below:
                if published:
                    text(x, escape(published), "soft small")
    rule(y + 10, 1.4)
    height = y + 18
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height}" '
        f'viewBox="0 0 {total:.0f} {height}" role="img" '
        f'aria-label="{escape(report["report"])}: {escape(report["about"])}">'
        f"<style>{STYLE}</style>"
        f'<rect width="{total:.0f}" height="{height}" rx="6"/>'
    )
    print("\n".join(out))
    print("</svg>")


if __name__ == "__main__":
    main()
