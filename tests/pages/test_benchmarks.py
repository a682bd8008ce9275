"""The benchmarks' page: what a section measured is in its lines, and the page is made from the lines alone."""

from __future__ import annotations

from pathlib import Path

from benchmarks import page
from benchmarks.__main__ import PAGE
from benchmarks.page import Section, Spread, Target, ratio
from benchmarks.sections import SECTIONS
from tools.pages.markdown import Table


def test_targets_wins_and_tables_survive_the_file(tmp_path: Path) -> None:
    section = Section("Logs", "Text.")
    section.tables.append(("", Table(("rows", "read, s"), [("1,000", "0.5 (0.4 to 0.6)"), ("2,000", "1.1")])))
    met = Target("TS: a whole run", ratio([30.0, 33.0], [1.0, 1.0]), 18.0)
    missed = Target("bytes per arm", Spread.of([61.0]), 50.0, at_most=True, unit="")
    section.targets += [met, missed]
    section.peer_wins.append("coba takes less memory")
    section.versions["coba"] = "8.1.0"
    section.failures["river, memory"] = "no answer"
    lines = section.lines()
    assert page.targets(lines) == [met, missed]
    text = page.text(lines, tmp_path)
    for expected in (
        "1 of 2 met.",
        "| TS: a whole run | 32× | 31 to 32 | at least 18× | met |",
        "| bytes per arm | 61.0 | one measurement | at most 50 | **missed** |",
        "- coba takes less memory",
        "coba 8.1.0.",
        "- river, memory: no answer",
        "| 2,000 | 1.1 |",
        "Measured on: ",
    ):
        assert expected in text, expected
    assert (tmp_path / "images/benchmarks.png").stat().st_size > 3000


def test_every_section_is_a_part() -> None:
    assert [part.name for part in PAGE.parts()] == list(SECTIONS)
