"""docs/paper.md: the paper's claims with their verdicts, and ATS and LinATS beside the paper's algorithms."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import banditree as bt
from banditree.paper.claim_table import CLAIMS, HOLDS, VERDICTS, Claim, describe
from banditree.paper.figures import DEFAULT, FIGURES, OURS, Figure, Setting
from banditree.paper.pictures import draw
from banditree.paper.reproduce import run
from banditree.paper.results import stream
from banditree.policy.factories import Factory
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds
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
    *("figure", "claim", "quote", "statistic", "a", "b", "standard errors", "seeds", "verdict"),
    *("setting", "policy", "regret", "best", "best regret", "ratio", "se", "regret without tree"),
)
OF_RUNS = ("regret at T", "regret gained")  # statistics that more seeds tell more about
FLAT_ATS = partial(flattened, policy=bt.ATS)
PLURAL = dict(zip(VERDICTS, ("hold", "do not hold", "cannot be decided with these seeds"), strict=True))
WITH_MANY = f", {MANY_SEEDS} seeds"


# ---------------------------------------------------------------- measuring


class Simulated:
    """The runs of figures, made when they are first read; with a number of seeds, of the paper's policies alone."""

    def __init__(self, seeds: int | None = None) -> None:
        self._seeds = seeds
        self._runs: dict[str, dict[str, Runs]] = {}

    def __contains__(self, figure: object, /) -> bool:
        return figure in FIGURES

    def runs(self, figure: str) -> dict[str, Runs]:
        if figure not in self._runs:
            usual = FIGURES[figure]
            chosen = usual if self._seeds is None else with_policies(usual, _of_paper)
            self._runs[figure] = run(chosen, seeds=self._seeds or usual.seeds)
        return self._runs[figure]


def with_policies(figure: Figure, change: Callable[[Mapping[str, Factory]], dict[str, Factory]]) -> Figure:
    """The figure with other policies in each setting; settings without any are left out."""

    def settings(variant: str) -> list[Setting]:
        changed = [replace(each, policies=change(each.policies)) for each in figure.settings(variant)]
        return [each for each in changed if each.policies]

    return replace(figure, settings_of=settings)


def _of_paper(policies: Mapping[str, Factory]) -> dict[str, Factory]:
    return {name: policy for name, policy in policies.items() if name not in OURS}


def _without_tree(policies: Mapping[str, Factory]) -> dict[str, Factory]:
    """ATS or LinATS on the same arms without the tree, where one of them is in the setting."""
    ours = [name for name in policies if name in OURS]
    return {NO_TREE: flattened_linear if "LinATS" in ours else FLAT_ATS} if ours else {}


@cache
def simulated(seeds: int | None = None) -> Simulated:
    return Simulated(seeds)


def parts() -> list[Part]:
    """Every claim is a part, once more with many seeds where few were run, and every figure that ATS joins."""
    found = []
    for claim in CLAIMS:
        name = f"{claim.figure}, {claim.statistic}: {claim}"
        of = evidence.digest(claim, *map(figure_digest, claim.figures))
        found.append(Part(name, of, partial(measure_claim, claim)))
        if claim.statistic in OF_RUNS and all(FIGURES[figure].seeds == FEW_SEEDS for figure in claim.figures):
            many = evidence.digest(of, MANY_SEEDS)
            found.append(Part(f"{name}{WITH_MANY}", many, partial(measure_claim, claim, MANY_SEEDS)))
    for name, figure in FIGURES.items():
        ours = {policy.split()[0] for setting in figure.settings() for policy in setting.policies if policy in OURS}
        if ours:
            of = evidence.digest(figure_digest(name), evidence.law(tuple(sorted(ours))))
            found.append(Part(f"figure {name} with ATS", of, partial(measure_ours, name)))
    return found


@cache
def figure_digest(name: str) -> str:
    """What a figure depends on: the law of the paper's policies, its instances, and how it is run."""
    figure = FIGURES[name]
    settings = [(each.label, repr(each.problem), sorted(_of_paper(each.policies))) for each in figure.settings()]
    problem = figure.settings()[0].problem if figure.kind != "function" else None
    drawn = [] if problem is None else [problem.instance(stream(name, DEFAULT, figure.settings()[0]))]
    means = [getattr(each, "means", None) for each in drawn]
    rates = evidence.numbers([array for array in means if array is not None])
    plain = re.sub(r" at 0x\w+", "", repr(settings))
    return evidence.digest(evidence.law(POLICIES), name, figure.horizon, figure.seeds, plain, rates)


