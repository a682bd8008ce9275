"""What was measured, one row per offer and environment, and the page `docs/contest.md`, computed from it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditree.base.intervals import student
from contest.contestants import NO_TREE, TOLD_ALL
from contest.worlds import Environment
from tools.pages.markdown import Table, describe, figures, table

OURS = "banditree"


@dataclass(frozen=True)
class Row:
    """An offer on an environment, with the regret of each seed."""

    environment: str
    package: str
    label: str
    note: str
    regrets: dict[int, float] = field(default_factory=dict)  # {seed: regret}
    seconds: list[float] = field(default_factory=list)
    probability: str = "none"
    reached: int | None = None  # the round at which it was stopped, None if it was not
    stating: float = 0.0  # seconds of a decision with its probability
    failure: str = ""

    @property
    def name(self) -> str:
        return f"{self.label} ({self.note})" if self.note else self.label

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.regrets.values()))) if self.regrets else float("nan")

    @property
    def se(self) -> float:
        """Standard error of the mean, NaN for one seed."""
        n = len(self.regrets)
        return float(np.std(list(self.regrets.values()), ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    @property
    def is_ours(self) -> bool:
        return self.package == OURS

    @property
    def is_default_of_ours(self) -> bool:
        """LinATS, or ATS where there are no contexts: what banditree advises without knowing the world."""
        return self.is_ours and self.note == "default" and self.label in ("LinATS", "ATS")


@dataclass(frozen=True)
class Gap:
    """A row's regret minus that of another, over the seeds that both played, with a paired 95% interval."""

    mean: float
    reach: float  # of the interval to either side, infinite for a single seed
    n: int

    @classmethod
    def of(cls, row: Row, other: Row) -> Gap:
        seeds = row.regrets.keys() & other.regrets.keys()
        values = np.array([row.regrets[seed] - other.regrets[seed] for seed in sorted(seeds)])
        if len(values) < 2:
            return cls(float(values.mean()) if len(values) else float("nan"), float("inf"), len(values))
        return cls(
            float(values.mean()), student(len(values)) * float(values.std(ddof=1)) / len(values) ** 0.5, len(values)
        )

    @property
    def is_clear(self) -> bool:
        return abs(self.mean) > self.reach

    def text(self) -> str:
        reach = f" ± {figures(self.reach, 2)}" if np.isfinite(self.reach) else " (one seed)"
        return f"{'+' if self.mean > 0 else '-' if self.mean < 0 else ''}{figures(abs(self.mean))}{reach}"


@dataclass(frozen=True)
class Standing:
    """How our default does in one environment beside the best of the others' offers."""

    ours: Row
    best: Row | None  # of the other packages
    difference: Gap  # ours minus theirs

    @property
    def ratio(self) -> float:
        """Our regret over theirs, over the seeds that both played."""
        return self.ours.mean / max(self.ours.mean - self.difference.mean, 1e-12)

    @property
    def is_lowest_or_tied(self) -> bool:
        return self.best is None or self.difference.mean <= 0 or not self.difference.is_clear

    @property
    def verdict(self) -> str:
        if self.best is None:
            return "no other finished"
        if not self.difference.is_clear:
            return "a tie"
        return "lower" if self.difference.mean < 0 else "**higher**"


def default_of(rows: Sequence[Row]) -> Row | None:
    """Our default on one environment, None if it did not finish."""
    return next((row for row in rows if row.is_default_of_ours and row.regrets), None)


def comparable(row: Row, ours: Row | None) -> float:
    """The mean regret to rank by: a row with other seeds is placed by those that it has in common with ours."""
    return row.mean if ours is None else ours.mean + Gap.of(row, ours).mean


def standing(rows: Sequence[Row]) -> Standing | None:
    """Compare our default with the others on one environment; None if our default did not finish."""
    ours = default_of(rows)
    if ours is None:
        return None
    others = [
        row for row in rows if not row.is_ours and row.note != TOLD_ALL and row.regrets.keys() & ours.regrets.keys()
    ]
    if not others:
        return Standing(ours, None, Gap(float("nan"), float("inf"), 0))
    best = min(others, key=lambda row: comparable(row, ours))
    return Standing(ours, best, Gap.of(ours, best))


