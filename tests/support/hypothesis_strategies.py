"""Hypothesis strategies: nested specs with the paths they mean, trees, and sequences of rewards."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

import banditree as bt

Paths = list[tuple[Any, ...]]

_name = st.one_of(st.sampled_from("abcdef"), st.integers(-3, 9), st.text(max_size=3))
# A cluster is drawn as a list whose ints are runs of that many arms and whose dicts are clusters inside it.
_inside = st.recursive(
    st.integers(1, 3).map(lambda n: [n]),
    lambda below: st.lists(
        st.one_of(st.integers(1, 3), st.dictionaries(_name, below, min_size=1, max_size=3)), min_size=1, max_size=3
    ),
    max_leaves=10,
)


@st.composite
def specs(draw: st.DrawFn) -> tuple[Any, Paths]:
    """A nested spec as a user may write it, and the path of every arm from top to bottom."""
    numbers = count()
    as_text = draw(st.booleans())
    paths: Paths = []

    def build(items: list[Any], above: tuple[Any, ...], seen: set[Any]) -> Any:
        found: list[Any] = []
        for item in items:
            if isinstance(item, dict):
                # Names are unique among siblings, also over several mappings of one list.
                fresh = {key: below for key, below in item.items() if key not in seen}
                seen.update(fresh)
                inside = {key: build(below, (*above, key), set()) for key, below in fresh.items()}
                found.extend([inside] if inside else [])
            else:
                for number in (next(numbers) for _ in range(item)):
                    arm = f"arm {number}" if as_text else number
                    found.append(arm)
                    paths.append((*above, arm))
        if not found:  # all its clusters were taken by earlier siblings
            return build([1], above, seen)
        # A cluster that holds clusters alone may be written as a mapping, the usual way.
        if all(isinstance(item, dict) for item in found) and draw(st.booleans()):
            return {key: below for item in found for key, below in item.items()}
        return found

    return build(draw(_inside), (), set()), paths


trees = specs().map(lambda both: bt.Tree(both[0]))


@st.composite
def histories(draw: st.DrawFn, tree: bt.Tree, max_size: int = 30) -> list[tuple[Any, float]]:
    """Rewards for arms of a tree: halves and quarters, so that sums are exact in any order."""
    arm = st.sampled_from(tree.arms)
    reward = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    return draw(st.lists(st.tuples(arm, reward), max_size=max_size))
