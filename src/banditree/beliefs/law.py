"""The numbers of ATS and LinATS that were chosen rather than derived, each with a sentence. Come here to change one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _chosen(value: float, why: str) -> float:
    number: float = field(default=value, metadata={"why": why})
    return number


@dataclass(frozen=True, repr=False)
class Law:
    """What ATS and LinATS go by. The engines read these fields by name; docs/adaptive.md has them as a table.

    >>> print(repr(Law()).splitlines()[1])
        strays=4.0,  # Arms that are expected not to follow their cluster, before any reward.
    """

    strays: float = _chosen(4.0, "Arms that are expected not to follow their cluster, before any reward.")
    stray_width: float = _chosen(1.0, "Standard deviation of a stray: in log odds, or in standard deviations of arms.")
    stray_lift: float = _chosen(2.0, "How far above the mean of all arms a stray of normal rewards is expected.")
    fall: float = _chosen(0.3, "The log prior of a copy falls by this with each step towards siblings that are alike.")
    fall_of_few: float = _chosen(3.0, "And by at least this over the number of arms: few arms gain little by the bet.")
    interval_fall: float = _chosen(2.0, "And by this much more for intervals, which may not bet that arms are alike.")

    def rows(self) -> list[tuple[str, float, str]]:
        """Return name, value and sentence of every number."""
        return [(one.name, getattr(self, one.name), one.metadata["why"]) for one in fields(self)]

    def __repr__(self) -> str:
        lines = [f"    {name}={value!r},  # {why}" for name, value, why in self.rows()]
        return "\n".join(["Law(", *lines, ")"])


LAW = Law()
