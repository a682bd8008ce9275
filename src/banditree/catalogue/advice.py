"""Advise which policy to run on a catalogue: simulate the candidates, compare them and choose one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from banditree.catalogue import answer, candidates
from banditree.catalogue.answer import Case
from banditree.catalogue.candidates import FLAT, Candidate, PolicyNames
from banditree.catalogue.comparison import CLOSE, Difference, WorldRuns
from banditree.catalogue.inspection import Inspection, inspect
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.simulation import (
    BUDGET_SECONDS,
    LOST,
    Workload,
    default_seeds,
    estimate_workload,
    regret_section,
    start_sentence,
    tabulate_traffic,
    traffic_section,
)
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.report.document import Bullets, Code, Document, Part, Section
from banditree.report.result import Result
from banditree.report.tables import Table
from banditree.report.words import count
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.simulation.simulator import simulate as run
from banditree.stream import Seed
from banditree.tree import Tree

ROUNDS = 2, 4, 8  # runs of every policy in every world; the next number is used while luck plays too large a part
MAX_LUCK = 0.2  # luck plays too large a part above this share of the variance over worlds
CLEAR_CHANCE = 0.99  # if one policy is better with this probability, luck does not matter


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Case, Result):
    """The result of `advise`.

    ``print(advice)`` shows it in sentences, ``advice.to_html()`` makes a page to share, and ``advice.to_dict()`` gives
    data for programs.
    """

    table: Table  # policy, regret, interval, regret of a bad run, loss per decision at the end, best in worlds
    candidates: tuple[Candidate, ...]  # the policies that were simulated

    @property
    def name(self) -> str:
        """The policy with its parameters, as the tables show it."""
        return self.leader.label

    @property
    def policy(self) -> str:
        """The class to run: TS, TSC, HTS, ..."""
        return self.leader.policy

    @property
    def depth(self) -> int | None:
        """How deep it walks the tree; None where the class has no such choice."""
        return self.leader.depth

    @property
    def code(self) -> str:
        """How to build the policy."""
        return self.leader.code_with(self.inspection.catalogue.prior)

    @property
    def runs(self) -> Runs:
        """One row per world: the mean over the policy's runs in it."""
        return self.results.runs

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words."""
        return tuple(answer.sentences(self))

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """What would change the answer."""
        return tuple(answer.changes(self))

    def facts(self) -> dict[str, object]:
        names = ("policy", "depth", "verdict", "code", "horizon", "against_flat", "pays_from", "overtaken", "same")
        return {name: getattr(self, name) for name in (*names, "sentences", "changes")} | {
            "policies": self.table,
            "seeds": len(self.runs.seeds),
            "times": self.runs.times,
            "regret": {name: self.runs.regret[name].mean(axis=0) for name in self.table["policy"]},
            "traffic": self.traffic,
            "inspection": self.inspection,
        }

    def document(self) -> Document:
        first, *rest = self.sentences
        size, inspection = count(self.horizon, "decision"), self.inspection
        parts: list[Part] = [
            *rest,
            Code(self.code, "In Python"),
            regret_section(self.table, self.runs, self._about_regret()),
            Section("What would change this", [Bullets(self.changes)]),
            inspection.levels_section(),
        ]
        details = [inspection.clusters_section(), inspection.top_section(), inspection.misplaced_section()]
        details += [traffic_section(self.traffic), inspection.tree_section(), *inspection.notes()]
        parts += [replace(section, page_only=True) for section in details]
        return Document(first, parts, name=self.name, about=size, brief=(self.name,))

    def _about_regret(self) -> str:
        worlds, runs = len(self.runs.seeds), next(iter(self.runs.replicates.values())).shape[1]
        where = f"in {count(worlds, 'world')} consistent with the data, {runs} in each"
        if self.inspection.catalogue.means is not None:
            where = "on the means given"
        return (
            f"{LOST}, in {worlds * runs} runs of each policy {where}; less is better. One run in twenty is worse than "
            f"the bad run. {start_sentence(self.inspection.catalogue)}"
        )


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
    """Advise whether the categories pay off over ``horizon`` decisions, and which policy to run.

    Simulates every candidate in many worlds (true means that are consistent with the data), at least twice in each.
    Repeated runs in the same world separate the luck of a run from the uncertainty about the world; there are up to
    eight of them where luck plays a large part.

    The verdict compares flat TS with the best policy that trusts the tree: which has the lower expected regret? If each
    of the two is at least 10% likely to be the better one, the data cannot tell, and the advice says so. If, in
    addition, they are within 2% of each other or differ by no more than luck, the simpler one is preferred: flat TS or,
    of two policies that use the tree, the one named first in ``policies`` (by default the simpler ones come first). A
    policy that is within 5% of the best and loses less per decision at the end is preferred, because it is still
    learning. The advice is that policy, or ATS, which learns how far to trust the tree, if it does clearly better.

    Parameters
    ----------
    catalogue
        What `read_catalogue` returns.
    horizon
        How many decisions will be made.
    policies
        The policies to try, as in `simulate`; by default all that the tree allows. TS is always added.
    seeds, quick, rng, jobs, progress
        As in `simulate`; with ``quick``, each policy runs twice in each world, not more often.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": [f"s{i}" for i in range(20)], "hats": [f"h{i}" for i in range(5)]})
    >>> catalogue = Catalogue(tree, means=[0.1] * 20 + [0.4, 0.45, 0.5, 0.45, 0.4])
    >>> advice = advise(catalogue, horizon=2000, seeds=10)
    >>> advice.policy, advice.verdict
    ('TSC', 'tree')
    """
    plan = Plan.of(catalogue, horizon=horizon, policies=policies, seeds=seeds, quick=quick)
    simulate = partial(
        run,
        {candidate.label: candidate.factory_with(catalogue.prior) for candidate in plan.candidates},
        catalogue.world(),
        horizon=plan.horizon,
        seeds=plan.seeds,
        rng=rng,
        checkpoints=_checkpoints(plan.horizon),
        jobs=jobs,
        progress=progress,
    )
    results = WorldRuns(simulate(replicates=ROUNDS[0]), one_world=catalogue.means is not None)
    for before, after in pairwise(ROUNDS):
        is_affordable = not quick and after * plan.seconds * plan.seeds <= 2 * BUDGET_SECONDS
        if not is_affordable or not _needs_more_runs(results, plan.candidates, catalogue.tree):
            break
        more = simulate(replicates=range(before, after))
        results = WorldRuns(results.runs.with_replicates(more), results.one_world)
    return weigh(catalogue, plan.candidates, results, inspect(catalogue, rng=rng), same=plan.same)


@dataclass(frozen=True)
class Plan:
    """What `advise` simulates."""

    horizon: int
    candidates: Sequence[Candidate]
    same: Mapping[str, str]  # {candidate that is not simulated: the equivalent candidate that is}
    seeds: int
    seconds: float  # that one run of all candidates takes, by a rule of thumb

    @classmethod
    def of(
        cls, catalogue: Catalogue, *, horizon: int, policies: PolicyNames | None, seeds: int | None, quick: bool
    ) -> Plan:
        """Choose the candidates, and the number of worlds if it is not given."""
        horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
        tree = tree_of(catalogue)
        if tree.depth == 0:
            raise InvalidValue(
                "this catalogue has no categories, so there is nothing to advise on; name the columns of its path"
            )
        asked = candidates.for_tree(tree) if policies is None else candidates.parse_candidates(policies, tree)
        if all(candidate.levels == 0 for candidate in asked):
            given = ", ".join(candidate.label for candidate in asked)
            raise InvalidValue(f"none of the policies uses the tree: {given}; add one that does, such as TSC")
        chosen, same = candidates.distinct([FLAT, *(candidate for candidate in asked if candidate != FLAT)], tree)
        seconds = horizon * candidates.decision_seconds(chosen, tree.n_arms)
        if seeds is None:
            seeds = default_seeds(ROUNDS[0] * seconds, quick=quick)
        return cls(horizon, chosen, same, whole("seeds", seeds, 4, why="how many worlds"), seconds)

    def workload(self, catalogue: Catalogue, jobs: int | None) -> Workload:
        """Estimate how long the first round takes; where luck plays a large part, more follow."""
        return estimate_workload(
            catalogue, self.candidates, horizon=self.horizon, worlds=self.seeds, runs=ROUNDS[0], jobs=jobs
        )


def _checkpoints(horizon: int) -> list[int]:
    """Choose times that are dense early on, where policies diverge, and evenly spaced later."""
    early = np.geomspace(min(10, horizon), horizon, 40)
    even = np.linspace(horizon / 40, horizon, 40)
    return [int(time) for time in np.unique(np.concatenate([early, even]).astype(int).clip(1))]


def _needs_more_runs(results: WorldRuns, chosen: Sequence[Candidate], tree: Tree) -> bool:
    """Whether luck still hides an answer: does the tree pay off, which policy uses it best, and does ATS do better?"""
    trusting, adaptive = _with_tree(chosen, tree)
    questions, simpler = [], FLAT.label
    if trusting:
        way, best = _best_way(results, trusting), min(trusting, key=lambda candidate: results.mean(candidate.label))
        questions.append(results.compare(way.label, FLAT.label))
        if results.mean(best.label) < (1 - CLOSE) * results.mean(way.label):
            questions.append(results.compare(best.label, way.label))
        simpler = min(way.label, FLAT.label, key=results.mean)
    questions += [
        results.compare(candidate.label, simpler)
        for candidate in adaptive
        if results.mean(candidate.label) < (1 - CLOSE) * results.mean(simpler)
    ]
    return any(
        max(question.chance, 1 - question.chance) <= CLEAR_CHANCE
        and results.luck(question.policy, question.rival) > MAX_LUCK
        for question in questions
    )


def _with_tree(chosen: Sequence[Candidate], tree: Tree) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that trust the categories, and those that learn how far to trust them.

    If there are only the latter, they answer for the categories, unless these affect no candidate.
    """
    using = [candidate for candidate in chosen if candidate.clusters(tree)]
    adaptive = [candidate for candidate in chosen if candidate.adapts]
    trusting = [candidate for candidate in using if not candidate.adapts]
    return (trusting, adaptive) if trusting or not using else (using, [])


