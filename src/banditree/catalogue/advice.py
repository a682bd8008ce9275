"""Advise which policy to run on a catalogue: simulate the candidates, compare them and choose one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from banditree.catalogue import candidates
from banditree.catalogue.candidates import FLAT, Candidate, PolicyNames
from banditree.catalogue.comparison import CLOSE, Difference, Overtaking, WorldRuns
from banditree.catalogue.inspection import Inspection, inspect
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.jsonable import jsonable
from banditree.catalogue.simulation import STEPS, default_seeds, traffic
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.policy.engines import engine
from banditree.report.tables import Table
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.simulation.simulator import simulate as run

ROUNDS = 2, 4, 8  # runs of every policy in every world; the next number is used while luck plays too large a part
LUCK = 0.2  # luck plays too large a part above this share of the variance over worlds
CLEAR = 0.99  # if one policy is better with this probability, luck does not matter


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """The result of `advise`.

    ``print(advice)`` shows it in sentences, ``advice.to_html()`` makes a page to share, and ``advice.to_dict()`` gives
    data for programs.
    """

    policy: str  # the class to run: TS, TSC, HTS, ...
    depth: int | None  # how deep it walks the tree; None where the class has no such choice
    verdict: str  # does it pay off to trust the categories: "tree", "flat", or "cannot tell"
    code: str  # how to build the policy
    horizon: int
    against_flat: Difference  # the advised policy, or else the best that uses the tree, compared with TS
    pays_from: int | None  # decisions after which that policy stays ahead; None if it is not ahead at the horizon
    overtaken: Overtaking | None  # which policy would be ahead with more decisions, and from when
    sentences: tuple[str, ...]  # the answer in words
    changes: tuple[str, ...]  # what would change the answer
    table: Table  # policy, regret, interval, loss per decision at the end, share of worlds in which it is best
    candidates: tuple[Candidate, ...]  # the policies that were simulated
    same: Mapping[str, str]  # {candidate that was not simulated: the equivalent candidate that was}
    inspection: Inspection
    runs: Runs  # one row per world: the mean over the policy's runs in it
    traffic: Table

    @property
    def name(self) -> str:
        """The policy with its parameters, as the tables show it."""
        return next(each.label for each in self.candidates if (each.policy, each.depth) == (self.policy, self.depth))

    def to_dict(self) -> dict[str, Any]:
        """Convert to lists, numbers and strings for JSON; NaN becomes None."""
        names = ("policy", "depth", "verdict", "code", "horizon", "against_flat", "pays_from", "overtaken", "same")
        found = {name: getattr(self, name) for name in (*names, "sentences", "changes")}
        curves = {name: self.runs.regret[name].mean(axis=0) for name in self.table["policy"]}
        found |= {"policies": self.table, "seeds": len(self.runs.seeds), "times": self.runs.times, "regret": curves}
        converted: dict[str, Any] = jsonable(found | {"traffic": self.traffic}) | {
            "inspection": self.inspection.to_dict()
        }
        return converted

    def to_html(self, *, title: str = "catalogue") -> str:
        """Return a self-contained web page: no scripts, no external fonts, no network."""
        from banditree.catalogue.page import advice_page

        return advice_page(self, title=title)

    def _repr_html_(self) -> str:
        from banditree.catalogue.notebook import advice

        return advice(self)

    def __str__(self) -> str:
        return "\n".join([*self.sentences, "", "What would change this:", *(f"- {line}" for line in self.changes)])

    __repr__ = __str__


def advise(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: PolicyNames | None = None,
    seeds: int | None = None,
    rng: Any = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Advice:
    """Advise whether the categories pay off over ``horizon`` decisions, and which policy to run.

    Simulates every candidate in ``seeds`` worlds (true means that are consistent with the data), at least twice in
    each. Repeated runs in the same world separate the luck of a run from the uncertainty about the world; there are up
    to eight of them where luck plays a large part.

    The verdict compares flat TS with the best policy that trusts the tree: which has the lower expected regret? If each
    of the two is at least 10% likely to be the better one, the data cannot tell, and the advice says so. If, in
    addition, they are within 2% of each other or differ by no more than luck, the simpler one is preferred: flat TS or,
    of two policies that use the tree, the one named first in ``policies`` (by default the simpler ones come first). A
    policy that is within 5% of the best and loses less per decision at the end is preferred, because it is still
    learning. The advice is that policy, or ATS, which learns how far to trust the tree, if it does clearly better.

    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": [f"s{i}" for i in range(20)], "hats": [f"h{i}" for i in range(5)]})
    >>> catalogue = Catalogue(tree, means=[0.1] * 20 + [0.4, 0.45, 0.5, 0.45, 0.4])
    >>> advice = advise(catalogue, horizon=2000, seeds=10)
    >>> advice.policy, advice.verdict
    ('TSC', 'tree')
    """
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
    tree = tree_of(catalogue)
    if tree.depth == 0:
        raise InvalidValue(
            "this catalogue has no categories, so there is nothing to advise on; name the columns of its path"
        )
    asked = candidates.for_tree(tree) if policies is None else candidates.named(policies, tree)
    if all(candidate.levels == 0 for candidate in asked):
        given = ", ".join(candidate.label for candidate in asked)
        raise InvalidValue(f"none of the policies uses the tree: {given}; add one that does, such as TSC")
    chosen, same = candidates.distinct([FLAT, *(each for each in asked if each != FLAT)], tree)
    steps = horizon * candidates.cost(chosen)
    seeds = default_seeds(ROUNDS[0] * steps) if seeds is None else whole("seeds", seeds, 4, why="how many worlds")
    simulated = partial(
        run,
        {each.label: each.factory_with(catalogue.prior) for each in chosen},
        catalogue.world(),
        horizon=horizon,
        seeds=seeds,
        rng=rng,
        checkpoints=_checkpoints(horizon),
        jobs=jobs,
        progress=progress,
    )
    found = WorldRuns(simulated(replicates=ROUNDS[0]), one_world=catalogue.means is not None)
    for before, after in pairwise(ROUNDS):
        if after * steps * seeds > 2 * STEPS[engine()] or not _more_runs(found, chosen, tree):
            break
        found = WorldRuns(found.runs.with_replicates(simulated(replicates=range(before, after))), found.one_world)
    return weigh(catalogue, chosen, found, inspect(catalogue, rng=rng), same=same)


def _checkpoints(horizon: int) -> list[int]:
    """Choose times that are dense early on, where policies diverge, and evenly spaced later."""
    early = np.geomspace(min(10, horizon), horizon, 40)
    even = np.linspace(horizon / 40, horizon, 40)
    return [int(time) for time in np.unique(np.concatenate([early, even]).astype(int).clip(1))]


def _more_runs(found: WorldRuns, chosen: Sequence[Candidate], tree: Any) -> bool:
    """Whether luck still hides an answer: does the tree pay off, which policy uses it best, and does ATS do better?"""
    trusting, adaptive = _with_tree(chosen, tree)
    questions, simpler = [], FLAT.label
    if trusting:
        way, best = _best_way(found, trusting), min(trusting, key=lambda each: found.mean(each.label))
        questions.append(found.compare(way.label, FLAT.label))
        if found.mean(best.label) < (1 - CLOSE) * found.mean(way.label):
            questions.append(found.compare(best.label, way.label))
        simpler = min(way.label, FLAT.label, key=found.mean)
    questions += [
        found.compare(each.label, simpler)
        for each in adaptive
        if found.mean(each.label) < (1 - CLOSE) * found.mean(simpler)
    ]
    return any(
        max(asked.chance, 1 - asked.chance) <= CLEAR and found.luck(asked.policy, asked.rival) > LUCK
        for asked in questions
    )


def _with_tree(chosen: Sequence[Candidate], tree: Any) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that trust the categories, and those that learn how far to trust them.

    If there are only the latter, they answer for the categories, unless these affect no candidate.
    """
    using = [candidate for candidate in chosen if candidate.clusters(tree)]
    adaptive = [candidate for candidate in chosen if candidate.adapts]
    trusting = [candidate for candidate in using if not candidate.adapts]
    return (trusting, adaptive) if trusting or not using else (using, [])


