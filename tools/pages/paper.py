"""docs/paper.md: the paper's claims with their verdicts, and ATS and LinATS beside the paper's algorithms."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import banditree as bt
from banditree.paper import beyond
from banditree.paper.claims import CLAIMS, OPEN, VERDICTS, Claim, judge_claim
from banditree.paper.figures import DEFAULT, FIGURES, Figure, Setting
from banditree.paper.pictures import draw
from banditree.paper.report import again, margin
from banditree.paper.reproduce import run
from banditree.paper.results import stream
from banditree.simulation.runs import Runs
from tools.pages import evidence
from tools.pages.evidence import Page, Part
from tools.pages.journal import Line
from tools.pages.markdown import Table, figures, table
from tools.pages.robustness import geometric_mean
from tools.pages.worlds import NO_TREE, flattened, flattened_linear

POLICIES = (
    *("TS", "TSC", "HTS", "TSMax", "UCB1", "UCBC", "UCT"),
    *("LinTS", "LinTSC", "LinHTS", "LinUCB", "LinUCBC", "LinUCT"),
)
HEADLINES = ("2b", "2c", "1f")  # the pictures that the README and the documentation show
MANY_SEEDS = 400  # for what the paper's 25 leave open
FEW_SEEDS = 25
COLUMNS = (
    *("figures", "claim", "quote", "verdict", "margin", "seeds", "finding", "other readings", "command"),
    *("setting", "policy", "regret", "best", "best regret", "ratio", "se", "regret without tree"),
)
FLAT_ATS = partial(flattened, policy=bt.ATS)
PLURAL = dict(zip(VERDICTS, ("hold", "hold in part", "do not hold", "cannot be decided with these seeds"), strict=True))
WITH_MANY = f", {MANY_SEEDS} seeds"


# ---------------------------------------------------------------- measuring


class Simulated:
    """The runs of figures, made when a claim first reads them: a source for `judge_claim`."""

    def __init__(self, seeds: int | None = None) -> None:
        self._seeds = seeds  # None: the paper's, and then every variant too
        self._runs: dict[tuple[str, str], dict[str, Runs]] = {}

    def __contains__(self, key: object, /) -> bool:
        """Say whether a figure, or a (figure, variant), can be run."""
        figure, variant = (key, DEFAULT) if isinstance(key, str) else key if isinstance(key, tuple) else ("", "")
        return figure in FIGURES and (
            variant == DEFAULT or (self._seeds is None and variant in FIGURES[figure].options)
        )

    def runs(self, figure: str, variant: str = DEFAULT) -> Mapping[str, Runs]:
        if (figure, variant) not in self._runs:
            seeds = self._seeds or FIGURES[figure].seeds
            self._runs[figure, variant] = run(FIGURES[figure], variant, seeds=seeds)
        return self._runs[figure, variant]


@cache
def simulated(seeds: int | None = None) -> Simulated:
    return Simulated(seeds)


def parts() -> list[Part]:
    """Every claim is a part, once more with many seeds where few were run, and every figure that ATS joins."""
    found = []
    for claim in CLAIMS.values():
        of = evidence.digest(claim.statistic, claim.figures, *map(figure_digest, claim.figures))
        found.append(Part(claim.id, of, partial(measure_claim, claim)))
        if not claim.of_instances and all(FIGURES[name].seeds == FEW_SEEDS for name in claim.figures):
            many = evidence.digest(of, MANY_SEEDS)
            found.append(Part(f"{claim.id}{WITH_MANY}", many, partial(measure_claim, claim, MANY_SEEDS)))
    for name, figure in beyond.FIGURES.items():
        ours = sorted({policy.split()[0] for setting in figure.settings() for policy in setting.policies})
        of = evidence.digest(figure_digest(name), evidence.law(tuple(ours)))
        found.append(Part(f"figure {name} with ATS", of, partial(measure_beyond, name, figure)))
    return found


@cache
def figure_digest(name: str) -> str:
    """What a figure depends on: the law of the paper's policies, its instances, and how it is run."""
    figure = FIGURES[name]
    settings = [(each.label, repr(each.problem), sorted(each.policies)) for each in figure.settings()]
    problem = figure.settings()[0].problem if figure.kind != "function" else None
    drawn = [] if problem is None else [problem.instance(stream(name, DEFAULT, figure.settings()[0]))]
    means = [getattr(each, "means", None) for each in drawn]
    rates = evidence.numbers([array for array in means if array is not None])
    plain = re.sub(r" at 0x\w+", "", repr(settings))
    return evidence.digest(evidence.law(POLICIES), name, figure.horizon, figure.seeds, plain, rates)


