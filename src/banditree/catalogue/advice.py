"""Advise which policy to run on a catalogue: simulate the candidates, choose one, say what categories are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from banditree.base.document import Code, Document, Part
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, number, percent
from banditree.beliefs import Gaussian
from banditree.catalogue.comparison import Lead, compare, tabulate
from banditree.catalogue.inspection import Inspection, clusters_at, inspect
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.simulation import (
    FLAT,
    WITH_TREE,
    WITHOUT_TREE,
    Candidate,
    PolicyNames,
    Workload,
    parse_candidates,
    plan,
    regret_section,
    tabulate_traffic,
    traffic_section,
)
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.stream import Seed
from banditree.tree import Tree

CLOSE = 0.05  # of policies within this share of the least regret, the simplest is advised
MOST_WORLDS = 0.9  # below this share of worlds in which the advised policy beats flat TS, the advice says so


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Result):
    """The result of `advise`.

    ``print(advice)`` shows it in sentences, ``advice.to_html()`` makes a page to share, and ``advice.to_dict()`` gives
    data for programs.
    """

    leader: Candidate  # the advised policy
    against_flat: Lead | None  # the advised policy compared with TS; None if it is TS
    categories: Lead | None  # ATS compared with ATS on the same arms without the tree; None if that is the same
    candidates: tuple[Candidate, ...]  # the policies that were simulated
    runs: Runs  # one row per world
    inspection: Inspection
    prior: Gaussian | None  # the prior to run it with; None for rewards that are rates

    @property
    def name(self) -> str:
        """The policy with its parameters, as the tables show it."""
        return self.leader.label

    @property
    def policy(self) -> str:
        """The class to run: TS, TSC, HTS, ..."""
        return self.leader.kind.__name__

    @property
    def depth(self) -> int | None:
        """How deep it walks the tree; None where the class has no such choice."""
        return self.leader.parameters.get("depth")

    @property
    def code(self) -> str:
        """How to build the policy."""
        return self.leader.code(self.prior)

    @property
    def horizon(self) -> int:
        return int(self.runs.times[-1])

    @property
    def verdict(self) -> str:
        """Whether the categories pay off: "tree", "flat", or "cannot tell"."""
        if self.categories is None:
            return "flat"
        if not self.categories.is_decisive:
            return "cannot tell"
        return "tree" if self.categories.saving > 0 else "flat"

    @cached_property
    def table(self) -> Table:
        """One row per policy: regret, its interval, the regret exceeded in one world of twenty, best in worlds."""
        return tabulate(self.runs)

    @cached_property
    def traffic(self) -> Table:
        """One row per top category: its arms, and for each policy the share of its plays."""
        return tabulate_traffic(self.inspection.catalogue, self.runs)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words: the policy, what it loses, what the categories are worth, and a caveat."""
        return (f"Run {self.name}: {self.leader.how}.", self._loss(), self._worth(), self.caveat)

    @property
    def caveat(self) -> str:
        """The main reason to doubt the answer."""
        versus = self.against_flat
        if versus is not None and versus.wins < MOST_WORLDS and self.inspection.worlds > 1:
            share = percent(1 - versus.wins)
            return f"In {share} of the worlds consistent with the data, {versus.rival} loses less than {self.name}."
        return f"The answer is for {count(self.horizon, 'decision')}: ask again with the number that you expect."

    def _loss(self) -> str:
        lost = self.inspection.catalogue.rewards(self._mean(self.name))
        line = f"Over {count(self.horizon, 'decision')}, it is expected to lose {lost} by not knowing the best arm"
        if self.against_flat is None:
            return f"{line}."
        versus = self.against_flat
        line += f", {versus.rival} {number(self._mean(versus.rival))}: {_gained(versus)}."
        if versus.crossing is None:
            return line
        first = versus.rival if versus.saving > 0 else versus.policy
        return f"{line} Up to about {number(versus.crossing)} decisions, {first} loses less."

    def _worth(self) -> str:
        worth = self.categories
        if worth is None:
            return "The categories make no difference here: no category has some of the arms and more than one."
        means = f"{worth.policy} loses {number(self._mean(worth.policy))} with them"
        means += f" and {number(self._mean(worth.rival))} without"
        says = {"tree": "The categories pay off", "flat": "The categories do not pay off"}
        says["cannot tell"] = "The simulation cannot tell whether the categories pay off"
        line = f"{says[self.verdict]}: {means}, {_gained(worth)}."
        if worth.crossing is None or not worth.is_decisive:
            return line
        with_or_without = "without" if worth.saving > 0 else "with"
        return f"{line} Up to about {number(worth.crossing)} decisions it loses less {with_or_without} them."

    def _mean(self, policy: str) -> float:
        return float(self.runs.regret[policy][:, -1].mean())

    def facts(self) -> dict[str, object]:
        names = ("policy", "depth", "verdict", "code", "horizon", "against_flat", "categories", "sentences")
        return {name: getattr(self, name) for name in names} | {
            "policies": self.table,
            "seeds": len(self.runs.seeds),
            "times": self.runs.times,
            "regret": {name: self.runs.regret[name].mean(axis=0) for name in self.table["policy"]},
            "traffic": self.traffic,
            "inspection": self.inspection,
        }

    def document(self) -> Document:
        first, *rest = self.sentences
        inspection = self.inspection
        parts: list[Part] = [
            *rest,
            Code(self.code, "In Python"),
            regret_section(self.runs, self.table, inspection.catalogue),
            inspection.levels_section(),
        ]
        details = [inspection.clusters_section(), inspection.top_section(), traffic_section(self.traffic)]
        details += [inspection.tree_section(), *inspection.catalogue.notes_section()]
        parts += [replace(section, page_only=True) for section in details]
        return Document(first, parts, name=self.name, about=count(self.horizon, "decision"), brief=(self.name,))


