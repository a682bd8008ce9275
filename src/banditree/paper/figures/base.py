"""The classes of a figure and its settings: what to run, and the texts of the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from banditree.problems import Problem
from banditree.simulation.one_seed import Factory

DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    """One problem and the policies that run on it."""

    label: str  # what varies, as `key=value` pairs with the problem's parameter names; empty if nothing does
    problem: Problem
    policies: Mapping[str, Factory]  # {name in the table: factory}, as `bt.simulate` wants them
    x: float = 0.0  # its position on the axis of a sweep
    line: str = ""  # the line of a sweep that it belongs to, if lines are not policies
    instances: str = ""  # settings with the same text here have the same instances; the label if empty

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
    readings: Sequence[str]  # what was chosen where the paper does not say
    options: Mapping[str, str] = field(default_factory=dict)  # {variant: description}, without the default
    horizon: int = 0  # the paper's T
    seeds: int = 0
    seconds: float = 0.0  # about how long a run with the paper's seeds takes on two cores, for the bar
    x_label: str = ""
    function: Callable[[Any], Any] | None = None  # of a figure of kind "function"

    @property
    def variants(self) -> dict[str, str]:
        """Every variant with its description; the default comes first."""
        return {DEFAULT: "the readings chosen here", **self.options}

    def settings(self, variant: str = DEFAULT) -> list[Setting]:
        """Return the settings of a variant, in the order of the axis."""
        return self.settings_of(variant)

    def n_seeds(self, *, quick: bool = False) -> int:
        """Return the number of seeds: the paper's, or a tenth of them."""
        return max(5, self.seeds // 10) if quick else self.seeds