def measure_claim(claim: Claim, seeds: int | None = None) -> list[Line]:
    verdict = judge_claim(claim, simulated(seeds))
    assert verdict.finding is not None, verdict.missing
    readings = "; ".join(f"{name}: {finding.verdict}" for name, finding in verdict.variants.items())
    cells = (
        *(" ".join(claim.figures), claim.title, claim.quote, verdict.verdict, margin(verdict.margin)),
        *(str(verdict.finding.seeds), verdict.sentence, readings, again(verdict)),
    )
    return [dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, cells, strict=False))]


def measure_beyond(name: str, figure: Figure) -> list[Line]:
    """ATS or LinATS in every setting of a figure, beside the best of the paper's algorithms there."""
    seeds = FIGURES[name].seeds
    joined = beyond.join_settings(figure, simulated().runs(name), run(figure, seeds=seeds))
    flat = {
        label.replace("=", " = "): float(next(iter(runs.regret.values()))[:, -1].mean())
        for label, runs in run(without_tree(figure), seeds=seeds).items()
    }
    return [
        dict.fromkeys(COLUMNS, "")
        | {"figures": name, "seeds": str(seeds), "setting": row.setting, "policy": row.policy}
        | {"regret": f"{row.regret:.5g}", "best": row.best, "best regret": f"{row.best_regret:.5g}"}
        | {"ratio": f"{row.ratio:.4g}", "se": f"{row.se:.2g}", "regret without tree": f"{flat[row.setting]:.5g}"}
        for row in beyond.compare(name, joined)
    ]


def without_tree(figure: Figure) -> Figure:
    """The figure with ATS or LinATS on the same arms without the tree."""

    def settings(variant: str) -> list[Setting]:
        return [
            replace(each, policies={NO_TREE: flattened_linear if "LinATS" in each.policies else FLAT_ATS})
            for each in figure.settings(variant)
        ]

    return replace(figure, settings_of=settings)


# ---------------------------------------------------------------- the page


HEAD = """# The paper, re-run

Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms" (IJCAI 2021), has eighteen
figures: what regret depends on (1a to 1f), other policies, deeper trees and contexts (2a to 2f), and in the appendix
three functions and the regret on three more problems. `make reproduce` runs all of them, also with other
[readings](readings.md) of what the paper leaves open, and judges every claim that the paper makes about them. It writes
a picture of every figure, every number, and `report.html`, a page in a single file.

| regret of TSC and other policies (2b) | deeper trees (2c) | how many levels (1f) |
|---|---|---|
| ![Figure 2b](images/2b.png) | ![Figure 2c](images/2c.png) | ![Figure 1f](images/1f.png) |
"""
CLAIMED = """
No verdict is written by hand: [how a claim is judged](notes/claims.md). The margin is that of the weakest check, in
standard errors; plus is the paper's side, and a count has no standard error. Quotes, numbers, other readings and the
command that repeats each line are in the CSV file.
"""
RUN = """
## Run any line again

```console
$ banditree reproduce --list              # the figures, their variants and what these mean
$ banditree reproduce 2b                  # one figure, with the paper's seeds
$ banditree reproduce 2b 2c --seeds 500   # more seeds: margins grow with their square root
$ banditree reproduce --variant 1f:even   # another reading of what the paper leaves open
$ banditree reproduce 2b --beyond         # and ATS beside the paper's algorithms
$ banditree reproduce --quick             # everything, with a tenth of the seeds (at least 5)
$ banditree reproduce --resume            # continue after an interruption
```

The numbers depend only on the seeds: not on the machine's cores, nor on which other figures are run.
"""


