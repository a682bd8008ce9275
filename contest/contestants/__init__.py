"""Who takes part: one module per package, which imports its package only where it is used.

A module has ``PACKAGE``, what pip installs (``REQUIRES``, empty for our own environment), and ``offers(world)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contest.world import Floats, World

MODULES = (
    "ours",
    "mixed_effect",
    "vowpalwabbit",
    "coba",
    "bayesianbandits",
    "contextualbandits",
    "mabwiser",
    "river",
)


@dataclass(frozen=True)
class Agent:
    """``choose(x)`` returns an arm and the probability that the library states for it, None if it states none.

    ``decide`` is the same for a library that states a probability only on request.
    """

    choose: Callable[[Floats], tuple[int, float | None]]
    learn: Callable[[Floats, int, float, float | None], Any]
    decide: Callable[[Floats], tuple[int, float | None]] | None = None


@dataclass(frozen=True)
class Offer:
    """An algorithm with its settings: in the library's own words, and in code."""

    label: str
    make: Callable[[World, int], Agent]  # of a world, of which it may use what users know, and a seed
    note: str = ""  # "default", or what was set and why


def noise_of(world: World) -> float:
    """The noise that an algorithm is told, at least 0.1: none explores without any."""
    return max(world.noise, 0.1)


def in_unit_interval(world: World) -> bool:
    """Say whether all rewards are in [0, 1]."""
    table = world.table
    return world.clicks or bool(table is not None and not world.noise and table.min() >= 0 and table.max() <= 1)


def has_groups(world: World) -> bool:
    """Say whether arms have different categories."""
    return len(set(world.labels.tolist())) > 1


def unlike_default(offer: Offer, world: World) -> list[Offer]:
    """The offer that is told the noise, unless the noise is 1, for which the defaults are made."""
    return [offer] if noise_of(world) != 1 else []