INTRO = """# The contest

banditree's policies and other libraries on the same problems. Every world is drawn in advance, with all random
numbers, and each library plays it in an environment of its own, by its own documented calls: two that choose the same
arm in the same round get the same reward. **Regret** is what was lost against always choosing the arm with the
highest mean reward in this context. Everybody plays with the defaults and with the settings that the library's
documentation recommends for such problems; where it names none, it is *told the noise* of the rewards. LinATS and ATS
are told nothing. Left out are Vowpal Wabbit's `--cover` and its models without interactions, coba's Corral and the
default sampling of contextualbandits' LinTS: in the contest of 0.3 they were the best nowhere.
"""
MIXED = """
## What is told, and what a tree cannot say

`meTS` is mixed-effect Thompson sampling, written by us from the paper (Aouali, Kveton and Katariya, 2023) and told
how the world was made: a yardstick, outside of the ranking. *Effects* and *shared effects* have the numbers of its
authors' `run_lin`: K = 100, d = 2, n = 5,000, three effects with covariance 3I, arms around them with covariance I,
noise 1. Their code draws a context for each arm; here all arms of a round share one, as in the paper's text.

In *shared effects* every arm has weights, uniform on (-1, 1), for all three effects. A tree gives an arm one parent,
here the effect with the largest weight, so banditree cannot say this, and loses what the weights are worth:
"""
HOW = """## Run it yourself

```
make contest                  # goes on where the last run stopped, and rewrites this page
make contest MINUTES=30       # a part; PATIENCE=5 leaves who needs more than 5 s for a world to another run
make contest QUICK=1          # a few minutes: the same, made short, into build/contest
```

A package is a few functions in `contest/contestants.py`, an environment one in `contest/worlds.py`. Corrections from
the authors of a library are welcome.
"""


def written(
    environments: Sequence[Environment],
    rows: Sequence[Row],
    versions: Mapping[str, str],
    failures: Mapping[str, str],
    facts: Mapping[str, Any],
    left: int,
    folder: Path,
) -> str:
    """Draw the picture, write the summary as a CSV file, and return the page but for its last lines.

    ``left`` is how many worlds are still to be played.
    """
    by_environment = {e.name: [row for row in rows if row.environment == e.name] for e in environments}
    standings = {name: standing(some) for name, some in by_environment.items()}
    _summary_file(environments, by_environment, folder / "data" / "contest-summary.csv")
    parts = [
        INTRO,
        _setting(rows, versions, failures, facts, left),
        "## In short\n",
        _aims(environments, standings),
        draw(by_environment, standings, folder / "images" / "contest.png"),
        _table(environments, standings, by_environment),
        _losses(environments, standings, by_environment),
        MIXED,
        _lost(by_environment),
        _probabilities(rows),
    ]
    return "\n".join([*parts, HOW])


def _setting(
    rows: Sequence[Row],
    versions: Mapping[str, str],
    failures: Mapping[str, str],
    facts: Mapping[str, Any],
    left: int,
) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "mixed-effect paper")
    missing = "".join(f" {name} could not take part: {why}." for name, why in failures.items())
    hours = sum(sum(row.seconds) for row in rows) / 3600
    played = [len(row.regrets) for row in rows if row.regrets]
    seeds = f"{min(played)} to {max(played)}, {np.median(played):.0f} in the median" if played else "none"
    pending = f" **Pending: {left:,} runs of a world; `make contest` goes on.**" if left else ""
    return (
        f"Played on {describe()}: {sum(played):,} runs, {hours:.1f} hours of process time. {packages}.{missing} The "
        f"plan is {facts['seeds']} seeds, at least {facts['at_least']} for who needs more than {facts['allowance']:g} "
        f"s for all of them; a run that takes more than {facts['patience']:g} s is stopped. Seeds so far: "
        f"{seeds}.{pending}\n"
    )


def _aims(environments: Sequence[Environment], standings: Mapping[str, Standing | None]) -> str:
    known = [(e, it) for e in environments if (it := standings[e.name]) is not None and it.best is not None]
    grouped = [it for e, it in known if e.arms_in_groups]
    linear = [(e, it) for e, it in known if e.is_linear and it.ours.label == "LinATS"]
    plain = [(e, it) for e, it in known if it.ours.label == "ATS"]
    curved = [it for e, it in known if not e.is_linear]
    lines = []
    if grouped:
        n = sum(it.is_lowest_or_tied for it in grouped)
        met = "met" if n >= 0.8 * len(grouped) else "**missed**"
        lines.append(
            f"- Arms in groups: lowest, or tied within the 95% interval, in {n} of {len(grouped)} environments "
            f"({n / len(grouped):.0%}; aim 80%: {met})."
        )
    if linear:
        e, worst = max(linear, key=lambda pair: pair[1].ratio)
        met = "met" if worst.ratio <= 1.25 else "**missed**"
        lines.append(f"- Linear in contexts: at most {worst.ratio:.2f} times the best, in {e.name} (aim 1.25: {met}).")
    if plain:
        e, worst = max(plain, key=lambda pair: pair[1].ratio)
        lines.append(f"- Without contexts: at most {worst.ratio:.2f} times the best, in {e.name}.")
    if curved:
        n = sum(it.is_lowest_or_tied for it in curved)
        lines.append(f"- Not linear, so that a linear model is the wrong one: lowest or tied in {n} of {len(curved)}.")
    return "\n".join(lines)


