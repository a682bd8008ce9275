"""The report: complete, self-contained, and good in a real browser; and what the documentation takes from it."""

from __future__ import annotations

import json
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from banditree.errors import InvalidValue
from banditree.paper.claim_table import CLAIMS, Verdict, judge
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.report import SIGNS, installed_version, write_report
from banditree.paper.results import FinishedFigure, Results, stem
from banditree.simulation.runs import Runs
from tests.support.made_up_runs import runs

VARIANTS = [("1f", "even"), ("2d", "unit")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def made_up(figure: Figure, variant: str) -> dict[str, Runs]:
    """Runs of every setting of a figure, invented."""
    if figure.kind == "function":
        return {}
    return {
        setting.label: runs(
            {name: 100.0 + 10 * i for i, name in enumerate(setting.policies)},
            key=setting.label,
            clusters={0: 200, 1: 3, 2: 3},
            seeds=5,
        )
        for setting in figure.settings(variant)
    }


def png() -> bytes:
    """A grey picture, 8 by 6."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 6, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x88" * 8) * 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def folder(out: Path, names: list[tuple[str, str]], *, pictures: bool = True) -> Results:
    """A folder as a reproduction leaves it."""
    (out / "runs").mkdir(parents=True)
    results = Results(out)
    for name, variant in names:
        of_settings = made_up(FIGURES[name], variant)
        seeds = 5 if of_settings else 0
        how = FinishedFigure(name, variant, seeds, "native", "0.1.0", seconds=1.5, jobs=2, labels=tuple(of_settings))
        results.keep(how, of_settings)
        if pictures:
            (out / f"{stem(name, variant)}.png").write_bytes(png())
            (out / f"{stem(name, variant)}.svg").write_text("<svg/>")
    return results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Verdict]]:
    """The report of a reproduction with every figure and two variants."""
    out = tmp_path_factory.mktemp("whole") / "out"
    results = folder(out, [(name, DEFAULT) for name in FIGURES] + VARIANTS)
    verdicts = judge(results)
    return write_report(out, results, verdicts), verdicts


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or a skip that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the report was not opened")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium on this machine: the report was not opened in a browser")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


def troubles(browser: Any, path: Path, width: int, scheme: str = "light") -> list[str]:
    """All that a reader would stumble over, with every detail opened."""
    problems: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else problems.append(asked.url))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    broken = "[...document.images].filter(each => !each.complete || each.naturalWidth === 0).length"
    if page.evaluate(broken):
        problems.append("a picture does not load")
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        problems.append("the page scrolls sideways")
    small = "[...document.querySelectorAll('p, td, li')].some(each => parseFloat(getComputedStyle(each).fontSize) < 12)"
    if page.evaluate(small):
        problems.append("some text is too small")
    over = "each => each.getBoundingClientRect().right > each.closest('td').getBoundingClientRect().right + 1"
    if page.evaluate(f"[...document.querySelectorAll('td .badge')].some({over})"):
        problems.append("a verdict runs over the next column")
    dead = (
        "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1))).length"
    )
    if page.evaluate(dead):
        problems.append("a link leads nowhere")
    page.close()
    return problems


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_fine_in_a_browser(
    whole: tuple[Path, list[Verdict]], browser: Any, width: int, scheme: str
) -> None:
    assert troubles(browser, whole[0], width, scheme) == []


@pytest.mark.parametrize(
    ("old", "new", "trouble"),
    [
        ('src="data:image/png;base64,', 'src="data:image/png;base64,AAAA', "a picture does not load"),
        ("</main>", '<div style="width: 3000px">wide</div></main>', "the page scrolls sideways"),
        ("</main>", "<script>console.log('hello')</script></main>", "console: hello"),
        ("</main>", "<script>throw new Error('no')</script></main>", "error: no"),
        ("</main>", '<p style="font-size: 8px">tiny</p></main>', "some text is too small"),
        ('id="figure-2b"', 'id="elsewhere"', "a link leads nowhere"),
    ],
)
def test_the_browser_test_sees_what_it_looks_for(
    whole: tuple[Path, list[Verdict]], browser: Any, tmp_path: Path, old: str, new: str, trouble: str
) -> None:
    path = tmp_path / "broken.html"
    path.write_text(whole[0].read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    assert troubles(browser, path, 390) == [trouble]


def test_every_figure_and_claim_is_there_in_the_order_of_the_paper(whole: tuple[Path, list[Verdict]]) -> None:
    text = whole[0].read_text(encoding="utf-8")
    assert re.findall(r'id="figure-([\w-]+)"', text) == list(FIGURES)
    assert len(whole[1]) == len(CLAIMS)
    assert text.count("<img ") == len(FIGURES) + len(VARIANTS) + 1  # and the theory
    for verdict in whole[1]:
        assert SIGNS[verdict.verdict] in text
        assert escape(str(verdict.claim)) in text
    assert "Not run" not in text
    assert "Another reading: depth L keeps L levels evenly spaced" in text
    assert re.search(r"The figures took \d+ s of wall time, the claims and the theory \d+ s: \d+ s in all", text)


def test_the_theory_leaves_no_figure_open(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    write_report(tmp_path / "out", folder(tmp_path / "out", [("sine", DEFAULT)]), [])
    assert (tmp_path / "out" / "theory.png").exists()
    assert pyplot.get_fignums() == before


def test_the_page_needs_nothing_beside_it(whole: tuple[Path, list[Verdict]]) -> None:
    text = whole[0].read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text)
    assert "<script" not in text
    assert "url(" not in text


def test_claims_are_written_beside_it(whole: tuple[Path, list[Verdict]]) -> None:
    out = whole[0].parent
    content = json.loads((out / "claims.json").read_text(encoding="utf-8"))
    assert [item["verdict"] for item in content] == [verdict.verdict for verdict in whole[1]]
    lines = (out / "claims.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + len(CLAIMS)


def test_a_part_of_the_paper_makes_a_report_too(tmp_path: Path) -> None:
    folder(tmp_path / "out", [("2d", "unit"), ("unstructured-regret", DEFAULT)], pictures=False)
    text = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert (
        tmp_path / "out" / "unstructured-regret.png"
    ).stat().st_size > 1000  # a picture that was gone is drawn again
    assert re.findall(r'id="figure-([\w-]+)"', text) == ["2d", "unstructured-regret"]
    assert "Not run: 1a, 1b" in text


def test_a_run_of_one_figure_shows_its_claims_and_no_others(tmp_path: Path) -> None:
    results = folder(tmp_path / "out", [("2a", DEFAULT)])
    verdicts = judge(results)
    text = write_report(tmp_path / "out", results, verdicts).read_text(encoding="utf-8")
    assert {verdict.claim.figures for verdict in verdicts} == {("2a",)}
    assert f"{len(verdicts)} of {len(CLAIMS)} claims" in text
    assert f"{len(CLAIMS) - len(verdicts)} claims are about other figures" in text


def test_the_page_leads_with_the_figures(whole: tuple[Path, list[Verdict]]) -> None:
    text = whole[0].read_text(encoding="utf-8")
    places = [text.index(f'<section id="{name}"') for name in ("figures", "claims", "theory", "made")]
    assert places == sorted(places)
    figure = text[text.index('id="figure-1a"') : text.index('id="figure-1b"')]
    assert "TSC at distance=0.4 &lt; TSC at distance=0.2" in figure
    assert "width=0.4" not in figure.replace("width = 0.4", "")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no finished figure"):
        write_report(tmp_path)


def test_text_is_escaped(tmp_path: Path) -> None:
    results = folder(tmp_path / "out", [("unstructured-regret", DEFAULT)])
    bad = made_up(FIGURES["unstructured-regret"], DEFAULT)[""]
    object.__setattr__(bad, "problem", "<b>bad & worse</b>")
    results.keep(results.kept["unstructured-regret", DEFAULT], {"": bad})
    text = write_report(tmp_path / "out", results).read_text(encoding="utf-8")
    assert "&lt;b&gt;bad &amp; worse&lt;/b&gt;" in text
    assert "<b>bad" not in text


def test_versions_of_what_is_not_installed_are_left_out() -> None:
    assert installed_version("numpy")
    assert installed_version("no-such-package-at-all") is None
