"""Build the site: ``python -m tools.website [FOLDER]``, or ``make site``. It needs the extra `site`, and no network."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tools import notebooks

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
COPIED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE", "docs", "examples", "deploy")
LINK_TO_README = re.compile(r"(\]\()((?:\.\./)*)README\.md")
LINK_TO_NOTEBOOK = re.compile(r"(\]\([^)\s]*/[\w-]+)\.ipynb\)")

# The pages of each part of the site, in order; ``docs/*`` stands for the pages of that folder that no part names.
PARTS = {
    "Start": (
        "docs/concepts",
        "docs/catalogue",
        "docs/logs",
        "docs/living-catalogue",
        "docs/simulating",
        "docs/gallery",
    ),
    "Guides": ("docs/*", "examples/openfeature_shop/README"),
    "Notebooks": ("docs/notebooks/*",),
    "Notes": ("docs/notes/*",),
    "Reference": ("docs/api", "docs/readings", "docs/dependencies", "CHANGELOG", "CONTRIBUTING", "docs/index"),
}


def stage(target: Path) -> Path:
    """Copy the pages to a folder that is laid out like the repository, so that their links lead where they did.

    The README becomes ``index.md``, with a list of the parts at its end; each part lists its pages. Notebooks become
    pages, beside which they stay.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    leave_out = shutil.ignore_patterns("*.py", "__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=leave_out if name == "docs" else None)
        else:
            shutil.copy(source, target / name)
    for path in (target / "docs" / "notebooks").glob("*.ipynb"):
        text, pictures = notebooks.markdown(path)
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        for name, picture in pictures.items():
            (path.parent / name).write_bytes(picture)
    for page in target.rglob("*.md"):
        text = LINK_TO_NOTEBOOK.sub(r"\1.md)", page.read_text(encoding="utf-8"))
        page.write_text(LINK_TO_README.sub(r"\1\2index.md", text), encoding="utf-8")
    front = (target / "README.md").rename(target / "index.md")
    for title, names in PARTS.items():
        text = f"# {title}\n\n{_contents(_pages(target, names))}"
        (target / f"{title.lower()}.md").write_text(text, encoding="utf-8")
    contents = _contents([title.lower() for title in PARTS], ":hidden:")
    front.write_text(f"{front.read_text(encoding='utf-8')}\n{contents}", encoding="utf-8")
    return target


def _pages(target: Path, names: tuple[str, ...]) -> list[str]:
    named = {name for pages in PARTS.values() for name in pages}
    pages = []
    for name in names:
        folder, star, _ = name.partition("/*")
        unnamed = [f"{folder}/{page.stem}" for page in sorted((target / folder).glob("*.md"))] if star else [name]
        pages += [page for page in unnamed if not star or page not in named]
    return pages


def _contents(pages: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", *options, "", *pages, "```", ""])


def main(target: str = "build/site") -> int:
    """Build the site with warnings as errors; the exit code."""
    from sphinx.cmd.build import main as sphinx

    source = stage(ROOT / "build" / "site-source")
    out = ROOT / target
    shutil.rmtree(out, ignore_errors=True)
    options = ["-b", "html", "-W", "--keep-going", "-q", "-c", str(HERE), "-d", str(ROOT / "build" / "site-doctrees")]
    code: int = sphinx([*options, str(source), str(out)])
    if code == 0:
        print(f"The site is in {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