def _table(
    environments: Sequence[Environment],
    standings: Mapping[str, Standing | None],
    by_environment: Mapping[str, Sequence[Row]],
) -> str:
    table_rows: list[tuple[str, ...]] = []
    for e in environments:
        it = standings[e.name]
        if it is None:
            table_rows.append((e.name, "pending", *[""] * 6))
            continue
        without = next((r for r in by_environment[e.name] if r.is_ours and r.note == NO_TREE and r.regrets), None)
        tree = "" if without is None else f"{comparable(without, it.ours) / it.ours.mean:.2f}"
        theirs = ("", "", "") if it.best is None else (it.best.name, it.difference.text(), f"{it.ratio:.2f}")
        own = f"{it.ours.label} {figures(it.ours.mean)} ± {figures(it.ours.se, 2) if np.isfinite(it.ours.se) else '?'}"
        seeds = str(it.difference.n) if it.best else ""
        table_rows.append((e.name, own, *theirs, seeds, it.verdict, tree))
    header = ("environment", "our default", "best of the others", "difference", "ratio", "seeds", "ours is", "no tree")
    how = (
        "The difference is ours less theirs, with a 95% interval that is paired over the seeds that both played; the "
        "last column is the regret of our default without its tree, over that with it."
    )
    return f"{how}\n\n{table(Table(header, table_rows, left=3))}\n"


def _losses(
    environments: Sequence[Environment],
    standings: Mapping[str, Standing | None],
    by_environment: Mapping[str, Sequence[Row]],
) -> str:
    """Every environment where another library has clearly less regret, with what the numbers say about it."""
    lines = []
    for e in environments:
        it = standings[e.name]
        if it is not None and it.best is not None and not it.is_lowest_or_tied:
            lines.append(f"- **{e.name}**: {_explained(e, it, by_environment[e.name])}")
    text = "\n".join(lines) if lines else "None so far."
    return f"## Where another library has clearly less regret\n\n{text}\n"


def _explained(e: Environment, it: Standing, rows: Sequence[Row]) -> str:
    assert it.best is not None
    theirs = it.ours.mean - it.difference.mean
    size = (
        f"{it.best.name} has {figures(theirs)} where {it.ours.label} has {figures(it.ours.mean)}, {it.ratio:.2f} times"
    )
    reasons = []
    if not e.is_linear:
        reasons.append(f"not linear: {e.why_not_linear}")
    if "told the noise" in it.best.note:
        reasons.append("the winner is told the noise, which LinATS has to learn")
    if not e.arms_in_groups:
        reasons.append("there are no groups to learn from")
    own = min((row for row in rows if row.is_ours and row.regrets), key=lambda row: comparable(row, it.ours))
    if own is not it.ours:
        reasons.append(f"of ours, {own.name} has {figures(comparable(own, it.ours))}")
    return f"{size}; {'; '.join(reasons)}." if reasons else f"{size}."


def _lost(by_environment: Mapping[str, Sequence[Row]]) -> str:
    """Our default beside the mixed-effect algorithm, told and not told."""
    table_rows = []
    for name, rows in by_environment.items():
        ours = default_of(rows)
        mets = [row for row in rows if row.label == "meTS" and row.regrets]
        if ours is not None and mets:
            cells = {row.note == TOLD_ALL: f"{comparable(row, ours) / ours.mean:.2f}" for row in mets}
            table_rows.append((name, cells.get(True, ""), cells.get(False, "")))
    header = ("environment", "meTS told all, over our default", "meTS with clusters as effects, told the noise")
    return f"{table(Table(header, table_rows))}\n" if table_rows else "Pending.\n"


