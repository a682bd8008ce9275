"""Numbers of ATS that were chosen rather than derived, each with a sentence. Come here to change one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _chosen(value: float, why: str) -> float:
    number: float = field(default=value, metadata={"why": why})
    return number


@dataclass(frozen=True, repr=False)
class Law:
    """Numbers that the beliefs of ATS go by. Those of its draws are still constants of the kinds of rewards.

    >>> print(repr(Law()).splitlines()[1])
        fall=0.3,  # The log prior of a copy falls by this with each step towards siblings that are alike.
    """

    fall: float = _chosen(0.3, "The log prior of a copy falls by this with each step towards siblings that are alike.")
    fall_of_few: float = _chosen(3.0, "And by at least this over the number of arms: few arms gain little by the bet.")
    finest: float = _chosen(6.0, "Steps beyond which siblings are hardly ever as alike.")
    interval_fall: float = _chosen(
        2.0, "How much faster it falls for intervals, which may not bet that arms are alike."
    )
    shared: float = _chosen(2.0, "How much more the doubt counts in draws that all arms of a cluster share.")
    most_stray: float = _chosen(0.1, "The largest chance of a stray, before the rewards of the arm are considered.")

    def rows(self) -> list[tuple[str, float, str]]:
        """Return name, value and sentence of every number."""
        return [(one.name, getattr(self, one.name), one.metadata["why"]) for one in fields(self)]

    def __repr__(self) -> str:
        lines = [f"    {name}={value!r},  # {why}" for name, value, why in self.rows()]
        return "\n".join(["Law(", *lines, ")"])


LAW = Law()
