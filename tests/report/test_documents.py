"""Documents: every part is shown everywhere, no value becomes markup, and numbers are written one way."""

from __future__ import annotations

import html.parser
import json
import math
from dataclasses import dataclass

import pytest

from banditree.base.document import (
    Badge,
    Bar,
    Bullets,
    Code,
    Document,
    Grid,
    Line,
    Link,
    Note,
    Outline,
    Picture,
    Quote,
    Range,
    Section,
)
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import cell_width, number
from banditree.report.text import grid_lines

EVIL = "<script>alert(1)</script>&\"'"


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in order, and keeps the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.names: set[str] = set()
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)
        if tag not in ("meta", "img"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@dataclass(frozen=True, repr=False)
class Everything(Result):
    """A result with every part that a document can have."""

    word: str
    value: float = math.inf

    def document(self) -> Document:
        word = self.word
        cells = [(word, Bar(0.5), Range(0.1, 0.4, 0.2), (Badge(word, "x"), Link(word, "there")), "1.5")]
        parts = (
            (word, Link(word, "there"), Badge(word, "✓", "holds"), Code(word)),
            Grid(("name", "", "", word, "number"), cells, names=(0, 3)),
            Bullets([word, (word, Code(word))]),
            Note(word),
            Quote(word, (word, Link(word, "there"))),
            Code(word, "In Python"),
            Outline([Line(word, word, [Line(word)], is_open=True)], word),
            Picture(lambda: "<svg></svg>", word, word),
            Picture(lambda: b"png", word, word),
            Section(word, [word, Section(word, [word], is_folded=True)], anchor="there", badge=Badge(word)),
            Section("page only", [word], is_card=True, page_only=True),
        )
        return Document(word, parts, name=word, about=word, has_contents=True)


def test_a_result_is_shown_in_four_ways() -> None:
    result = Everything("hats")
    page, cell = Reader(result.to_html(title="shop")), Reader(result._repr_html_())
    assert page.opened == cell.opened == []
    assert page.words.count("hats") > cell.words.count("hats") >= result.to_text().count("hats") >= 20
    assert "page only" in page.words
    assert "page only" not in cell.words + result.to_text()
    assert json.loads(json.dumps(result.to_dict())) == {"word": "hats", "value": None}
    assert repr(result) == str(result) == result.to_text()


def test_no_value_becomes_markup() -> None:
    page = Reader(Everything(EVIL).to_html(title=EVIL))
    assert "script" not in page.names
    assert page.words.count(EVIL) > 30
    assert "script" not in Reader(Everything(EVIL)._repr_html_()).names


def test_control_characters_can_be_seen_everywhere() -> None:
    result = Everything("red\x1b[31m")
    for shown in (result.to_html(), result._repr_html_(), result.to_text()):
        assert "\x1b" not in shown
        assert r"red\x1b[31m" in shown


@pytest.mark.parametrize("width", [20, 40, 80])
def test_text_fits_the_width(width: int) -> None:
    lines = Everything("a fairly long sentence that does not fit").to_text(width=width).splitlines()
    assert max(map(cell_width, lines)) <= max(width, 40)


@pytest.mark.parametrize(("both_ends", "first", "last"), [(False, "14", "... and 25 more rows"), (True, "0", "39")])
def test_long_tables_are_cut_and_say_so(both_ends: bool, first: str, last: str) -> None:
    lines = [line for _, line in grid_lines(Grid(("n",), [(str(i),) for i in range(40)], both_ends=both_ends))]
    assert lines[-1] == last
    assert first in lines
    assert any("more" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (12345.6, 3, "12,300"),
        (12345.6, 4, "12,350"),
        (-0.0, 3, "0"),
        (0.000123456, 3, "0.000123"),
        (math.nan, 3, "–"),
        (-math.inf, 3, "-∞"),
        (999.96, 3, "1,000"),
        (1e20, 3, "1e+20"),
    ],
)
def test_numbers(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_a_table_of_wide_characters_is_aligned() -> None:
    lines = str(Table(["name", "n"], [("日本", 1), ("é", 2)])).splitlines()
    assert len({cell_width(line) for line in lines}) == 1


LONG = ["7f3a9c1e5b2d4f6080a1c3e5f7092b4d", "0123456789abcdef0123456789abcdef"]


def lines_of(grid: Grid, width: int) -> list[str]:
    return [line for _, line in grid_lines(grid, width)]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_names_are_not_broken(width: int) -> None:
    columns = ("category", "arms", "plays", "mean of its arms", "95% interval", "holds the best arm")
    numbers = ("7", "138,000", "0.00407", "0.00367 to 0.00441", "under 1%")
    lines = lines_of(
        Grid(columns, [(name, *numbers) for name in (*LONG, "fruit and vegetables / leafy greens")]), width
    )
    assert max(map(len, lines)) <= width
    for name in LONG:
        assert sum(name in line for line in lines) == 1
    assert all(any(word in line.split() for line in lines) for word in ("vegetables", "leafy", "greens", "138,000"))


def test_a_table_that_fits_has_one_line_per_row() -> None:
    columns, row = ("name", "a long header", "plays"), ("x", "1", "2")
    assert lines_of(Grid(columns, [row]), 80) == ["name  a long header  plays", "x                 1      2"]
    assert lines_of(Grid(columns, [row]), 20) == ["name  a long  plays", "      header", "x          1      2"]
    assert lines_of(Grid(columns, [row, ("y" * 30, "3", "4")]), 20)[-2:] == ["y" * 10, "            3      4"]
    assert max(map(len, lines_of(Grid(["column"] * 40, []), 80))) >= 40  # does not fit, and yet no error