def _best_way(found: WorldRuns, trusting: Sequence[Candidate]) -> Candidate:
    """Return the policy that trusts the tree with the lowest expected regret, or the first one as good as that."""
    best = min(trusting, key=lambda each: found.mean(each.label))
    return next(each for each in trusting if not found.compare(best.label, each.label).matters)


def weigh(
    catalogue: Catalogue,
    chosen: Sequence[Candidate],
    found: WorldRuns,
    inspection: Inspection,
    *,
    same: Mapping[str, str] | None = None,
) -> Advice:
    """Turn simulated runs into advice."""
    from banditree.catalogue import answer

    by_label = {candidate.label: candidate for candidate in chosen}
    trusting, adaptive = _with_tree(chosen, catalogue.tree)
    same = same or {}
    if trusting:
        way = _best_way(found, trusting)
        categories = found.compare(way.label, FLAT.label)
        first = way if categories.saving > 0 and categories.matters else FLAT
        simple = leader = by_label[found.learner(first.label, [FLAT.label, *(each.label for each in trusting)])]
        if leader not in (FLAT, way):
            categories = found.compare(leader.label, FLAT.label)
        verdict = ("flat" if leader == FLAT else "tree") if categories.told else "cannot tell"
    else:  # the categories change no candidate
        simple = leader = first = FLAT
        verdict = "flat"
        categories = Difference(next(iter(same), FLAT.label), FLAT.label, 0.0, 0.0, (0.0, 0.0), 0.0, 0.5, 0.0, 0.0)
    difference = categories
    for each in adaptive:
        gained = found.compare(each.label, simple.label)
        better = each if gained.saving > 0 and gained.matters else simple
        if by_label[found.learner(better.label, [simple.label, each.label])] == each:
            leader, first = each, each if gained.saving > 0 else simple
            difference = found.compare(each.label, FLAT.label)
    ran = difference.policy in by_label and difference.policy != FLAT.label
    pays_from = found.pays_from(difference.policy, FLAT.label) if ran else None
    means = {name: found.mean(name) for name in by_label}
    best = np.array([found.runs.regret[name][:, -1] for name in means]).argmin(axis=0)  # (worlds,)
    rows = [
        (
            row.policy,
            row.mean,
            row.interval,
            float(found.losses(row.policy).mean()),
            float((best == list(means).index(row.policy)).mean()),
        )
        for row in found.runs.table()
    ]
    shares = traffic(catalogue, found.runs)
    case = answer.Case(
        leader=leader,
        least_regret=first,
        verdict=verdict,
        difference=difference,
        categories=categories,
        adaptive=tuple(adaptive),
        pays_from=pays_from,
        overtaken=found.overtaking(leader.label),
        found=found,
        inspection=inspection,
        traffic=shares,
        same=same,
        with_tree=frozenset(each.label for each in (*trusting, *adaptive)),
    )
    return Advice(
        policy=leader.policy,
        depth=leader.depth,
        verdict=verdict,
        code=leader.code_with(catalogue.prior),
        horizon=int(found.runs.times[-1]),
        against_flat=difference,
        pays_from=pays_from,
        overtaken=case.overtaken,
        sentences=tuple(answer.sentences(case)),
        changes=tuple(answer.changes(case)),
        table=Table(("policy", "regret", "interval", "loss", "best"), rows),
        candidates=tuple(chosen),
        same=same,
        inspection=inspection,
        runs=found.runs,
        traffic=shares,
    )
