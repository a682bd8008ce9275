"""What a notebook shows: the same as printing, as HTML in which every name is text."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

import banditree as bt
from banditree.base.tables import Table
from banditree.tree.text import MAX_NODES

EVIL = "<script>alert(1)</script>&\"'"


class Tags(HTMLParser):
    """The elements of a page, and whether each that is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.names: set[str] = set()
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.opened.append(tag)
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data + " "


def tree_with(name: str) -> bt.Tree:
    return bt.Tree({name: [f"{name} 1", f"{name} 2"], "hats": ["h1", "h2", "h3"]})


def runs_of(name: str) -> bt.Runs:
    problem = bt.problems.bernoulli(tree_with("shoes"), [0.1, 0.2, 0.3, 0.4, 0.5])
    return bt.simulate({name: bt.TSC}, problem, horizon=5, seeds=2, rng=0, progress=False)


THINGS: dict[str, Any] = {
    "tree": tree_with,
    "policy": lambda name: bt.TSC(tree_with(name), rng=0),
    "a policy's table": lambda name: bt.TSC(tree_with(name), rng=0).table(),
    "a table's columns": lambda name: Table([name], [(1,)]),
    "runs": runs_of,
}


@pytest.mark.parametrize("make", THINGS.values(), ids=THINGS)
def test_names_are_text_and_never_markup(make: Any) -> None:
    page = Tags(make(EVIL)._repr_html_())
    assert page.opened == [], "every element is closed"
    allowed = "div style header p ul li details summary span table thead tbody tr th td"
    assert page.names <= {*allowed.split()}
    assert EVIL in page.words


@pytest.mark.parametrize("kind", ["tree", "policy", "a policy's table", "runs"])
def test_control_characters_can_be_seen(kind: str) -> None:
    make = THINGS[kind]
    html = unescape(make("red\x1b[31m")._repr_html_())
    assert "\x1b" not in html


def test_a_table_shows_what_printing_shows() -> None:
    table = Table(["path", "plays", "interval"], [((), 3, (0.1, 0.25)), (("hats", "h1"), 12, (0.5, 0.75))])
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table._repr_html_())
    assert cells == ["(all)", "3", "0.1 … 0.25", "hats / h1", "12", "0.5 … 0.75"]
    kinds = re.findall(r'<th class="(\w+)"', table._repr_html_())
    assert kinds == ["word", "number", "number"]


def test_a_long_table_is_cut_and_says_so() -> None:
    page = Table(["n"], [(i,) for i in range(25)])._repr_html_()
    assert page.count("<td") == Table.SHOWN
    assert "... and 5 more rows" in page


def test_a_tree_counts_what_it_leaves_out() -> None:
    wide = bt.Tree({"big": [f"arm {i}" for i in range(1000)]})._repr_html_()
    assert wide.count("arm ") == 20
    assert "... and 980 more" in wide
    assert "(1,000 arms)" in wide
    assert "<details open" in wide


@pytest.mark.parametrize("depth", [9, 3000])
def test_a_large_or_deep_tree_stays_short(depth: int) -> None:
    if depth == 9:
        tree = bt.Tree.from_paths([(*(f"{i:010b}"[:k] for k in range(1, depth + 1)), i) for i in range(1024)])
    else:
        tree = bt.Tree.from_paths([(*(f"c{k}" for k in range(depth)), "arm")])
    page = tree._repr_html_()
    assert page.count("<li>") <= 2 * MAX_NODES
    assert Tags(page).opened == []