def _probabilities(rows: Sequence[Row]) -> str:
    """Which libraries state probabilities that can be logged, over all environments."""
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        if row.regrets and row.note != TOLD_ALL:
            verdicts.setdefault((row.package, row.label), Counter())[row.probability] += 1
    kinds: dict[tuple[str, str], list[str]] = {}
    for (package, label), counts in verdicts.items():
        text = ", ".join(f"{kind} in {count} of {counts.total()}" for kind, count in counts.most_common())
        verdict = next(iter(counts)) if len(counts) == 1 else text
        kinds.setdefault((package, verdict), []).append(label.removeprefix(f"{package} "))
    table_rows = [(package, verdict, ", ".join(labels)) for (package, verdict), labels in kinds.items()]
    slowest = max((row.stating for row in rows if row.is_ours), default=0.0)
    text = (
        "From one state a library decides hundreds of times, and the shares must be the probabilities that it "
        "states. A policy that draws and then states 1 for what it drew is wrong. A UCB policy chooses one arm for "
        "certain, so its 1 is right, but its log says nothing about other arms. *None*: its log cannot be used to "
        f"evaluate another policy. Ours take up to {slowest * 1e3:.1f} ms for a decision with its exact probability, "
        "when asked."
    )
    header = ("package", "stated probability", "of")
    return f"## Whose probabilities can be logged\n\n{text}\n\n{table(Table(header, table_rows, left=3))}\n"


SUMMARY = (
    "environment", "package", "label", "note", "seeds", "regret", "se", "over_ours", "difference", "reach",
    "seconds", "probability", "ended",
)  # fmt: skip


def _summary_file(environments: Sequence[Environment], by_environment: Mapping[str, Sequence[Row]], path: Path) -> None:
    """One line per environment and offer, the least regret first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SUMMARY)
        for e in environments:
            ours = default_of(by_environment[e.name])
            for row in sorted(by_environment[e.name], key=lambda row: (not row.regrets, comparable(row, ours))):
                difference = Gap.of(row, ours or row)
                ratio = comparable(row, ours) / ours.mean if ours is not None and row.regrets else float("nan")
                numbers = (row.mean, row.se, ratio, difference.mean, difference.reach, np.mean(row.seconds or [np.nan]))
                texts = [f"{value:.5g}" if np.isfinite(value) else "" for value in numbers]
                ended = row.failure or (f"stopped at round {row.reached}" if row.reached is not None else "")
                writer.writerow(
                    (e.name, row.package, row.label, row.note, len(row.regrets), *texts, row.probability, ended)
                )


def draw(by_environment: Mapping[str, Sequence[Row]], standings: Mapping[str, Standing | None], path: Path) -> str:
    """Draw the regret of every offer over that of our default, one row per environment; return the link."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    shown = {name: it for name, it in standings.items() if it is not None}
    figure = Figure(figsize=(6.4, 0.9 + 0.27 * len(shown)), layout="constrained")
    axes = figure.subplots()
    low, high = 0.3, 10.0
    for y, (name, it) in enumerate(reversed(shown.items())):
        rows = [row for row in by_environment[name] if row.regrets and row is not it.ours]
        for colour, size, some in (
            ("0.75", 14, [row for row in rows if not row.is_ours and row.note != TOLD_ALL]),
            ("#0072B2", 20, [row for row in rows if row.is_ours and row.note == NO_TREE]),
            ("#E69F00", 20, [row for row in rows if row.note == TOLD_ALL]),
        ):
            ratios = np.clip([comparable(row, it.ours) / it.ours.mean for row in some], low, high)
            axes.scatter(ratios, [y] * len(some), s=size, color=colour, linewidths=0, zorder=2)
        if it.best is not None:
            middle = 1 - it.difference.mean / it.ours.mean
            reach = it.difference.reach / it.ours.mean if np.isfinite(it.difference.reach) else 0.0
            ends = np.clip([middle - reach, middle + reach], low, high)
            axes.plot(ends, [y, y], color="black", linewidth=1.5, zorder=3)
            axes.scatter([min(max(middle, low), high)], [y], s=24, color="black", zorder=4)
    axes.axvline(1, color="#009E73", linewidth=1.5)
    axes.set(xscale="log", xlim=(low * 0.95, high * 1.05), xlabel="regret over that of our default")
    axes.set_yticks(range(len(shown)), list(reversed(shown)))
    axes.xaxis.set_major_locator(ticker.FixedLocator([0.3, 0.5, 1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    words = "Regret of everybody over that of our default, by environment"
    return (
        f"\n![{words}](images/{path.name})\n\nGrey: the offers of other libraries; black: the best of them, with its "
        "paired 95% interval; blue: our default without its tree; orange: told how the world was made. Right of the "
        "line is worse than our default.\n"
    )
