"""Colours, markers and Matplotlib settings: a policy looks the same in every picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from banditree.errors import missing_extra
from banditree.policy.algorithms import ALGORITHMS

# Okabe and Ito's palette, which all kinds of colour vision can tell apart, without its yellow, too pale on white; and
# indigo, which is darker than all of these but black.
PALETTE = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#777777",
    "indigo": "#332288",
    "wine": "#AA2255",
    "teal": "#44AA99",
}
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE, GREY, *_ = PALETTE.values()


@dataclass(frozen=True)
class Look:
    """The colour, marker and dashes of a line."""

    color: str
    marker: str
    dashes: str = "-"


# A policy with contexts looks like its twin without, except for the marker: they are rarely in the same picture,
# except for ATS and LinATS, which have colours of their own.
# A depth is a shade and a dash of its policy's colour: those of figure 2c are here, all others in `_depths`.
LOOKS: dict[str, Look] = {
    **{name: Look(PALETTE[kind.about.color], kind.about.marker) for name, kind in ALGORITHMS.items()},
    "HTS L=2": Look("#4FBF9B", "<", "--"),
    "HTS L=3": Look("#00664A", "^"),
    "UCT L=2": Look("#D896BA", "X", "--"),
    "UCT L=3": Look("#8A3D67", "P"),
}

SPARE = (GREY, BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE)
SPARE_MARKERS = "8H+x|_,."
DASHES = ("-", "--", ":", "-.")
DEPTH_MARKERS = "<>v1234|"
PALEST = 0.45  # how far towards white the shallowest depth goes


def looks(
    policies: Iterable[str], built: Mapping[str, tuple[str, Mapping[str, object]]] | None = None
) -> dict[str, Look]:
    """Return a look for each policy: its own, or for an unknown name the first colour that is not taken.

    ``built`` says how policies were built, {name: (class, parameters)}, as ``runs.built`` does: those of one class with
    different depths are shades of its colour.

    >>> looks(["TSC", "mine"])["TSC"].color, looks(["deep"], {"deep": ("HTS", {"depth": 2})})["deep"] == LOOKS["HTS"]
    ('#D55E00', True)
    """
    names = list(policies)
    known = _depths(names, built or {}) | LOOKS
    taken = {known[name].color for name in names if name in known}
    free = [color for color in SPARE if color not in taken] or list(SPARE)
    unknown = [name for name in names if name not in known]
    spare = {
        name: Look(free[i % len(free)], SPARE_MARKERS[i % len(SPARE_MARKERS)], DASHES[i // len(free) % 4])
        for i, name in enumerate(unknown)
    }
    all_looks = known | spare
    return {name: all_looks[name] for name in names}


def _depths(names: Sequence[str], built: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Look]:
    """Return looks of policies with a depth: the deepest looks like its class, shallower ones are paler and dashed.

    A policy of the same class without a depth uses the whole tree, and so is the deepest.
    """
    families: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        kind, parameters = built.get(name, ("", {}))
        if "depth" in parameters and kind in LOOKS:
            families.setdefault(kind, []).append((parameters["depth"], name))
    by_name = {}
    for policy, members in families.items():
        look, steps = LOOKS[policy], len(members) - (policy not in names)
        for above, (_, name) in enumerate(sorted(members, reverse=True), start=int(policy in names)):
            by_name[name] = look
            if above:
                marker = DEPTH_MARKERS[(above - 1) % len(DEPTH_MARKERS)]
                by_name[name] = Look(tint(look.color, PALEST * above / steps), marker, DASHES[above % 4])
    return by_name


def tint(color: str, share: float) -> str:
    """Mix a colour with this share of white.

    >>> tint("#000000", 0.5)
    '#808080'
    """
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02X}" for part in parts)


RC = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "banditree",  # the same picture gives the same file
}


def library() -> ModuleType:
    """Import Matplotlib, or raise an error that says how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plot", "plots need matplotlib") from None
    return matplotlib


@contextmanager
def house_style() -> Iterator[ModuleType]:
    """Use our Matplotlib settings inside this block, and restore the user's afterwards."""
    matplotlib = library()
    with matplotlib.rc_context(RC):
        yield matplotlib