def text(lines: Sequence[Line], folder: Path) -> str:
    """The page: verdicts in short, and what ATS does on the same instances."""
    draw_headlines(folder / "images")
    claims = [line for line in lines if line["claim"]]
    ours = [line for line in lines if line["policy"]]
    return "\n".join([HEAD, claims_in_short(claims), with_ats(ours), RUN])


def claims_in_short(lines: Sequence[Line]) -> str:
    many = {line["part"].removesuffix(WITH_MANY): line for line in lines if line["part"].endswith(WITH_MANY)}
    usual = [line for line in lines if not line["part"].endswith(WITH_MANY)]
    if not usual:
        return ""
    counts = Counter(_decided(line, many)["verdict"] for line in usual)
    said = ", ".join(f"{counts[verdict]} {words}" for verdict, words in PLURAL.items() if counts[verdict])
    rows = []
    for line in usual:
        more = many.get(line["part"])
        after = "" if more is None else f"{_short(more['verdict'])}, {more['margin']}"
        rows.append((line["claim"], _short(line["verdict"]), line["margin"], after))
    header = ("claim", "verdict", "margin", f"with {MANY_SEEDS} seeds")
    short = f"Of {len(usual)} claims {said}, counted with {MANY_SEEDS} seeds where these were run."
    return f"## The claims\n\n{short}\n{CLAIMED}\n{table(Table(header, rows, left=2))}\n"


def _decided(line: Line, many: Mapping[str, Line]) -> Line:
    """The verdict with many seeds where there is one."""
    return many.get(line["part"], line)


def _short(verdict: str) -> str:
    return "open" if verdict == OPEN else verdict


def with_ats(lines: Sequence[Line]) -> str:
    """A line per figure: ATS or LinATS over the best of the paper's algorithms, which is chosen by these very seeds."""
    if not lines:
        return ""
    by_figure: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        by_figure.setdefault((line["figures"], line["policy"]), []).append(line)
    rows = []
    for (name, policy), some in by_figure.items():
        worst = max(some, key=lambda line: float(line["ratio"]))
        regrets = " / ".join(figures(float(worst[key])) for key in ("regret", "best regret"))
        ratio = f"{_mean_ratio(some, 'best regret'):.2f}", f"{float(worst['ratio']):.2f} ± {float(worst['se']):.2f}"
        tree = f"{_mean_ratio(some, 'regret without tree'):.2f}"
        rows.append(
            (name, policy, worst["setting"] or "the only one", worst["best"], str(len(some)), *ratio, regrets, tree)
        )
    header = (
        *("figure", "ours", "worst setting", "the paper's best there", "settings", "over the best: geometric mean"),
        *("worst", "the two regrets", f"over ours {NO_TREE}: geometric mean"),
    )
    about = (
        "[ATS](adaptive.md), and [LinATS](adaptive.md#linats-who-is-asking) where there are contexts, meet the same "
        "instances: regret over that of the best of the paper's algorithms, which is chosen for each setting by these "
        f"very seeds, and which a user would have to know; and over that of our own {NO_TREE}."
    )
    return f"## Beyond the paper\n\n{about}\n\n{table(Table(header, rows, left=4))}\n"


def _mean_ratio(lines: Sequence[Line], other: str) -> float:
    return geometric_mean([float(line["regret"]) / float(line[other]) for line in lines])


def draw_headlines(images: Path) -> None:
    """Draw the headline figures that were run just now; the others are what they were."""
    runs = simulated()._runs
    for name in HEADLINES:
        if (name, DEFAULT) in runs:
            with TemporaryDirectory() as place:
                picture, _ = draw(FIGURES[name], DEFAULT, runs[name, DEFAULT], Path(place) / name)
                images.mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, images / f"{name}.png")


PAGE = Page("paper", COLUMNS, parts, text)
