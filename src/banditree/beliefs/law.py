"""Numbers of ATS and LinATS that were chosen rather than derived, each with a sentence. Come here to change one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _chosen(value: float, why: str) -> float:
    number: float = field(default=value, metadata={"why": why})
    return number


@dataclass(frozen=True, repr=False)
class Law:
    """The numbers that adaptive beliefs and their draws go by. Both engines read them by name.

    >>> print(repr(Law()).splitlines()[1])
        strays=4.0,  # Prior odds that some arm is the stray: 4 to 1, in equal parts for all arms.
    """

    strays: float = _chosen(4.0, "Prior odds that some arm is the stray: 4 to 1, in equal parts for all arms.")
    stray_spread: float = _chosen(1.0, "Rates: a stray's log odds lie this far around those of a typical arm.")
    stray_lift: float = _chosen(2.0, "Normal rewards: a stray lies this many sd of all arms above the mean of all ...")
    stray_width: float = _chosen(0.7, "... give or take this many.")
    stray_factor: float = _chosen(4.0, "Contexts: a stray lies this many times as far from its cluster as other arms.")
    fall: float = _chosen(0.3, "The log prior of a copy falls by this each time siblings are half as far apart.")
    fall_of_few: float = _chosen(3.0, "Without contexts at least by this over the number of arms: few gain by the bet.")
    interval_fall: float = _chosen(2.0, "How much faster it falls for intervals, which may not bet on similar arms.")
    level_plays: float = _chosen(16.0, "Plays after which an arm counts half in the level of the rates.")
    noise_share: float = _chosen(
        0.1, "Contexts: the noise's prior share of the variance of rewards, worth two rewards."
    )

    def rows(self) -> list[tuple[str, float, str]]:
        """Return name, value and sentence of every number."""
        return [(one.name, getattr(self, one.name), one.metadata["why"]) for one in fields(self)]

    def __repr__(self) -> str:
        lines = [f"    {name}={value!r},  # {why}" for name, value, why in self.rows()]
        return "\n".join(["Law(", *lines, ")"])


LAW = Law()