def _best_way(results: WorldRuns, trusting: Sequence[Candidate]) -> Candidate:
    """Return the policy that trusts the tree with the lowest expected regret, or the first one as good as that."""
    best = min(trusting, key=lambda candidate: results.mean(candidate.label))
    return next(candidate for candidate in trusting if not results.compare(best.label, candidate.label).matters)


def weigh(
    catalogue: Catalogue,
    chosen: Sequence[Candidate],
    results: WorldRuns,
    inspection: Inspection,
    *,
    same: Mapping[str, str] | None = None,
) -> Advice:
    """Turn simulated runs into advice."""
    by_label = {candidate.label: candidate for candidate in chosen}
    trusting, adaptive = _with_tree(chosen, catalogue.tree)
    same = same or {}
    if trusting:
        way = _best_way(results, trusting)
        categories = results.compare(way.label, FLAT.label)
        first = way if categories.saving > 0 and categories.matters else FLAT
        simple = leader = by_label[
            results.learner(first.label, [FLAT.label, *(candidate.label for candidate in trusting)])
        ]
        if leader not in (FLAT, way):
            categories = results.compare(leader.label, FLAT.label)
        verdict = ("flat" if leader == FLAT else "tree") if categories.is_decisive else "cannot tell"
    else:  # the categories change no candidate
        simple = leader = first = FLAT
        verdict = "flat"
        categories = Difference(next(iter(same), FLAT.label), FLAT.label, 0.0, 0.0, (0.0, 0.0), 0.0, 0.5, 0.0, 0.0)
    difference = categories
    for candidate in adaptive:
        gained = results.compare(candidate.label, simple.label)
        better = candidate if gained.saving > 0 and gained.matters else simple
        if by_label[results.learner(better.label, [simple.label, candidate.label])] == candidate:
            leader, first = candidate, candidate if gained.saving > 0 else simple
            difference = results.compare(candidate.label, FLAT.label)
    is_simulated = difference.policy in by_label and difference.policy != FLAT.label
    pays_from = results.pays_from(difference.policy, FLAT.label) if is_simulated else None
    means = {name: results.mean(name) for name in by_label}
    best = np.array([results.runs.regret[name][:, -1] for name in means]).argmin(axis=0)  # (worlds,)
    rows = [
        (
            row.policy,
            row.mean,
            row.interval,
            results.bad_run(row.policy),
            float(results.losses(row.policy).mean()),
            float((best == list(means).index(row.policy)).mean()),
        )
        for row in results.runs.table()
    ]
    return Advice(
        leader=leader,
        least_regret=first,
        verdict=verdict,
        against_flat=difference,
        categories=categories,
        adaptive=tuple(adaptive),
        pays_from=pays_from,
        overtaken=results.overtaking(leader.label),
        results=results,
        inspection=inspection,
        traffic=tabulate_traffic(catalogue, results.runs),
        same=same,
        with_tree=frozenset(candidate.label for candidate in (*trusting, *adaptive)),
        table=Table(("policy", "regret", "interval", "bad_run", "loss", "best"), rows),
        candidates=tuple(chosen),
    )
