"""The documentation site: every page is staged in one part, links lead to pages that are there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tools.website.__main__ import PARTS, ROOT, stage


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stage(tmp_path_factory.mktemp("site") / "source")


def listed(page: Path) -> list[str]:
    """The pages in the table of contents of a page."""
    block = re.search(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    return [line for line in block[1].splitlines() if line and not line.startswith(":")]


def test_every_page_is_in_one_part(source: Path) -> None:
    assert listed(source / "index.md") == [title.lower() for title in PARTS]
    pages = Counter(page for title in PARTS for page in listed(source / f"{title.lower()}.md"))
    pages_of_docs = [page for kind in ("*.md", "*.ipynb") for page in (ROOT / "docs").rglob(kind)]
    written = {str(page.relative_to(ROOT).with_suffix("")) for page in pages_of_docs}
    written |= {"CHANGELOG", "CONTRIBUTING", "examples/openfeature_shop/README"}
    assert pages == Counter(written)


def test_the_readme_is_the_front_page_and_links_lead_to_it(source: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (source / "index.md").read_text(encoding="utf-8").startswith(readme.replace(".ipynb)", ".md)"))
    assert not (source / "README.md").exists()
    for page in source.rglob("*.md"):
        for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_are_not_changed_where_they_stand(source: Path) -> None:
    assert "](../index.md)" in (source / "docs" / "index.md").read_text(encoding="utf-8")
    assert "](../README.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_every_formula_can_be_shown(source: Path) -> None:
    pytest.importorskip("docutils")
    from tools.website.mathml import mathml

    text = "\n".join(page.read_text(encoding="utf-8") for page in source.rglob("*.md"))
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    formulas = [found[0] or found[1] for found in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.DOTALL)]
    assert len(formulas) > 5
    for formula in formulas:
        assert mathml(formula, block=True).startswith("<math")
