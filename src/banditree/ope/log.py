"""The Log class: the arm, reward, propensity and context of each past decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue, UnknownArm
from banditree.errors.checks import real
from banditree.ope.by_row import Floats, Places
from banditree.report.words import count
from banditree.tree import Tree

SHOWN = 5  # arms that an error names, at most


class Log:
    """A log with one row per decision, in the order of the source. `read_log` reads one.

    >>> import banditree as bt
    >>> log = bt.read_log({"arm": ["a", "b", "a"], "reward": [1, 0, 0]}, arm="arm", reward="reward")
    >>> len(log), log.arms.tolist(), log.rewards.tolist()
    (3, ['a', 'b', 'a'], [1.0, 0.0, 0.0])
    """

    ids: tuple[Any, ...]  # the distinct arms, in the order of their first row
    codes: Places  # (n,) index of each row's arm in ids
    rewards: Floats  # (n,)
    propensities: Floats | None  # (n,) probability with which the logging policy chose the arm
    contexts: Floats | None  # (n, dim)
    times: NDArray[Any] | None  # (n,) numbers or datetime64
    context_names: tuple[str, ...]  # (dim,) a column's name, or "column=category" for a category
    without_reward: int  # rows that were left out because their reward has not arrived yet
    estimated: bool  # whether the propensities were estimated from the log itself
    notes: tuple[str, ...]  # what readers of results should know about the data

    def __init__(
        self,
        ids: Sequence[Any],
        codes: Places,
        rewards: Floats,
        propensities: Floats | None = None,
        contexts: Floats | None = None,
        times: NDArray[Any] | None = None,
        *,
        context_names: Sequence[str] = (),
        without_reward: int = 0,
        estimated: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        self.ids, self.codes, self.rewards = tuple(ids), codes, rewards
        self.propensities, self.contexts, self.times = propensities, contexts, times
        self.context_names, self.notes = tuple(context_names), tuple(notes)
        self.without_reward, self.estimated = without_reward, estimated

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def arms(self) -> NDArray[Any]:
        """The arm of each row, as ints if all ids are ints, else as objects: (n,)."""
        if all(isinstance(arm, int) for arm in self.ids):
            try:
                return np.array(self.ids, np.int64)[self.codes] if self.ids else np.empty(0, np.int64)
            except OverflowError:
                pass
        ids = np.empty(len(self.ids), object)
        ids[:] = self.ids
        return np.asarray(ids[self.codes])

    def places(self, tree: Tree) -> Places:
        """Return the index of each row's arm in ``tree.arms``: (n,). Arms that the tree does not have are an error.

        Ids read from a CSV file are text. They match a tree whose ids are ints (or the other way round) if all of them
        do.
        """
        found = [tree.index.get(arm) for arm in self.ids]
        if None in found:
            other = [tree.index.get(_other_spelling(arm)) for arm in self.ids]
            if None in other:
                self._refuse(tree, [place is None for place in found])
            found = other
        return np.array(found, np.intp)[self.codes] if found else np.empty(0, np.intp)

    def _refuse(self, tree: Tree, unknown: list[bool]) -> None:
        strange = [arm for arm, here in zip(self.ids, unknown, strict=True) if here]
        rows = int(np.array(unknown)[self.codes].sum())
        named = ", ".join(map(repr, strange[:SHOWN])) + (", ..." if len(strange) > SHOWN else "")
        kinds = ""
        if len(strange) == len(self.ids) and isinstance(strange[0], str) != isinstance(tree.arms[0], str):
            text, numbers = ("log", "tree") if isinstance(strange[0], str) else ("tree", "log")
            kinds = f" (ids are text in the {text} and numbers in the {numbers}, and not all of them match)"
        raise UnknownArm(
            f"{count(len(strange), 'arm')} of the log, on {count(rows, 'row')}, not in {tree!r}: {named}{kinds}; "
            "add them to the tree, or leave their rows out of the log"
        )

    def rows(self, chosen: Any) -> Log:
        """Return a log of only these rows, given as a slice, a mask or indices."""
        picked = [
            None if values is None else values[chosen] for values in (self.propensities, self.contexts, self.times)
        ]
        return Log(
            self.ids,
            self.codes[chosen],
            self.rewards[chosen],
            *picked,
            context_names=self.context_names,
            without_reward=0,
            estimated=self.estimated,
            notes=self.notes,
        )

    def in_time(self) -> Log:
        """Sort the log by time; rows with equal times, and logs without times, keep their order."""
        return self if self.times is None else self.rows(np.argsort(self.times, kind="stable"))

    def split(self, share: float = 0.5) -> tuple[Log, Log]:
        """Split into the earlier ``share`` of the rows and the rest, by time, or in row order if there are no times."""
        share = real("share", share, 0.0, 1.0, why="the part of the rows that comes first")
        cut = round(share * len(self))
        if not 0 < cut < len(self):
            raise InvalidValue(
                f"share={share} of {count(len(self), 'row')} leaves one part empty; give a share nearer to 0.5"
            )
        ordered = self.in_time()
        return ordered.rows(slice(0, cut)), ordered.rows(slice(cut, None))

    def counts(self, tree: Tree) -> tuple[Floats, Floats]:
        """Count the rows and sum the rewards of each arm, in the order of ``tree.arms``: (arms,) both."""
        places = self.places(tree)
        rows = np.bincount(places, minlength=tree.n_arms).astype(np.float64)
        return rows, np.bincount(places, self.rewards, minlength=tree.n_arms).astype(np.float64)

    def __repr__(self) -> str:
        parts = [f"{count(len(self), 'row')}", f"{count(len(self.ids), 'arm')}"]
        if len(self):
            parts.append(f"mean reward {self.rewards.mean():.4g}")
        estimated = "estimated " if self.estimated else ""
        parts.append(f"{estimated}propensities" if self.propensities is not None else "no propensities")
        if self.contexts is not None:
            parts.append(f"contexts of {self.contexts.shape[1]}")
        if self.without_reward:
            parts.append(f"{count(self.without_reward, 'more row')} without a reward")
        return f"Log({', '.join(parts)})"


def _other_spelling(arm: Any) -> Any:
    """Convert an id from int to text or from text to int; None if that is not possible."""
    if isinstance(arm, int):
        return str(arm)
    try:
        number = int(arm)
    except (TypeError, ValueError):
        return None
    return number if str(number) == arm else None
