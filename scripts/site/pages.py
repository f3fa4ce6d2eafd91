"""Collects the pages of the site: README.md, docs/, what they link to, and generated pages.

usage: pages.py PETLAB FOLDER

The folder mirrors the repository, so that the pages' links hold in both. Three kinds of pages are
generated: one for each command, from its help; one for the Python package, from its docstrings; and
a list of files for each folder that a page links to. The navigation is mkdocs.yml's, then the links
of docs/README.md.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)")
PICTURE = re.compile(r'<(?:source|img)\b[^>]*\bsrc(?:set)?="([^"]+)"')


def collect(page: pathlib.Path, folder: pathlib.Path, seen: set[pathlib.Path]) -> None:
    """Copies a file of the repository and, if it is a page, all that it links to."""
    if page in seen:
        return
    seen.add(page)
    to = folder / page.relative_to(SOURCE)
    if page.is_dir():
        to.mkdir(parents=True, exist_ok=True)
        if not (page / "README.md").exists():
            names = sorted(file.name for file in page.iterdir() if file.is_file())
            lines = [f"- [{name}]({name})" for name in names]
            (to / "README.md").write_text(
                "\n".join([f"# {page.relative_to(SOURCE)}", "", *lines, ""])
            )
            for name in names:
                collect(page / name, folder, seen)
            return
        page, to = page / "README.md", to / "README.md"
    to.parent.mkdir(parents=True, exist_ok=True)
    if page.suffix != ".md":
        shutil.copyfile(page, to)
        return
    text = page.read_text()

    def to_page(match: re.Match[str]) -> str:
        target = match[1]
        if re.match(r"\w+:", target):
            return match[0]
        linked = pathlib.Path(os.path.normpath(page.parent / target))
        if linked.exists():
            collect(linked, folder, seen)
            if linked.is_dir():
                return f"]({target.rstrip('/')}/README.md"
        return match[0]

    for target in PICTURE.findall(text):
        picture = pathlib.Path(os.path.normpath(page.parent / target))
        if not picture.is_file():  # MkDocs does not check HTML
            sys.exit(f"{page.relative_to(SOURCE)}: picture {target} does not exist")
        collect(picture, folder, seen)
    to.write_text(LINK.sub(to_page, text))


def help_of(petlab: str, *words: str) -> str:
    return subprocess.run(
        [petlab, "help", *words], capture_output=True, text=True, check=True
    ).stdout


def command_pages(petlab: str, folder: pathlib.Path) -> None:
    """commands/README.md in the groups of `petlab help`, and commands/NAME.md."""
    folder.mkdir()
    index = ["# Commands", ""]
    for line in help_of(petlab).splitlines()[1:]:
        entry = re.fullmatch(r"  ([a-z]+) {2,}(.*)", line)
        if entry:
            name, purpose = entry.groups()
            index.append(f"- [petlab {name}]({name}.md): {purpose}")
            command_page(petlab, (name,), folder / f"{name}.md")
        elif line.strip():
            index += ["", f"## {line}"] if len(line) < 40 else ["", line]
            index.append("")
    (folder / "README.md").write_text("\n".join(index) + "\n")


def command_page(petlab: str, command: tuple[str, ...], page: pathlib.Path) -> None:
    lines = help_of(petlab, *command).splitlines()
    text = [f"{'#' * len(command)} petlab {' '.join(command)}", "", f"{lines[0]}.".capitalize()]
    text += ["", "```text", *lines[1:], "```", ""]
    with page.open("a") as out:
        out.write("\n".join(text) + "\n")
    if "Subcommands:" in lines:
        for line in lines[lines.index("Subcommands:") + 1 :]:
            entry = re.fullmatch(r"  ([a-z]+) {2,}.*", line)
            if not entry:
                break
            command_page(petlab, (*command, entry[1]), page)


def python_page(page: pathlib.Path) -> None:
    """The public names of the package, with their signatures and docstrings."""
    sys.path.insert(0, str(SOURCE / "python/src"))
    import petlab

    text = ["# The Python package", "", inspect.getdoc(petlab) or "", ""]
    for name in sorted(petlab.__all__):
        thing = getattr(petlab, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        text += describe(name, thing, 2)
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (
                    inspect.isfunction(value) or isinstance(value, property)
                ):
                    text += describe(f"{name}.{member}", value, 3)
    page.write_text("\n".join(text))


def describe(name: str, thing: object, level: int) -> list[str]:
    signature = ""
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        # Annotations are strings in this package; remove their quotes for readers.
        signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(thing)))
    heading = [f"{'#' * level} {name}", "", "```python", f"{name}{signature}", "```", ""]
    return [*heading, inspect.getdoc(thing) or "", ""]


def navigation(folder: pathlib.Path) -> list[str]:
    """The rest of mkdocs.yml's nav: the pages that docs/README.md links to, by its headings."""
    lines = []
    listed = {"README.md", *map(str, pathlib.Path("docs").glob("learn/*.md"))}
    for section in (SOURCE / "docs/README.md").read_text().split("\n## ")[1:]:
        title = section.split("\n")[0].split(":")[0]
        links = re.findall(r"\[([^\]]+)\]\(([^)#\s]+\.md)", section)
        if title == "Learn":
            continue
        lines.append(f"  - {title}:")
        for name, target in links:
            page = os.path.normpath(f"docs/{target}")
            if page not in listed:
                words = " ".join(name.split())
                if not words.startswith("petlab"):
                    words = words[0].upper() + words[1:]
                lines.append(f"      - {words!r}: {page}".replace("'", '"'))
                listed.add(page)
    lines += ["  - Commands:", "      - commands/README.md"]
    lines += [
        f"      - commands/{page.name}"
        for page in sorted((folder / "commands").glob("*.md"))
        if page.name != "README.md"
    ]
    lines.append("  - The Python package: python-package.md")
    rest = sorted(
        str(page.relative_to(folder))
        for page in folder.rglob("*.md")
        if not any(
            f": {page.relative_to(folder)}" in line or f"- {page.relative_to(folder)}" in line
            for line in lines
        )
    )
    learned = (SOURCE / "scripts/site/mkdocs.yml").read_text()
    lines.append("  - More:")
    lines += [f"      - {page}" for page in rest if f"- {page}\n" not in learned]
    return lines


def main() -> None:
    petlab, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    seen: set[pathlib.Path] = set()
    collect(SOURCE / "README.md", folder, seen)
    for page in sorted((SOURCE / "docs").rglob("*.md")):
        collect(page, folder, seen)
    command_pages(petlab, folder / "commands")
    python_page(folder / "python-package.md")
    (folder.parent / "nav.yml").write_text("\n".join(navigation(folder)) + "\n")


if __name__ == "__main__":
    main()