def _gained(difference: Lead) -> str:
    """Say how much less or more regret it is, with the interval.

    >>> _gained(Lead("A", "B", 3.0, (-1.0, 7.0), 0.25, 0.8, None))
    '3 less (25%; 95% interval 1 more to 7 less)'
    """
    low, high = difference.interval
    if low < 0 < high:
        ends = f"{number(-low)} more to {number(high)} less"
    else:
        near, far = sorted((abs(low), abs(high)))
        ends = f"{number(near)} to {number(far)} {'less' if high > 0 else 'more'}"
    word = "less" if difference.saving >= 0 else "more"
    size = f"{number(abs(difference.saving))} {word} ({percent(abs(difference.share))}"
    return f"{size}; 95% interval {ends})"


def advise(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: PolicyNames | None = None,
    seeds: int | None = None,
    quick: bool = False,
    rng: Seed = 0,
    jobs: int | None = None,
    progress: Progress = None,
) -> Advice:
    """Advise which policy to run over ``horizon`` decisions, and say what the categories are worth.

    Simulates every candidate in many worlds (true means that are consistent with the data). The advice is the simplest
    of the policies whose mean regret is within 5% of the least; the simpler ones come first in ``policies``.

    What the categories are worth is the difference between ATS, which learns how far to trust them, and ATS on the same
    arms without them. The verdict is "tree" or "flat" if the 95% interval of that difference leaves out 0, and "cannot
    tell" otherwise. Intervals are of means over worlds, by a bootstrap over them.

    Parameters
    ----------
    catalogue
        What `read_catalogue` returns.
    horizon
        How many decisions will be made.
    policies
        The policies to try, as in `simulate`; by default all that the tree allows. TS and ATS are always added.
    seeds, quick, rng, jobs, progress
        As in `simulate`.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": [f"s{i}" for i in range(60)], "hats": [f"h{i}" for i in range(5)]})
    >>> catalogue = Catalogue(tree, means=[0.1] * 60 + [0.4, 0.45, 0.5, 0.45, 0.4])
    >>> advice = advise(catalogue, horizon=2000, seeds=80)
    >>> advice.policy, advice.verdict
    ('TSC', 'tree')
    """
    workload = plan_advice(catalogue, horizon=horizon, policies=policies, seeds=seeds, quick=quick)
    run = partial(workload.run, rng=rng, checkpoints=_checkpoints(horizon), jobs=jobs)
    runs = run(progress=progress)
    leader, prior = choose(workload.candidates, runs), catalogue.prior
    if prior is not None and leader.kind.about.takes_prior:
        learned = run(policies={leader.label: leader.factory(Gaussian())}, progress=False)
        prior = better_prior(prior, runs, learned, leader.label)
    return weigh(workload.candidates, runs, inspect(catalogue, rng=rng), prior)


def plan_advice(
    catalogue: Catalogue, *, horizon: int, policies: PolicyNames | None, seeds: int | None, quick: bool
) -> Workload:
    """Choose the candidates, and the number of worlds if it is not given."""
    tree = tree_of(catalogue)
    if tree.depth == 0:
        raise InvalidValue(
            "this catalogue has no categories, so there is nothing to advise on; name the columns of its path"
        )
    if seeds is not None:
        whole("seeds", seeds, 4, why="how many worlds")
    asked = [FLAT, *parse_candidates(policies, tree), WITH_TREE, *([WITHOUT_TREE] if divides(tree) else [])]
    return plan(catalogue, list(dict.fromkeys(asked)), horizon, seeds, quick=quick)


def divides(tree: Tree) -> bool:
    """Whether some category has more than one arm, and not all of them.

    >>> divides(Tree({"all": [1, 2, 3]})), divides(Tree({"a": [1], "b": [2]})), divides(Tree({"a": [1, 2], "b": [3]}))
    (False, False, True)
    """
    sizes = np.concatenate([np.unique(at, return_counts=True)[1] for at in clusters_at(tree)])
    return bool(((sizes > 1) & (sizes < tree.n_arms)).any())


def choose(candidates: Sequence[Candidate], runs: Runs) -> Candidate:
    """Return the first candidate whose mean regret is within 5% of the least."""
    means = {candidate: float(runs.regret[candidate.label][:, -1].mean()) for candidate in candidates}
    return next(candidate for candidate, mean in means.items() if mean <= (1 + CLOSE) * min(means.values()))


def better_prior(known: Gaussian, runs: Runs, learned: Runs, policy: str) -> Gaussian:
    """Return the prior to advise: the one known from the catalogue, unless learning everything has less regret."""
    told, untold = (float(each.regret[policy][:, -1].mean()) for each in (runs, learned))
    return known if told <= untold else Gaussian()


def weigh(candidates: Sequence[Candidate], runs: Runs, inspection: Inspection, prior: Gaussian | None = None) -> Advice:
    """Turn simulated runs into advice."""
    leader = choose(candidates, runs)
    is_pair = WITHOUT_TREE in candidates
    return Advice(
        leader=leader,
        against_flat=None if leader == FLAT else compare(runs, leader.label, FLAT.label),
        categories=compare(runs, WITH_TREE.label, WITHOUT_TREE.label) if is_pair else None,
        candidates=tuple(candidates),
        runs=runs,
        inspection=inspection,
        prior=prior,
    )


def _checkpoints(horizon: int) -> list[int]:
    """Choose times that are dense early on, where policies diverge, and evenly spaced later."""
    early = np.geomspace(min(10, horizon), horizon, 40)
    even = np.linspace(horizon / 40, horizon, 40)
    return [int(time) for time in np.unique(np.concatenate([early, even]).astype(int).clip(1))]
