"""The Catalogue class: items in categories, and the data about their rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.document import Bullets, Section
from banditree.base.words import count, number
from banditree.beliefs import Gaussian
from banditree.catalogue.posterior import Posterior
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import real
from banditree.policy import Policy
from banditree.policy.factories import policy_class
from banditree.problems import Instance, Problem, bernoulli
from banditree.problems.rewards import MAX_MEAN
from banditree.stream import Rng, Seed
from banditree.tree import Tree
from banditree.tree.lookup import by_arm

P = TypeVar("P", bound=Policy)
# The combinations of data that a catalogue may have.
WAYS = (("plays", "successes"), ("means",), ("plays", "reward_mean", "reward_sd"))


class Catalogue:
    """A tree, and what is known about the rewards of its arms. `read_catalogue` reads one from a table.

    Values are in the order of ``tree.arms``, or a mapping {arm: value}.

    Parameters
    ----------
    tree
        The arms in their categories.
    plays, successes
        Past counts.
    means
        Known rates, instead of counts.
    reward_mean, reward_sd
        With ``plays``, for rewards that are not rates: their mean and standard deviation, NaN where plays are too few.
    notes
        What readers of results should know about the data.

    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1"]})
    >>> Catalogue(tree, plays=[100, 50, 80], successes=[10, 4, 20])
    Catalogue(3 arms, 2 clusters, depth 1; 34 successes in 230 plays)
    >>> Catalogue(tree, plays=[100, 50, 80], reward_mean=[19.5, 22, 31], reward_sd=[8, 9, 7])
    Catalogue(3 arms, 2 clusters, depth 1; 230 rewards of mean 24 and standard deviation 7.9)
    """

    tree: Tree
    plays: Floats | None  # (arms,) in the order of tree.arms
    successes: Floats | None  # (arms,)
    means: Floats | None  # (arms,)
    reward_mean: Floats | None  # (arms,)
    reward_sd: Floats | None  # (arms,)
    notes: tuple[str, ...]  # remarks on the cleaning of the table

    def __init__(
        self,
        tree: Tree,
        plays: object = None,
        successes: object = None,
        *,
        means: object = None,
        reward_mean: object = None,
        reward_sd: object = None,
        notes: Iterable[str] = (),
    ) -> None:
        given = {"plays": plays, "successes": successes, "means": means}
        given |= {"reward_mean": reward_mean, "reward_sd": reward_sd}
        if tuple(name for name, values in given.items() if values is not None) not in WAYS:
            raise InvalidType("give a catalogue plays and successes, or means, or plays, reward_mean and reward_sd")
        if not isinstance(tree, Tree):
            raise InvalidType(f"tree {tree!r:.60} is a {type(tree).__name__}; build one with bt.Tree(...)")
        self.tree, self.notes = tree, tuple(notes)
        self.plays, self.successes, self.means, self.reward_mean, self.reward_sd = (
            None if values is None else _numbers(name, values, tree) for name, values in given.items()
        )
        self._check()

    def _check(self) -> None:
        for name in ("plays", "successes", "means"):
            values = getattr(self, name)
            if values is not None and not (np.isfinite(values) & (values >= 0)).all():
                raise InvalidValue(f"{name} must be finite and not negative")
        if self.means is not None and (self.means > 1).any():
            raise InvalidValue(f"mean {self.means.max()} is above 1; means are rates from 0 to 1")
        if self.plays is not None and self.successes is not None and (self.successes > self.plays).any():
            arm = self.tree.arms[int((self.successes > self.plays).argmax())]
            raise InvalidValue(f"arm {arm!r} has more successes than plays")
        if self.reward_mean is not None and self.reward_sd is not None and self.plays is not None:
            if not (np.abs(self.reward_mean[self.plays > 0]) <= MAX_MEAN).all():
                raise InvalidValue(
                    f"reward_mean must be a number between -{MAX_MEAN:g} and {MAX_MEAN:g} for every arm with plays"
                )
            known = self.reward_sd[self.plays > 1]
            if not ((known >= 0) & (known <= MAX_MEAN)).all():
                raise InvalidValue(
                    f"reward_sd must be a number from 0 to {MAX_MEAN:g} for every arm with several plays"
                )
            if not (known > 0).any():
                raise InvalidValue("no arm has a reward_sd above 0; give at least one")

    @property
    def totals(self) -> Floats | None:
        """The sum of each arm's past rewards; None if means are known instead: (arms,)."""
        if self.plays is not None and self.reward_mean is not None:
            return np.where(self.plays > 0, self.plays * np.nan_to_num(self.reward_mean), 0.0)
        return self.successes

    @property
    def rates(self) -> Floats:
        """The mean observed reward of each arm; NaN for an arm without plays: (arms,)."""
        if self.means is not None:
            return self.means
        assert self.plays is not None
        totals = self.totals
        assert totals is not None
        return totals / np.where(self.plays > 0, self.plays, np.nan)

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the true means, where these are not known."""
        assert self.plays is not None
        if self.reward_mean is not None and self.reward_sd is not None:
            return Posterior.normal(self.tree, self.plays, self.reward_mean, self.reward_sd)
        assert self.successes is not None
        return Posterior(self.tree, self.plays, self.successes)

    @property
    def prior(self) -> Gaussian | None:
        """The prior for policies if rewards are not rates; None if they are, so that policies use their default."""
        return None if self.reward_mean is None else self.posterior.prior

    def draws(self, n: int, rng: Rng) -> Floats:
        """Draw the true means of all arms n times from their posterior; once if the means are known: (n, arms)."""
        return self.posterior.draws(n, rng) if self.means is None else self.means[None, :]

    def policy(self, policy: Callable[..., P], *, weight: float = 1.0, rng: Seed = None, **options: object) -> P:
        """Build a policy that starts from the catalogue's data.

        Parameters
        ----------
        policy
            A class such as ``bt.TSC``, called as ``policy(tree, rng=rng, **options)``. If rewards are not rates, its
            prior is `prior`, unless another one is given.
        weight
            How many plays each past play counts for. If rates may have changed since the data were collected, 0.1 or
            0.01 lets new rewards outweigh the past sooner.
        rng, options
            As the class takes them.

        >>> import banditree as bt
        >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1"]})
        >>> items = Catalogue(tree, plays=[100, 50, 80], successes=[10, 4, 20])
        >>> round(items.policy(bt.TSC, weight=0.1, rng=7).table()[0].plays, 6) == 23
        True
        """
        totals = self.totals
        if self.plays is None or totals is None:
            raise InvalidType("this catalogue has known means but no plays to start from; read one with counts")
        if not 0 < real("weight", weight) <= 1:
            raise InvalidValue(f"weight={weight} must be above 0 and at most 1: how many plays a past play counts for")
        kind = policy_class(policy)[0]
        if self.prior is not None and kind is not None and kind.about.takes_prior and not kind.about.takes_contexts:
            options = {"prior": self.prior} | options
        built = policy(self.tree, rng=rng, **options)
        played = np.flatnonzero(self.plays > 0)
        arms = [self.tree.arms[place] for place in played.tolist()]
        built.update_many(arms, weight * totals[played], plays=weight * self.plays[played])
        return built

    def world(self) -> Problem:
        """Return a problem to simulate: each seed draws true means from the posterior, or uses the known means."""
        if self.means is not None:
            return bernoulli({"catalogue": self.tree}, self.means)
        return Problem("catalogue", _draw, {"posterior": self.posterior})

    def notes_section(self) -> list[Section]:
        """The remarks on the cleaning of the table, as a part of a document; empty if there are none."""
        lines = [f"{note}." for note in self.notes]
        return [Section("Notes on the table", [Bullets(lines)])] if lines else []

    @property
    def summary(self) -> str:
        """How many arms and categories there are, and what is known about them."""
        tree = self.tree
        size = count(tree.n_arms, "arm")
        if tree.n_clusters:
            size += f" in {count(tree.n_clusters, 'category', 'categories')}"
            size += f" of {count(tree.depth, 'level')}" if tree.depth > 1 else ""
        return f"{size}, {self._describe_data()}"

    def rewards(self, amount: float) -> str:
        """Format an amount of reward: "12.3 rewards" for rates, "12.3 in reward" for others, such as revenue."""
        text = number(amount)
        return f"{text} in reward" if self.prior is not None else f"{text} reward{'' if text == '1' else 's'}"

    def _describe_data(self) -> str:
        if self.plays is not None and self.successes is not None:
            successes, plays = (round(float(values.sum())) for values in (self.successes, self.plays))
            return f"{count(successes, 'success', 'successes')} in {count(plays, 'play')}"
        if self.plays is not None and self.reward_mean is not None:
            plays, mean = self.plays.sum(), float(np.nansum(self.plays * self.rates) / self.plays.sum())
            spread = f"mean {mean:.3g} and standard deviation {self.posterior.sd:.3g}"
            return f"{count(round(float(plays)), 'reward')} of {spread}"
        return "means known"

    def __repr__(self) -> str:
        return f"Catalogue({repr(self.tree)[5:-1]}; {self._describe_data()})"


def _draw(rng: Rng, posterior: Posterior) -> Instance:
    return Instance({"catalogue": posterior.tree}, posterior.rewards, means=posterior.draw(rng))


def tree_of(catalogue: object) -> Tree:
    """Return the tree of a catalogue; anything else is an error that says how to read a catalogue."""
    if not isinstance(catalogue, Catalogue):
        how = "read it first with bt.read_catalogue(file, arm=..., path=[...], plays=..., successes=...)"
        raise InvalidType(f"catalogue {catalogue!r:.60} is a {type(catalogue).__name__}; {how}")
    if catalogue.plays is not None and not catalogue.plays.any():
        how = "name the columns of past rewards in bt.read_catalogue, such as plays and successes"
        raise InvalidValue(f"no arm of {catalogue!r} was ever played, so nothing is known about its rewards; {how}")
    return catalogue.tree


def _numbers(name: str, values: object, tree: Tree) -> Floats:
    array = by_arm(tree, name, values)
    if array.shape != (tree.n_arms,):
        raise InvalidValue(f"{name} has shape {array.shape}; {tree!r} needs one number per arm")
    return array
