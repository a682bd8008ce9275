"""The page of the paper: verdicts in short from its lines, and which lines another law measures again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from banditree.paper.claim_table import CLAIMS, FAILS, HOLDS, OPEN
from banditree.paper.figures import FIGURES
from tests.support.helpers import needs_native
from tools.pages import evidence, paper
from tools.pages.evidence import DOCS
from tools.pages.paper import COLUMNS, HEADLINES, WITH_MANY, Simulated, text


def line(part: str, **cells: str) -> dict[str, str]:
    return {"part": part} | dict.fromkeys(COLUMNS, "") | cells


CLAIMED = [
    line("one", figure="1a", claim="A < B", verdict=HOLDS, seeds="50") | {"standard errors": "+5.0"},
    line("two", figure="2d", claim="B < C", verdict=OPEN, seeds="25") | {"standard errors": "+1.0"},
    line(f"two{WITH_MANY}", figure="2d", claim="B < C", verdict=FAILS, seeds="400") | {"standard errors": "-9.0"},
    line("three", figure="2e", claim="C < D", verdict=OPEN, seeds="50") | {"standard errors": "+0.1"},
]
OURS = [
    line("figure 2b with ATS", figure="2b", setting=setting, policy="ATS", best="TSC", ratio=ratio, se="0.05")
    | {"regret": regret, "best regret": "100", "regret without tree": "400"}
    for setting, ratio, regret in (("N = 10", "0.5", "50"), ("N = 20", "2", "200"))
]


def test_the_page_has_the_verdicts_in_short_and_counts_those_of_many_seeds(tmp_path: Path) -> None:
    page = text([*CLAIMED, *OURS], tmp_path)
    assert "Of 3 claims 1 hold, 1 do not hold, 1 cannot be decided with these seeds," in page
    assert "A < B" not in page  # what holds is in the CSV file
    assert f"| 2d | B < C | {OPEN} | +1.0 | {FAILS}, -9.0 |" in page
    assert f"| 2e | C < D | {OPEN} | +0.1 |  |" in page
    assert "| 2b | ATS | N = 20 | TSC | 2 | 1.00 | 2.00 ± 0.05 | 200 / 100 | 0.25 |" in page


def test_the_page_is_short_however_many_claims_there_are(tmp_path: Path) -> None:
    many = [line(f"{claim}", claim=f"{claim}", verdict=OPEN if i < 30 else HOLDS) for i, claim in enumerate(CLAIMS)]
    assert len(text([*many, *OURS], tmp_path).split()) < 1200


def test_every_claim_is_a_part_and_another_law_of_ats_measures_only_ats_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="trees of k-means need the extra `cluster`")

    def digests(changed: str) -> dict[str, str]:
        monkeypatch.setattr(evidence, "law", lambda names: f"{names} {changed in names}")
        paper.figure_digest.cache_clear()
        return {part.name: part.digest for part in paper.parts()}

    before, after = digests("nobody"), digests("ATS")
    paper.figure_digest.cache_clear()
    assert len(before) > len(CLAIMS)
    again = {name for name in before if before[name] != after[name]}
    assert "figure 2b with ATS" in again
    assert "figure 2e with ATS" not in again  # LinATS
    assert all(name.endswith("with ATS") for name in again)


def test_with_many_seeds_only_the_papers_policies_run(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Simulated(3)
    assert "2d" in few
    assert "3z" not in few
    monkeypatch.setattr(paper, "simulated", lambda seeds=None: few)
    claim = next(claim for claim in CLAIMS if claim.figure == "unstructured-regret")
    (found,) = paper.measure_claim(claim, 3)
    assert list(found) == list(COLUMNS)
    assert (found["seeds"], found["figure"], found["claim"]) == ("3", "unstructured-regret", f"{claim}")
    assert few.runs("unstructured-regret")[""].policies == ("TS", "TSC")


@needs_native
def test_ats_meets_the_instances_of_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = Simulated()
    monkeypatch.setattr(paper, "simulated", lambda seeds=None: everyone)
    monkeypatch.setitem(FIGURES, "1a", replace(FIGURES["1a"], seeds=2))
    lines = paper.measure_ours("1a")
    assert [each["setting"] for each in lines] == [f"distance = {0.05 * i:.2g}" for i in range(1, 9)]
    total = {key: sum(float(each[key]) for each in lines) for key in ("regret", "regret without tree")}
    assert total["regret"] < total["regret without tree"]
    for each in lines:
        assert float(each["ratio"]) == pytest.approx(float(each["regret"]) / float(each["best regret"]), rel=1e-3)


@needs_native
def test_ats_is_compared_with_the_best_depth_of_hts(monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = Simulated()
    monkeypatch.setattr(paper, "simulated", lambda seeds=None: everyone)
    small = FIGURES["1f"].settings()[:4]  # 16 arms
    monkeypatch.setitem(FIGURES, "1f", replace(FIGURES["1f"], seeds=2, horizon=300, settings_of=lambda _: small))
    (found,) = paper.measure_ours("1f")
    finals = {f"HTS L={each.x:g}": everyone.runs("1f")[each.label].regret["HTS"][:, -1].mean() for each in small}
    assert found["best"] == min(finals, key=finals.__getitem__)
    assert float(found["best regret"]) == pytest.approx(min(finals.values()), rel=1e-3)


def test_the_headline_pictures_are_in_the_documentation(tmp_path: Path) -> None:
    page = text([], tmp_path)
    assert all(f"images/{name}.png" in page and (DOCS / "images" / f"{name}.png").exists() for name in HEADLINES)
