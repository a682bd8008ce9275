"""What was measured, one row per offer and environment, and the page `docs/contest.md`, computed from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contest.contestants import TOLD_ALL
from contest.worlds import ENVIRONMENTS, Environment
from tools.pages.markdown import Table, describe, figures, table

OURS = "banditree"


@dataclass(frozen=True)
class Row:
    """An offer on an environment: the regret of each seed, in the order of the seeds."""

    environment: str
    package: str
    label: str
    note: str
    regrets: list[float] = field(default_factory=list)
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
        return float(np.mean(self.regrets)) if self.regrets else float("nan")

    @property
    def se(self) -> float:
        """Standard error of the mean, NaN for one seed."""
        n = len(self.regrets)
        return float(np.std(self.regrets, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    @property
    def is_ours(self) -> bool:
        return self.package == OURS

    @property
    def is_default_of_ours(self) -> bool:
        """LinATS, or ATS where there are no contexts: what banditree advises without knowing the world."""
        return self.is_ours and self.note == "default" and self.label in ("LinATS", "ATS")


@dataclass(frozen=True)
class Standing:
    """How our default does in one environment beside the best of the others' offers."""

    ours: Row
    best: Row | None  # of the other packages
    difference: float  # ours minus theirs over the seeds that both played
    se: float

    @property
    def ratio(self) -> float:
        """Our regret over theirs, over the seeds that both played."""
        return float("nan") if self.best is None else self.ours.mean / max(self.ours.mean - self.difference, 1e-12)

    @property
    def wins(self) -> bool:
        return self.best is None or self.difference <= 0

    @property
    def verdict(self) -> str:
        """In words, by two standard errors of the paired difference."""
        if self.best is None:
            return "no other finished"
        if not np.isfinite(self.se):
            return "lower" if self.wins else "higher"
        if abs(self.difference) <= 2 * self.se:
            return "a tie"
        return "clearly lower" if self.wins else "clearly higher"


def default_of(rows: list[Row]) -> Row | None:
    """Our default on one environment, None if it did not finish."""
    return next((row for row in rows if row.is_default_of_ours and row.regrets), None)


def difference(row: Row, ours: Row) -> tuple[float, float]:
    """A row's regret minus that of ours over the seeds that both played, and its standard error."""
    n = min(len(row.regrets), len(ours.regrets))
    differences = np.subtract(row.regrets[:n], ours.regrets[:n])
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def comparable(row: Row, ours: Row | None) -> float:
    """The mean regret to rank by: a row with fewer seeds is placed by those that it has in common with ours."""
    return row.mean if ours is None else ours.mean + difference(row, ours)[0]


def standing(rows: list[Row]) -> Standing | None:
    """Compare our default with the others on one environment; None if our default did not finish."""
    ours = default_of(rows)
    if ours is None:
        return None
    others = [row for row in rows if not row.is_ours and row.note != TOLD_ALL and row.regrets]
    if not others:
        return Standing(ours, None, float("nan"), float("nan"))
    best = min(others, key=lambda row: comparable(row, ours))
    theirs, se = difference(best, ours)
    return Standing(ours, best, -theirs, se)


INTRO = """# The contest

banditree's policies and other libraries on the same problems. `make contest` writes this page in one run: it draws
every world beforehand, with all random numbers, and lets each library play it in an environment of its own, by its
own documented calls. Two libraries that choose the same arm in the same round get the same reward.

**Regret** is what was lost against always choosing the arm with the highest mean reward in this context, plus or
minus a standard error over the seeds played: lower is better. A slow library plays fewer seeds, and is ranked by how
it compares with our default on those. **Seconds** are process time for all rounds of a world, for choosing and
learning; ours compute the probability of a decision only when asked. **Probability** says whether the probability
that a library states for its decisions is right: from one state it decides hundreds of times, and the shares must be
what it said. "none": it states none, so that its log cannot be used to evaluate another policy.

Every library plays with its defaults and with the settings that its documentation recommends for such problems; if it
names none, it is *told the noise* of the rewards, from which the theory derives the right amount of exploration.
LinATS and ATS are told nothing and have nothing to set. `meTS` is the algorithm of the mixed-effect paper, written by
us from the paper, and told exactly how the world was made, which nobody knows in practice: a yardstick, outside of the
ranking. The covariances of the mixed-effect worlds, which it is told, are our choice and not the paper's.
"""

