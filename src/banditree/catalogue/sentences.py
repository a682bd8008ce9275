"""Format numbers, and describe inspections in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banditree.catalogue.inspection import Estimate, Inspection
    from banditree.catalogue.items import Catalogue


def short(number: float) -> str:
    """Format a number with three digits: 12,300 or 0.00123."""
    number += 0.0  # turns -0.0 into 0.0
    if not math.isfinite(number):
        return "∞" if number > 0 else "-∞" if number < 0 else "–"
    if abs(number) >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}"
    return f"{number:.3g}"


def percent(share: float) -> str:
    """Format a share from 0 to 1: 0.3% or 24%."""
    share += 0.0
    return f"{100 * share:.1f}%" if abs(share) < 0.0995 and share else f"{100 * share:.0f}%"


def chance(share: float) -> str:
    """Format an estimated probability, never as 0% or 100%."""
    return "over 99%" if share > 0.99 else "under 1%" if share < 0.01 else f"{100 * share:.0f}%"


def holds_best(share: float, worlds: int) -> str:
    """Say whether a category holds the best arm: yes or no if the means are known, else with which probability."""
    return ("yes" if share > 0.5 else "no") if worlds == 1 else chance(share)


def to(interval: Iterable[float], number: Callable[[float], str] = short) -> str:
    """Format an interval: 0.1 to 0.25."""
    return " to ".join(map(number, interval))


def extent(interval: tuple[float, float], number: Callable[[float], str] = short) -> str:
    """Format an interval; "" if both ends are the same, because nothing is uncertain."""
    return "" if interval[0] == interval[1] else to(interval, number)


def between(estimate: Estimate) -> str:
    """Format an estimate with its interval, if it has one."""
    interval = extent(estimate.interval)
    return f"{short(estimate.value)} ({interval})" if interval else short(estimate.value)


def path(names: tuple[Any, ...]) -> str:
    return " / ".join(map(str, names))


def rewards(amount: float, catalogue: Catalogue) -> str:
    """Format an amount of reward: "12.3 rewards" for rates, "12.3 in reward" for other rewards, such as revenue."""
    number = short(amount)
    if catalogue.prior is not None:
        return f"{number} in reward"
    return f"{number} reward" if number == "1" else f"{number} rewards"


def start(catalogue: Catalogue) -> str:
    """Say what policies know at the start of a simulation."""
    if catalogue.prior is None:
        return "Policies start without data."
    return "Policies start without data; their prior is the mean and the spread of all arms."


# Inspection


def variance(found: Inspection) -> list[str]:
    """Say how much of the variance the categories explain, level by level."""
    lines = []
    for row in found.levels:
        interval = extent(row.interval, percent)
        known = f", 95% interval {interval}" if interval else ""
        lines.append(
            f"Level {row.level} explains {percent(row.share)} of the variance of the arms' means{known} "
            f"(a random grouping would explain {percent(row.by_chance)})."
        )
    return lines


def measures(found: Inspection) -> list[str]:
    """Give the paper's measures of quality: w*, d and gamma."""
    over = f" (median and 95% interval over {found.worlds} worlds consistent with the data)" if found.worlds > 1 else ""
    return [
        f"Width of the best top category, w*: {between(found.width)}{over}.",
        f"Distance to the nearest other one, d: {between(found.distance)}; gamma, the average of w*/d: "
        f"{between(found.gamma)}.",
    ]


def dominance(found: Inspection) -> str:
    """Say whether strong dominance holds, and with which probability."""
    if found.worlds == 1:
        verdict = "holds" if found.quality.dominance else "does not hold"
    else:
        verdict = f"holds with probability {chance(found.dominance)}"
    line = f"Strong dominance (every arm of the best top category beats every arm outside it) {verdict}."
    if found.quality.offenders is not None:
        inside, outside = found.quality.offenders
        line += f" Counterexample: {outside} looks at least as good as {inside} of {found.quality.best_cluster}."
    return line


def inspection(found: Inspection) -> list[str]:
    """Describe an inspection in a few lines, for printing in Python."""
    lines = [repr(found.catalogue), *found.catalogue.notes, *variance(found)]
    lines.append(f"w* {between(found.width)}, d {between(found.distance)}, gamma {between(found.gamma)}.")
    lines.append(dominance(found))
    if len(found.misplaced):
        n, first = len(found.misplaced), found.misplaced[0].arm
        lines.append(f"{first} looks misplaced." if n == 1 else f"{n:,} arms look misplaced, most of all {first}.")
    return lines
