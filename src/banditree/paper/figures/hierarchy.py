"""Figure 1f: HTS on a balanced binary tree of sorted arms, at every depth."""

from __future__ import annotations

from functools import partial

from banditree import HTS
from banditree.paper.figures.base import DEFAULT, Figure, Setting
from banditree.problems import hierarchical_dominance

SIZES = [2**i for i in range(4, 12)]  # 16 ... 2048


def _settings(variant: str) -> list[Setting]:
    found = []
    for n_arms in SIZES:
        whole = hierarchical_dominance(n_arms)
        for depth in range(n_arms.bit_length() - 1):  # 0 ... log2 N - 1
            # The top levels are a cut of one tree; those of the other variants are not, so each depth is a problem.
            problem = whole if variant == DEFAULT else hierarchical_dominance(n_arms, levels=variant, depth=depth)
            policy = partial(HTS, depth=depth) if variant == DEFAULT else HTS
            same = f"n_arms={n_arms}"  # the instances are those of all depths
            found.append(
                Setting(f"{same} depth={depth}", problem, {"HTS": policy}, float(depth), f"N = {n_arms}", same)
            )
    return found


FIGURES = (
    Figure(
        name="1f",
        title="Figure 1f: the number of levels",
        caption="Dependence on the number of levels L.",
        kind="sweep",
        settings_of=_settings,
        readings=(
            "Depth L keeps the top L levels of the binary tree, with the arms directly below (L = 1: two clusters).",
            "HTS runs at every depth L = 0, 1, ..., log2 N - 1; all depths have the same instance per seed.",
        ),
        options={
            "bottom": "depth L keeps the L levels nearest to the arms",
            "even": "depth L keeps L levels evenly spaced (L = 1: about √N clusters)",
        },
        horizon=3000,
        seeds=50,
        seconds=10.0,
        x_label="depth of the tree L",
    ),
)
