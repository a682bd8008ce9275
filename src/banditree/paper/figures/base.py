"""What a figure is: settings to run, and what to write on the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from banditree.problems import Problem

Factory = Callable[..., Any]

DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    """One problem and the policies that meet it."""

    label: str  # what varies, as `key=value` pairs with the problem's parameter names; empty where nothing does
    problem: Problem
    policies: Mapping[str, Factory]  # {name in the table: factory}, as `bt.simulate` wants them
    x: float = 0.0  # its place on the axis of a sweep
    line: str = ""  # the line of a sweep it belongs to, where lines are not policies
    instances: str = ""  # settings with the same word here meet the same instances; the label where empty

    @property
    def stream(self) -> str:
        """The name of the random stream that its instances come from."""
        return self.instances or self.label


@dataclass(frozen=True)
class Figure:
    """A figure of the paper. ``settings(variant)`` lists what to run; a figure of kind "function" runs nothing."""

    name: str
    title: str
    caption: str  # the paper's, in short
    kind: str  # "sweep": regret at T against a parameter; "curves": regret over time; "function": f and arms on it
    settings_of: Callable[[str], list[Setting]]
    readings: Sequence[str]  # where the paper is silent, what was chosen
    options: Mapping[str, str] = field(default_factory=dict)  # {variant: description}, the default apart
    horizon: int = 0  # the paper's T
    seeds: int = 0
    seconds: float = 0.0  # about how long a run with the paper's seeds takes on two cores, for the bar
    x_label: str = ""
    function: Callable[[Any], Any] | None = None  # of a figure that shows one

    @property
    def variants(self) -> dict[str, str]:
        """Every variant with its description; the default comes first."""
        return {DEFAULT: "the readings chosen here", **self.options}

    def settings(self, variant: str = DEFAULT) -> list[Setting]:
        """What the figure shows, in the order of its axis."""
        return self.settings_of(variant)

    def n_seeds(self, *, quick: bool = False) -> int:
        """How many seeds a run has: the paper's, or a tenth."""
        return max(5, self.seeds // 10) if quick else self.seeds
