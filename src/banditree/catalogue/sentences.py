"""Numbers and inspections in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banditree.catalogue.inspection import Estimate, Inspection


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
