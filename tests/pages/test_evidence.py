"""Generated pages: what their digest depends on, how a run goes on, and that no page is of other code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from tests.support.helpers import needs_native
from tools.pages import evidence, registry
from tools.pages.evidence import DOCS, Page, Part, is_whole, law, stamped
from tools.pages.journal import read


@needs_native  # the readable engine draws in another order, and the pages are made with the native one
@pytest.mark.parametrize("name", registry.PAGES)
def test_a_page_is_of_this_code_or_is_named_as_pending(name: str) -> None:
    """A pending page says itself which version made it, and leaves the list once it is whole and of this code."""
    pytest.importorskip("sklearn", reason="trees of k-means and Ward need the extra `cluster`")
    page = DOCS / f"{name}.md"
    carried, today = stamped(page), (bt.__version__, registry.PAGES[name].digest())
    is_made = is_whole(page) and carried == today
    if name in registry.PENDING:
        assert carried is not None, f"docs/{name}.md does not say which version made it"
        assert not is_made, f"{name} is pending no more; take it out of PENDING"
    else:
        assert is_made, f"docs/{name}.md is of other code or made in part; `make pages ONLY={name}` makes it"


def test_pages_are_short_have_a_picture_and_link_all_their_lines() -> None:
    for name in registry.PAGES.keys() - registry.PENDING.keys():
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert len(page.split()) < 1700, name
        assert "](images/" in page, name
        assert f"(data/{name}.csv)" in page, name
        assert read(DOCS / "data" / f"{name}.csv"), name


class OneMoreDraw(bt.TS):
    """TS that has drawn once before it begins."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.choose()


def test_a_digest_is_of_behaviour(monkeypatch: pytest.MonkeyPatch) -> None:
    uncached = law.__wrapped__
    assert uncached(("TS", "TSC")) == uncached(("TS", "TSC"))
    assert uncached(("TS",)) != uncached(("TSC",))
    before = uncached(("TS",))
    monkeypatch.setattr(bt, "TS", OneMoreDraw)
    assert uncached(("TS",)) != before


def test_numbers_tell_arrays_apart_but_not_their_last_digits() -> None:
    array = np.linspace(0.1, 0.9, 7)
    assert evidence.numbers([array]) == evidence.numbers([array * (1 + 1e-12)])
    assert evidence.numbers([array]) != evidence.numbers([array * 1.001])
    assert evidence.numbers([array]) != evidence.numbers([array, array])


class Counted:
    """A page of two parts that counts what it measures."""

    def __init__(self, **digests: str) -> None:
        self.digests = digests
        self.measured: list[str] = []

    def page(self) -> Page:
        return Page("numbers", ("value",), self.parts, lambda lines, folder: f"# {len(lines)} lines\n")

    def parts(self) -> list[Part]:
        def measure(name: str) -> Iterator[dict[str, str]]:
            self.measured.append(name)
            yield {"value": name}

        return [Part(name, digest, lambda name=name: measure(name)) for name, digest in self.digests.items()]  # type: ignore[misc]


def test_a_page_is_made_in_parts_and_measures_again_only_what_has_changed(tmp_path: Path) -> None:
    first = Counted(a="1", b="2")
    assert first.page().make(tmp_path, until=0.0) == 2  # no time for anything
    text = (tmp_path / "numbers.md").read_text(encoding="utf-8")
    assert "# 0 lines" in text
    assert "**Pending: a, b.** `make pages ONLY=numbers` goes on." in text
    assert not is_whole(tmp_path / "numbers.md")
    assert first.page().make(tmp_path) == 0
    assert first.measured == ["a", "b"]
    assert stamped(tmp_path / "numbers.md") == (bt.__version__, first.page().digest())
    changed = Counted(a="1", b="3")
    assert changed.page().digest() != first.page().digest()
    assert changed.page().make(tmp_path) == 0
    assert changed.measured == ["b"]
    assert [(line["part"], line["digest"]) for line in read(tmp_path / "data/numbers.csv")] == [("a", "1"), ("b", "3")]
    assert is_whole(tmp_path / "numbers.md")
