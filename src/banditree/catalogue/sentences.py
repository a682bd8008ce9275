"""What was found, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.catalogue.candidates import FLAT, WITH_DEPTH, Candidate
from banditree.output.words import count
from banditree.simulation.statistics import student

if TYPE_CHECKING:
    from banditree.catalogue.advice import Difference, Pairs
    from banditree.catalogue.inspection import Estimate, Inspection

HOW = {
    "TS": "Thompson sampling on all arms at once, the categories ignored",
    "TSC": "Thompson sampling over the top categories, then over the arms of the best one",
    "TSMax": "Thompson sampling over the top categories, each standing for its best arm",
    "UCB1": "an upper confidence bound for every arm, the categories ignored",
    "UCBC": "upper confidence bounds over the top categories, then over the arms of the best one",
}
FAR = 20.0  # times the horizon: further ahead nothing is foretold


def short(number: float) -> str:
    """A number to read: 12,300 or 0.00123."""
    number += 0.0  # no minus before a zero
    if not math.isfinite(number):
        return "∞" if number > 0 else "-∞" if number < 0 else "–"
    if abs(number) >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}"
    return f"{number:.3g}"


def percent(share: float) -> str:
    """A share from 0 to 1: 0.3% or 24%."""
    share += 0.0
    return f"{100 * share:.1f}%" if abs(share) < 0.0995 and share else f"{100 * share:.0f}%"


def chance(share: float) -> str:
    """A probability that was estimated, so neither 0 nor 1 is claimed."""
    return "over 99%" if share > 0.99 else "under 1%" if share < 0.01 else f"{100 * share:.0f}%"


def holds_best(share: float, worlds: int) -> str:
    """Whether a category holds the best arm: known where the means are, else a probability."""
    return ("yes" if share > 0.5 else "no") if worlds == 1 else chance(share)


def between(estimate: Estimate) -> str:
    """An estimate with its interval, where it has one."""
    low, high = estimate.interval
    if low == high:
        return short(estimate.value)
    return f"{short(estimate.value)} ({short(low)} to {short(high)})"


def how(candidate: Candidate) -> str:
    """What a policy does."""
    if candidate.policy == "HTS":
        return f"Thompson sampling at each of the top {candidate.depth} levels of the tree, then over arms"
    if candidate.policy == "UCT":
        return "an upper confidence bound at every node down the tree"
    return HOW[candidate.policy]


def path(names: tuple[Any, ...]) -> str:
    return " / ".join(map(str, names))


# Inspection


def variance(found: Inspection) -> list[str]:
    """How much of the variance the categories explain, level by level."""
    lines = []
    for row in found.levels:
        low, high = row.interval
        known = "" if low == high else f", 95% interval {percent(low)} to {percent(high)}"
        lines.append(
            f"Level {row.level} explains {percent(row.share)} of the variance of the arms' means{known} "
            f"(grouping at random would explain {percent(row.by_chance)})."
        )
    return lines


def dominance(found: Inspection) -> str:
    """Whether strong dominance holds, and how sure that is."""
    if found.worlds == 1:
        verdict = "holds" if found.quality.dominance else "does not hold"
    else:
        verdict = f"holds with probability {chance(found.dominance)}"
    line = f"Strong dominance (every arm of the best top category beats every arm outside it) {verdict}."
    if found.quality.offenders is not None:
        inside, outside = found.quality.offenders
        line += f" Against it: {outside} looks as good as {inside} of {found.quality.best_cluster}, or better."
    return line


def inspection(found: Inspection) -> list[str]:
    """The short form, for Python."""
    lines = [repr(found.catalogue), *found.catalogue.notes, *variance(found)]
    lines.append(f"w* {between(found.width)}, d {between(found.distance)}, gamma {between(found.gamma)}.")
    lines.append(dominance(found))
    if len(found.misplaced):
        lines.append(f"{len(found.misplaced)} arms look misplaced, first of all {found.misplaced[0].arm}.")
    return lines


# Advice


def answer(
    leader: Candidate,
    verdict: str,
    difference: Difference,
    pays_from: int | None,
    horizon: int,
    means: Mapping[str, float],
) -> list[str]:
    """What to run, and what it saves."""
    tree, flat = means[difference.policy], means[difference.rival]
    low, high = difference.interval
    when = f"Over {count(horizon, 'decision')}"
    lost = f"is expected to lose {short(tree)} rewards to not knowing the best arm, a flat TS {short(flat)}"
    both = f"{difference.policy} {lost}"
    if difference.saving > 0:
        interval = f"(95% interval {short(low)} to {short(high)})"
        saved = f"{short(difference.saving)} saved {interval}, or {percent(difference.share)}"
    else:
        interval = f"(95% interval {short(-high)} to {short(-low)})"
        saved = f"{short(-difference.saving)} more {interval}, or {percent(-difference.share)}"
    odds = f"The chance that {difference.policy} loses less than TS on this catalogue is {chance(difference.chance)}."
    if verdict == "tree":
        lines = [f"Run {leader.name}: {how(leader)}.", f"{when} {both}: {saved}."]
    elif verdict == "flat":
        lines = [f"Run {leader.name}: {how(leader)}.", f"{when} the categories do not pay: {both}, {saved}."]
    else:
        bet = f"{leader.name} is the better bet" if leader != FLAT else "Run TS, which is the simpler of the two"
        lines = [
            f"The data cannot tell whether the categories pay. {bet}: {how(leader)}.",
            f"{when} {both}: {saved}.",
        ]
    if pays_from is not None:
        first = pays_from <= max(horizon // 100, 10)
        since = "the start" if first else f"about {short(pays_from)} decisions on"
        lines.append(f"{difference.policy} is ahead of TS from {since}.")
    elif verdict == "tree":
        lines.append("From how many decisions on it is ahead, these seeds do not tell; more seeds would.")
    others = {
        name: lost / means[leader.name] if means[leader.name] > 0 else 1.0
        for name, lost in means.items()
        if name not in (leader.name, FLAT.name)
    }
    better = [name for name, ratio in others.items() if ratio < 0.95]  # flat: of the others the leader is the best
    if better:
        lines.append(f"Less regret still, without the categories: {', '.join(better)}.")
    close = [name for name, ratio in others.items() if 0.95 <= ratio < 1.05]
    if close:
        lines.append(f"About as good: {', '.join(close)}.")
    return [*lines, odds]


def changes(leader: Candidate, verdict: str, difference: Difference, pairs: Pairs, inspection: Inspection) -> list[str]:
    """What would change the answer."""
    lines = [*_less_traffic(leader, pairs), *_more_traffic(leader, pairs)]
    if verdict == "cannot tell":
        lines.append(_more_data(difference, known=inspection.worlds == 1))
    total = 1 - inspection.within.value
    if verdict != "tree" and total < 0.5:
        lines.append(
            f"Better categories: these explain {percent(total)} of the variance of the means, grouping at random would "
            f"explain {percent(sum(inspection.levels['by_chance']))}. A tree pays when good arms share a category."
        )
    if verdict == "tree":
        used = inspection.levels["share"][: leader.depth if leader.policy in WITH_DEPTH else 1]
        levels = "level 1" if len(used) == 1 else f"levels 1 to {len(used)}"
        lines.append(
            f"Categories that mean less: this counts on {levels} explaining {percent(sum(used))} of the variance."
        )
    if len(inspection.misplaced):
        arms = inspection.misplaced["arm"]
        more = f" and {len(arms) - 3:,} more" if len(arms) > 3 else ""
        names = ", ".join(map(str, arms[:3]))
        lines.append(f"Moving arms that look misplaced: {names}{more} (see inspect).")
    return lines or ["Nothing that the simulation shows: with less traffic the same policy leads."]


def _less_traffic(leader: Candidate, pairs: Pairs) -> list[str]:
    """The longest shorter horizon at which another policy is clearly better."""
    times = pairs.runs.times
    for at in range(len(times) - 2, -1, -1):
        if times[at] < times[-1] / 100:
            break
        other = min(pairs.regret, key=lambda name: float(pairs.regret[name][:, :, at].mean()))
        found = pairs.compare(other, leader.name, at)
        if other != leader.name and found.share > 0.05 and found.saving > student(len(pairs.runs.seeds)) * found.noise:
            return [f"Less traffic: for up to about {short(int(times[at]))} decisions {other} has less regret."]
    return []


def _more_traffic(leader: Candidate, pairs: Pairs) -> list[str]:
    """The policy that first overtakes, if regret goes on growing as in the second half."""
    times = pairs.runs.times
    half = int(np.searchsorted(times, times[-1] / 2))
    steps = float(times[-1] - times[half])
    if steps == 0:
        return []
    crossings = []
    for name, regret in pairs.regret.items():
        if name == leader.name:
            continue
        ours = pairs.regret[leader.name]
        gained = ((ours[:, :, -1] - ours[:, :, half]) - (regret[:, :, -1] - regret[:, :, half])).mean(
            axis=1
        )  # (worlds,)
        behind = float((regret[:, :, -1] - ours[:, :, -1]).mean())
        error = float(gained.std(ddof=1)) / math.sqrt(len(gained))
        if behind > 0 and gained.mean() > student(len(gained)) * error:
            crossings.append((float(times[-1]) + behind * steps / float(gained.mean()), name))
    if not crossings or min(crossings)[0] > FAR * times[-1]:
        return []
    when, name = min(crossings)
    overtakes = f"if that goes on it overtakes at about {short(when)} decisions"
    return [f"More traffic: {name} loses less a decision by now; {overtakes}."]


def _more_data(difference: Difference, *, known: bool) -> str:
    """How much more would have to be known, the uncertainty falling with the root of the plays."""
    if known or difference.by_seeds > 0.5:
        return "More seeds: most of what is open here is the noise of the simulation."
    times = (1.2816 * difference.sd / max(abs(difference.saving), 1e-12)) ** 2
    if times > 100:
        return "More data will hardly tell: the two are about equally good here."
    return f"More data: about {max(times, 1.5):.2g} times the plays would tell."