HOW = """## Run it yourself

```
make contest                                        # everything; rewrites this page
make contest QUICK=1                                # a few minutes: the same, made short, into build/contest
.venv/bin/python -m contest --only "mixed 20,articles"  # some environments, into build/contest
```

A package is a few functions in `contest/contestants.py`, an environment one in `contest/worlds.py`.
Corrections from the authors of a library are welcome.
"""


def written(
    environments: Sequence[Environment],
    rows: Sequence[Row],
    versions: Mapping[str, str],
    failures: Mapping[str, str],
    facts: Mapping[str, Any],
    left: int = 0,
) -> str:
    """Return the whole page; ``left`` is how many worlds were not played in the time that the run had."""
    by_environment = {e.name: [row for row in rows if row.environment == e.name] for e in environments}
    standings = {name: standing(some) for name, some in by_environment.items()}
    parts = [
        INTRO,
        _setting(rows, versions, failures, facts, left),
        _summary(environments, standings),
        _losses(environments, standings, by_environment),
    ]
    parts.append(_probabilities(rows))
    parts += [_environment(e, by_environment[e.name]) for e in environments]
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
    minutes = sum(sum(row.seconds) for row in rows) / 60
    names = {row.environment for row in rows}
    others = [e.name for e in ENVIRONMENTS if e.name not in names]
    left_out = f" **Not on this page, as its run was cut short: {', '.join(others)}.**" if others else ""
    left_out += f" **{left:,} worlds are still to be played; `make contest` goes on.**" if left else ""
    return (
        f"Played on: {describe()}; {minutes:.0f} minutes of process time. {packages}.{missing} Up to "
        f"{facts['seeds']} seeds, at least {facts['at_least']} for those that need more than {facts['allowance']:g} s "
        f"for all of them; a "
        f"world that takes more than {facts['patience']:g} s is stopped.{left_out}\n"
    )


def _summary(environments: Sequence[Environment], standings: Mapping[str, Standing | None]) -> str:
    table_rows = []
    for e in environments:
        it = standings[e.name]
        if it is None:
            table_rows.append((e.name, "did not finish", "", "", "", ""))
            continue
        theirs = ("", "") if it.best is None else (figures(it.ours.mean - it.difference, 4), it.best.name)
        ratio = "" if it.best is None else f"{it.ratio:.2f}"
        table_rows.append((e.name, f"{it.ours.label} {_regret(it.ours)}", *theirs, ratio, it.verdict))
    header = ("environment", "our default", "best of the others", "which", "ratio", "our regret is")
    how = "The best of the others is by the seeds that both played: our regret plus the mean difference on those."
    return f"## In short\n\n{how}\n\n{_aims(environments, standings)}\n\n{table(Table(header, table_rows))}\n"


def _aims(environments: Sequence[Environment], standings: Mapping[str, Standing | None]) -> str:
    grouped = [it for e in environments if e.arms_in_groups and (it := standings[e.name]) is not None]
    flat = [it for e in environments if not e.arms_in_groups and e.is_linear and (it := standings[e.name]) is not None]
    lowest = sum(it.wins for it in grouped)
    near = sum(it.wins or it.ratio <= 1.05 for it in flat)
    lines = []
    if grouped:
        share = lowest / len(grouped)
        met = "met" if share >= 0.7 else "**missed**"
        lines.append(
            f"- Arms in groups: lowest regret in {lowest} of {len(grouped)} environments ({share:.0%}; aim 70%: {met})."
        )
        lost = [it for it in grouped if not it.wins]
        if lost:
            lines.append(
                f"  Where it is not the lowest, the ratio to the best is at most {max(it.ratio for it in lost):.2f}."
            )
    if flat:
        met = "met" if near == len(flat) else "**missed**"
        lines.append(f"- Linear, no groups: within 5% of the best in {near} of {len(flat)} (aim: all; {met}).")
    curved = [(e, it) for e in environments if not e.is_linear and (it := standings[e.name]) is not None]
    if curved:
        won = sum(it.wins for _, it in curved)
        lines.append(
            f"- Not linear: lowest in {won} of {len(curved)}; a linear model is the wrong one there by nature."
        )
    return "\n".join(lines)


