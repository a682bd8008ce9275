"""The page of the paper: verdicts in short from its lines, and which lines another law measures again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from banditree.paper import beyond
from banditree.paper.claims import CLAIMS
from banditree.paper.figures import FIGURES
from tests.support.helpers import needs_native
from tools.pages import evidence, paper
from tools.pages.evidence import DOCS
from tools.pages.paper import COLUMNS, HEADLINES, WITH_MANY, Simulated, text


def line(part: str, **cells: str) -> dict[str, str]:
    return {"part": part} | dict.fromkeys(COLUMNS, "") | cells


OPEN = "cannot be decided with these seeds"
CLAIMED = [
    line("one", claim="One", verdict="holds", margin="+5.0", seeds="50"),
    line("two", claim="Two", verdict=OPEN, margin="+1.0", seeds="25"),
    line(f"two{WITH_MANY}", claim="Two", verdict="does not hold", margin="-9.0", seeds="400"),
    line("three", claim="Three", verdict=OPEN, margin="+0.1", seeds="50"),
]
OURS = [
    line("figure 2b with ATS", figures="2b", setting=setting, policy="ATS", best="TSC", ratio=ratio, se="0.05")
    | {"regret": regret, "best regret": "100", "regret without tree": "400"}
    for setting, ratio, regret in (("N = 10", "0.5", "50"), ("N = 20", "2", "200"))
]


def test_the_page_has_the_verdicts_in_short_and_counts_those_of_many_seeds(tmp_path: Path) -> None:
    page = text([*CLAIMED, *OURS], tmp_path)
    assert f"Of 3 claims 1 hold, 1 do not hold, 1 {OPEN}," in page
    assert "| One | holds | +5.0 |  |" in page
    assert "| Two | open | +1.0 | does not hold, -9.0 |" in page
    assert "| 2b | ATS | N = 20 | TSC | 2 | 1.00 | 2.00 ± 0.05 | 200 / 100 | 0.25 |" in page


def test_the_page_is_short_however_many_claims_there_are(tmp_path: Path) -> None:
    many = [line(name, claim=claim.title, verdict="holds", margin="+5.0") for name, claim in CLAIMS.items()]
    assert len(text([*many, *OURS], tmp_path).split()) < 1200


def test_every_claim_is_a_part_and_another_law_of_ats_measures_only_ats_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="trees of k-means need the extra `cluster`")

    def digests(changed: str) -> dict[str, str]:
        monkeypatch.setattr(evidence, "law", lambda names: f"{names} {changed in names}")
        paper.figure_digest.cache_clear()
        return {part.name: part.digest for part in paper.parts()}

    before, after = digests("nobody"), digests("ATS")
    paper.figure_digest.cache_clear()
    assert before.keys() >= CLAIMS.keys()
    again = {name for name in before if before[name] != after[name]}
    assert "figure 2b with ATS" in again
    assert "figure 2e with ATS" not in again  # LinATS
    assert all(name.endswith("with ATS") for name in again)


def test_a_claim_is_judged_from_runs_that_are_made_when_it_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="trees of k-means need the extra `cluster`")
    assert ("2d", "unit") in Simulated()
    assert ("2d", "unit") not in Simulated(5)
    assert "2d" in Simulated(5)
    assert "3z" not in Simulated(5)
    few = Simulated(3)
    monkeypatch.setattr(paper, "simulated", lambda seeds=None: few)
    (found,) = paper.measure_claim(CLAIMS["unstructured-tsc-worse"], 3)
    assert list(found) == list(COLUMNS)
    assert found["seeds"] == "3"
    assert re.search(r"TS has a regret of \d+, TSC of \d+", found["finding"])
    assert found["command"] == "banditree reproduce unstructured-regret --seeds 3"


@needs_native
def test_ats_meets_the_instances_of_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Simulated(2)
    monkeypatch.setattr(paper, "simulated", lambda seeds=None: few)
    monkeypatch.setitem(FIGURES, "1a", replace(FIGURES["1a"], seeds=2))
    lines = paper.measure_beyond("1a", beyond.FIGURES["1a"])
    assert [each["setting"] for each in lines] == [f"distance = {0.05 * i:.2g}" for i in range(1, 9)]
    total = {key: sum(float(each[key]) for each in lines) for key in ("regret", "regret without tree")}
    assert total["regret"] < total["regret without tree"]
    for each in lines:
        assert float(each["ratio"]) == pytest.approx(float(each["regret"]) / float(each["best regret"]), rel=1e-3)


def test_the_headline_pictures_are_in_the_documentation(tmp_path: Path) -> None:
    page = text([], tmp_path)
    assert all(f"images/{name}.png" in page and (DOCS / "images" / f"{name}.png").exists() for name in HEADLINES)