def measure_claim(claim: Claim, seeds: int | None = None) -> list[Line]:
    verdict = claim.judge(simulated(seeds))
    cells = " ".join(claim.figures), f"{claim}", claim.quote, claim.statistic, *describe(verdict), verdict.verdict
    return [dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, cells, strict=False))]


def measure_ours(name: str) -> list[Line]:
    """ATS or LinATS on all instances of a figure, beside the best of the paper's algorithms there.

    Settings that share their instances, such as the depths of 1f, are one.
    """
    figure = FIGURES[name]
    runs = simulated().runs(name)
    flat = run(with_policies(figure, _without_tree), seeds=figure.seeds)
    by_stream: dict[str, list[Setting]] = {}
    for setting in figure.settings():
        by_stream.setdefault(setting.stream, []).append(setting)
    lines = []
    for stream_name, settings in by_stream.items():
        final = {
            policy if len(settings) == 1 or policy in OURS else f"{policy} L={setting.x:g}": regret[:, -1]
            for setting in settings
            for policy, regret in runs[setting.label].regret.items()
        }  # (seeds,) each
        (without,) = (flat[each.label].regret[NO_TREE][:, -1].mean() for each in settings if each.label in flat)
        best = min((policy for policy in final if policy not in OURS), key=lambda policy: final[policy].mean())
        for policy in final.keys() & set(OURS):
            ratio = final[policy].mean() / final[best].mean()
            se = over_seeds(final[policy] - ratio * final[best]).se / final[best].mean()
            numbers = {
                "regret": final[policy].mean(),
                "best regret": final[best].mean(),
                "regret without tree": without,
            }
            lines.append(
                dict.fromkeys(COLUMNS, "")
                | {"figure": name, "seeds": str(figure.seeds), "setting": stream_name.replace("=", " = ")}
                | {"policy": policy, "best": best, "ratio": f"{ratio:.4g}", "se": f"{se:.2g}"}
                | {key: f"{value:.5g}" for key, value in numbers.items()}
            )
    return sorted(lines, key=lambda line: list(by_stream).index(line["setting"].replace(" = ", "=")))


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
Each is a row: in a figure, a statistic of a is below or above a margin times that of b. No verdict is written by hand:
[how a claim is judged](notes/claims.md). Standard errors are of the distance between both sides; plus is the paper's
side. All rows, with the paper's sentences, are in the CSV file. These do not hold, or 25 to 100 seeds leave them open:
"""
RUN = """
## Run any line again

```console
$ banditree reproduce --list              # the figures, their variants and what these mean
$ banditree reproduce 2b                  # one figure, with the paper's seeds
$ banditree reproduce 2b 2c --seeds 500   # more seeds: standard errors shrink with their square root
$ banditree reproduce --variant 1f:even   # another reading of what the paper leaves open
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
    counts = Counter(many.get(line["part"], line)["verdict"] for line in usual)  # with many seeds where there are some
    said = ", ".join(f"{counts[verdict]} {words}" for verdict, words in PLURAL.items() if counts[verdict])
    rows = []
    for line in usual:
        if line["verdict"] != HOLDS:
            more = many.get(line["part"])
            after = "" if more is None else f"{more['verdict']}, {more['standard errors']}"
            rows.append((line["figure"], line["claim"], line["verdict"], line["standard errors"], after))
    header = ("figure", "claim", "verdict", "standard errors", f"with {MANY_SEEDS} seeds")
    short = f"Of {len(usual)} claims {said}, counted with {MANY_SEEDS} seeds where these were run."
    return f"## The claims\n\n{short}\n{CLAIMED}\n{table(Table(header, rows, left=3))}\n"


def with_ats(lines: Sequence[Line]) -> str:
    """A line per figure: ATS or LinATS over the best of the paper's algorithms, which is chosen by these very seeds."""
    if not lines:
        return ""
    by_figure: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        by_figure.setdefault((line["figure"], line["policy"]), []).append(line)
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
        if name in runs:
            with TemporaryDirectory() as place:
                picture, _ = draw(FIGURES[name], DEFAULT, runs[name], Path(place) / name)
                images.mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, images / f"{name}.png")


PAGE = Page("paper", COLUMNS, parts, text)