def _losses(
    environments: Sequence[Environment],
    standings: Mapping[str, Standing | None],
    by_environment: Mapping[str, Sequence[Row]],
) -> str:
    """Every environment where another library has less regret, with what the numbers say about it."""
    lines = []
    for e in environments:
        it = standings[e.name]
        if it is None:
            lines.append(f"- **{e.name}**: our default did not finish in time.")
        elif it.best is not None and not it.wins:
            lines.append(f"- **{e.name}**: {_explained(e, it, by_environment[e.name])}")
    text = "\n".join(lines) if lines else "None in this run."
    return f"## Where another library has less regret\n\n{text}\n"


def _explained(e: Environment, it: Standing, rows: Sequence[Row]) -> str:
    assert it.best is not None
    theirs = it.ours.mean - it.difference
    size = (
        f"{it.best.name} has {figures(theirs)} where {it.ours.label} has {figures(it.ours.mean)} ({it.ratio:.2f} times)"
    )
    reasons = []
    n_common = min(len(it.best.regrets), len(it.ours.regrets))
    if n_common == 1:
        reasons.append("on the only seed that it played in time")
    if it.verdict == "a tie":
        reasons.append("the difference is within two standard errors")
    if not e.is_linear:
        reasons.append(f"not linear: {e.why_not_linear}")
    if "told the noise" in it.best.note:
        reasons.append("the winner is told the noise, which LinATS has to learn")
    if it.best.probability == "right" and "crossed" in it.best.note:
        reasons.append("the winner shares one linear model by context, id and category")
    if not e.arms_in_groups:
        reasons.append("there are no groups to learn from")
    own = min((row for row in rows if row.is_ours and row.regrets), key=lambda row: comparable(row, it.ours))
    if own is not it.ours:
        reasons.append(f"of ours, {own.name} has {figures(comparable(own, it.ours))}")
    return f"{size}; {'; '.join(reasons)}." if reasons else f"{size}."


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
        "A policy that draws and then states 1 for what it drew, as coba's LinTS does, is wrong: another draw from the "
        "same state gives another arm. A UCB policy chooses one arm for certain, so its 1 is right, but its log says "
        f"nothing about other arms. Ours take up to {slowest * 1e3:.1f} ms for a decision with its exact probability."
    )
    header = ("package", "stated probability", "of")
    return f"## Whose probabilities can be logged\n\n{text}\n\n{table(Table(header, table_rows, left=3))}\n"


def _environment(e: Environment, rows: Sequence[Row]) -> str:
    ours = default_of(list(rows))
    finished = sorted((row for row in rows if row.regrets), key=lambda row: comparable(row, ours))
    others = [row for row in rows if not row.regrets]
    table_rows = []
    for row in finished:
        name = f"**{row.label}**" if row.is_ours else f"*{row.label}*" if row.note == TOLD_ALL else row.label
        seconds = figures(float(np.mean(row.seconds)), 2)
        table_rows.append((name, row.note, _regret(row), str(len(row.regrets)), seconds, row.probability))
    for row in others:
        why = f"failed: {row.failure}" if row.failure else f"stopped at round {row.reached:,}"
        table_rows.append((row.label, row.note, why, "", "", ""))
    kind = "groups" if e.arms_in_groups else "no groups"
    linear = "linear" if e.is_linear else f"not linear: {e.why_not_linear}"
    header = ("who", "settings", "regret", "seeds", "seconds", "probability")
    text = f"{e.about[0].upper()}{e.about[1:]}. {e.horizon:,} rounds; {kind}; {linear}."
    return f"## {e.name}\n\n{text}\n\n{table(Table(header, table_rows, left=2))}\n"


def _regret(row: Row) -> str:
    se = "" if not np.isfinite(row.se) else f" ± {figures(row.se, 2)}"
    return f"{figures(row.mean, 4)}{se}"
