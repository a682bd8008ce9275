"""Beyond the paper: ATS, and LinATS where there are contexts, on the same instances as the paper's algorithms.

It is run and kept apart, in the folder ``beyond``, so that the paper's own numbers and claims stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from pathlib import Path

import numpy as np

from banditree import ATS, LinATS, plots
from banditree.base.words import count
from banditree.paper import pictures
from banditree.paper.claims.claim import parameter
from banditree.paper.figures import DEFAULT, LINEAR, ON_TREES, Figure, Setting
from banditree.paper.figures import FIGURES as OF_PAPER
from banditree.paper.results import Results, stem
from banditree.simulation.one_seed import Factory
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import on
from banditree.simulation.statistics import over_seeds
from banditree.simulation.sweeping import Line, add_point

FOLDER = "beyond"
OURS = "ATS"
ON_WARD = "ATS on Ward's tree"
WITH_CONTEXTS = "LinATS"
SLOWER = {OURS: 8, WITH_CONTEXTS: 10}  # time of a decision, about, in those of the paper's algorithms
DECISIVE_ERRORS = 3.0  # standard errors of a ratio that decide


def _add_ours(figure: Figure) -> Figure:
    """Return the figure with ATS in place of the paper's algorithms.

    There is one setting for each set of instances, whatever the number of depths that the paper's algorithm runs at.
    """
    by_stream: dict[str, Setting] = {}
    ours = OURS
    for setting in figure.settings():
        policies: dict[str, Factory] = {OURS: ATS}
        if setting.policies == LINEAR:
            ours, policies = WITH_CONTEXTS, {WITH_CONTEXTS: LinATS}
        if setting.policies == ON_TREES:
            policies[ON_WARD] = on("ward", ATS)
        by_stream.setdefault(setting.stream, replace(setting, label=setting.stream, line="", policies=policies))
    return replace(
        figure,
        title=f"{figure.title}, and {ours}",
        settings_of=lambda _: list(by_stream.values()),
        options={},
        seconds=SLOWER[ours] * figure.seconds,
    )


FIGURES: dict[str, Figure] = {name: _add_ours(figure) for name, figure in OF_PAPER.items() if figure.kind != "function"}


@dataclass(frozen=True)
class Compared:
    """ATS in one setting, beside that algorithm of the paper which has the least regret in it."""

    figure: str
    setting: str
    policy: str  # ATS, ATS on Ward's tree, or LinATS
    regret: float  # its mean at the horizon
    best: str  # the algorithm of the paper with the least regret
    best_regret: float
    ratio: float  # of the two
    se: float  # of the ratio, over seeds, which both have in common

    @property
    def outcome(self) -> str:
        """Return "less", "more" or "alike": alike means within three standard errors."""
        if not abs(self.ratio - 1) > DECISIVE_ERRORS * self.se:  # nor if one seed leaves it open
            return "alike"
        return "less" if self.ratio < 1 else "more"


def join_figures(paper: Results, ours: Results) -> dict[str, dict[str, Runs]]:
    """Join the paper's runs with those of ATS: {figure: {setting: runs}}, where both were run in the same way."""
    return {
        name: join_settings(figure, paper.runs(name), ours.runs(name))
        for name, figure in FIGURES.items()
        if name in paper and name in ours and paper.kept[name, DEFAULT].inputs == ours.kept[name, DEFAULT].inputs
    }


def join_settings(figure: Figure, paper: Mapping[str, Runs], ours: Mapping[str, Runs]) -> dict[str, Runs]:
    """Join the runs of each setting. Depths, which the paper has as settings, become policies: HTS L=2."""
    joined: dict[str, Runs] = {}
    for setting in figure.settings():
        for name, runs in paper.items():
            if name == setting.label:
                joined[setting.label] = runs
            elif name.startswith(f"{setting.label} depth="):
                deep = runs.rename({"HTS": f"HTS L={parameter(name, 'depth'):g}"})
                joined[setting.label] = joined[setting.label] | deep if setting.label in joined else deep
        joined[setting.label] = joined[setting.label] | ours[setting.label]
    return joined


def compare(name: str, runs: Mapping[str, Runs]) -> list[Compared]:
    """Compare ATS with the paper's best in each setting; the best is chosen by the same seeds, which favours it."""
    comparisons = []
    for label, of_setting in runs.items():
        final = {policy: regret[:, -1] for policy, regret in of_setting.regret.items()}  # (seeds,) each
        means = {policy: float(regret.mean()) for policy, regret in final.items()}
        adaptive = [policy for policy in final if policy in (OURS, ON_WARD, WITH_CONTEXTS)]
        best = min((policy for policy in final if policy not in adaptive), key=means.__getitem__)
        for policy in adaptive:
            ratio = means[policy] / means[best]
            se = over_seeds(final[policy] - ratio * final[best]).se / means[best]
            where = label.replace("=", " = ")
            comparisons.append(Compared(name, where, policy, means[policy], best, means[best], ratio, se))
    return comparisons


def summarise(rows: Sequence[Compared]) -> str:
    """Count the outcomes in a sentence."""
    outcomes = [row.outcome for row in rows]
    ours = " or ".join(sorted({row.policy.split()[0] for row in rows}))
    mean = float(np.exp(np.mean(np.log([row.ratio for row in rows]))))
    worst = max(rows, key=lambda row: row.ratio)
    where = f"figure {worst.figure}" + (f", {worst.setting}" if worst.setting else "")
    return (
        f"Of {count(len(rows), 'comparison')}, {ours} has less regret than the best of the paper's algorithms in "
        f"{outcomes.count('less')}, more in {outcomes.count('more')}, and is within three standard errors of it in "
        f"{outcomes.count('alike')}. The geometric mean of the ratios is {mean:.2f}; the worst is {worst.ratio:.2f} "
        f"({where})."
    )


def draw(name: str, runs: Mapping[str, Runs], out: Path, *, again: bool = False) -> Path:
    """Draw the figure with ATS in it, unless that is done; return the path of the PNG file."""
    path = out / FOLDER / stem(name)
    if again or not pictures.is_drawn(path):
        plots.save(_axes(FIGURES[name], runs), path)
    return path.parent / f"{path.name}.png"


def _axes(figure: Figure, runs: Mapping[str, Runs]) -> object:
    if figure.kind == "curves":
        return plots.regret(next(iter(runs.values())), ax=plots.sheet(), title=figure.title)
    if "HTS L=0" not in next(iter(runs.values())).policies:
        return pictures.axes(figure, DEFAULT, runs)
    lines: dict[str, Line] = {}
    for label, of_setting in runs.items():
        summaries = {policy: over_seeds(regret[:, -1]) for policy, regret in of_setting.regret.items()}
        depths = [policy for policy in summaries if policy != OURS]
        best = min(depths, key=lambda policy: summaries[policy].mean)
        policies = {"TS": depths[0], "HTS": depths[-1], "HTS, best depth": best, OURS: OURS}
        for line, policy in policies.items():
            add_point(lines, line, log2(parameter(label, "n_arms")), summaries[policy])
    return plots.sweep(
        lines,
        x_label="number of arms N, as log2 N",
        y_label=f"cumulative regret at T = {figure.horizon:,} (reward)",
        seeds=len(next(iter(runs.values())).seeds),
        ax=plots.sheet(),
        title=f"{figure.title}; HTS: on the full tree",
    )
