"""ATS on the paper's figures: the same instances, kept apart from the paper's numbers, and compared by hand."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from banditree.paper import beyond, reproduce
from banditree.paper.figures import DEFAULT, Figure
from banditree.paper.figures import FIGURES as OF_PAPER
from banditree.paper.reproduce import run
from banditree.paper.results import stream
from banditree.policy.engines import engine
from banditree.simulation.simulator import Streams
from tests.support.made_up_runs import runs

SMALL = ["1a", "1f", "2a", "2d", "bumps-regret"]


def small(figure: Figure, settings: int | None) -> Figure:
    """The first settings of a figure, or all, for a few steps."""
    of = figure.settings_of
    return replace(figure, horizon=40, settings_of=lambda variant: of(variant)[:settings])


def test_it_covers_every_figure_with_runs() -> None:
    assert list(beyond.FIGURES) == [name for name, figure in OF_PAPER.items() if figure.kind != "function"]


@pytest.mark.parametrize("name", beyond.FIGURES)
def test_ats_meets_the_papers_instances_on_the_whole_tree(name: str) -> None:
    paper = {setting.stream: setting for setting in OF_PAPER[name].settings()}
    ours = beyond.FIGURES[name].settings()
    assert [setting.stream for setting in ours] == list(paper)
    for setting in ours[:2]:
        there = paper[setting.stream]
        assert repr(setting.problem) == repr(there.problem)
        first, second = (Streams(stream(name, DEFAULT, item)).instance(0) for item in (setting, there))
        assert first.generate_state(4).tolist() == second.generate_state(4).tolist()
    expected = ["LinATS"] if name in ("2d", "2e", "2f") else ["ATS"]
    expected += ["ATS on Ward's tree"] if name in ("surface-regret", "bumps-regret") else []
    assert list(ours[0].policies) == expected


@pytest.mark.parametrize("name", SMALL)
def test_a_figure_is_run_joined_compared_and_drawn(name: str, tmp_path: Path) -> None:
    deep = name == "1f"
    paper = run(small(OF_PAPER[name], 4 if deep else None), seeds=2, jobs=1)  # 16 arms at every depth
    figure = small(beyond.FIGURES[name], 1 if deep else None)
    content = beyond.join_settings(figure, paper, run(figure, seeds=2, jobs=1))
    together = next(iter(content.values()))
    assert "ATS" in together.policies[-1]
    rows = beyond.compare(name, content)
    assert {row.policy for row in rows} == {item for item in together.policies if "ATS" in item}
    if deep:
        assert together.policies == ("HTS L=0", "HTS L=1", "HTS L=2", "HTS L=3", "ATS")
    (tmp_path / "beyond").mkdir()
    assert beyond.draw(name, content, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_the_ratio_and_its_error_by_hand() -> None:
    """Regret of ATS 90 and 110 where TSC, the better of two, has 100 and 300: the ratio is 0.5."""
    made = runs({"TS": 500.0, "TSC": 200.0, "ATS": 100.0}, key="", clusters={0: 1}, seeds=2)
    regret = {name: values.copy() for name, values in made.regret.items()}
    regret["TSC"][:, -1], regret["ATS"][:, -1], regret["TS"][:, -1] = (100, 300), (90, 110), (400, 600)
    (row,) = beyond.compare("2a", {"": replace(made, regret=regret)})
    assert (row.best, row.regret, row.best_regret, row.ratio) == ("TSC", 100, 200, 0.5)
    # differences 90 - 0.5 * 100 = 40 and 110 - 0.5 * 300 = -40: standard deviation 56.6, standard error 40
    assert row.se == pytest.approx(40 / 200)
    assert row.outcome == "alike"
    assert replace(row, se=0.1).outcome == "less"
    assert replace(row, ratio=1.4, se=0.1).outcome == "more"
    assert replace(row, se=np.nan).outcome == "alike"
    said = beyond.summarise([row, replace(row, ratio=2.0, se=0.1, setting="n_arms = 9")])
    assert "in 0, more in 1, and is within three standard errors of it in 1." in said
    assert "mean of the ratios is 1.00; the worst is 2.00 (figure 2a, n_arms = 9)." in said


@pytest.mark.skipif(engine() != "native", reason="minutes on the readable engine")
def test_the_papers_numbers_stay_as_they_are(tmp_path: Path) -> None:
    name = "unstructured-regret"
    without, both = tmp_path / "without", tmp_path / "both"
    page = reproduce.reproduce([name], seeds=2, out=without, jobs=1)
    assert "Beyond the paper" not in page.read_text(encoding="utf-8")
    assert not (without / "beyond").exists()
    page = reproduce.reproduce([name], seeds=2, out=both, jobs=1, beyond=True)
    for file in ("results.csv", "claims.md"):
        assert (both / file).read_bytes() == (without / file).read_bytes()
    text = page.read_text(encoding="utf-8")
    assert 'id="beyond"' in text
    assert "Of 1 comparison, ATS has" in text
    with (both / "beyond" / "results.csv").open(encoding="utf-8") as table:
        assert {(row["figure"], row["policy"], row["seeds"]) for row in csv.DictReader(table)} == {(name, "ATS", "2")}
    before = (both / "beyond" / "runs" / f"{name}-default.json").stat().st_mtime_ns
    reproduce.reproduce([name], seeds=2, out=both, jobs=1, beyond=True, resume=True)
    assert (both / "beyond" / "runs" / f"{name}-default.json").stat().st_mtime_ns == before
    reproduce.reproduce([name], seeds=3, out=both, jobs=1)  # other seeds than those of ATS, so not comparable
    assert 'id="beyond"' not in page.read_text(encoding="utf-8")
