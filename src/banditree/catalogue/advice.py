"""Advise which policy to run on a catalogue: simulate the candidates, compare them, choose one, and say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from banditree.base.document import Bullets, Code, Document, Part, Section
from banditree.base.intervals import student
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import chance, count, number, percent
from banditree.catalogue.comparison import CLOSE, Difference, Overtaking, WorldRuns
from banditree.catalogue.inspection import Inspection, inspect
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.simulation import (
    BUDGET_SECONDS,
    FLAT,
    LEARNS,
    LEARNS_ALIKE,
    LOST,
    Candidate,
    Plan,
    PolicyNames,
    decision_seconds,
    distinct,
    parse_candidates,
    plan_candidates,
    regret_section,
    start_sentence,
    tabulate_traffic,
    traffic_section,
)
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.stream import Seed
from banditree.tree import Tree

ROUNDS = 2, 4, 8  # runs of every policy in every world; the next number is used while luck plays too large a part
MAX_LUCK = 0.2  # luck plays too large a part above this share of the variance over worlds
CLEAR_CHANCE = 0.99  # if one policy is better with this probability, luck does not matter
MIN_TRAFFIC = 0.5  # warn if at least this share of decisions goes to a category that is unlikely to hold the best arm
MAX_CHANCE = 0.05  # a category is unlikely to hold the best arm below this probability
CLEARLY_SAFER = 0.9  # another policy is safer if its bad runs lose less than this share


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Result):
    """The result of `advise`.

    ``print(advice)`` shows it in sentences, ``advice.to_html()`` makes a page to share, and ``advice.to_dict()`` gives
    data for programs.
    """

    leader: Candidate  # the advised policy
    least_regret: Candidate  # what would be advised if losses at the end did not count
    verdict: str  # does it pay off to trust the categories: "tree", "flat", or "cannot tell"
    against_flat: Difference  # the advised policy, or else the best that uses the tree, compared with TS
    categories: Difference  # a policy that trusts the tree, compared with flat TS: the verdict is about this
    candidates: tuple[Candidate, ...]  # the policies that were simulated
    trusting: tuple[Candidate, ...]  # those that trust the categories
    adaptive: tuple[Candidate, ...]  # those that learn how far to trust them
    results: WorldRuns
    inspection: Inspection
    same: Mapping[str, str] = field(default_factory=dict)  # {candidate left out: the equivalent one that was simulated}

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

    @property
    def horizon(self) -> int:
        return int(self.runs.times[-1])

    @cached_property
    def table(self) -> Table:
        """One row per policy: regret, interval, regret of a bad run, loss per decision at the end, best in worlds."""
        return self.results.table()

    @cached_property
    def traffic(self) -> Table:
        """One row per top category: its arms, and for each policy the share of its plays."""
        return tabulate_traffic(self.inspection.catalogue, self.runs)

    @cached_property
    def pays_from(self) -> int | None:
        """Decisions after which the policy of ``against_flat`` stays ahead; None if it is not ahead at the horizon."""
        return self.results.pays_from(self.against_flat.policy, FLAT.label) if self.is_compared else None

    @cached_property
    def overtaken(self) -> Overtaking | None:
        """Which policy would be ahead with more decisions, and from when."""
        return self.results.overtaking(self.name)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words."""
        lines = [*_headline(self), *_adaptive(self), *_bad_runs(self), *_at_the_end(self), *_traffic_warning(self)]
        return (*lines, *_ahead_from(self), *_alternatives(self), *_equivalent(self), *_odds(self))

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """What would change the answer."""
        lines = [*_less_traffic(self), *_more_traffic_or_data(self), *_other_categories(self)]
        return tuple(lines or ["Nothing that the simulation shows: with less traffic, the same policy leads."])

    @property
    def is_compared(self) -> bool:
        """Whether ``against_flat`` is about a policy other than flat TS that was simulated."""
        return self._is_simulated(self.against_flat.policy)

    @property
    def is_alike(self) -> bool:
        """Whether the categories change no candidate."""
        return not self._is_simulated(self.categories.policy)

    def _is_simulated(self, policy: str) -> bool:
        return policy != FLAT.label and policy in self.runs.policies

    def in_rewards(self, amount: float) -> str:
        """Format an amount of reward with its unit."""
        return self.inspection.catalogue.rewards(amount)

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
        inspection, catalogue = self.inspection, self.inspection.catalogue
        worlds, runs = len(self.runs.seeds), next(iter(self.runs.replicates.values())).shape[1]
        where = f"in {count(worlds, 'world')} consistent with the data, {runs} in each"
        where = "on the means given" if catalogue.means is not None else where
        about = (
            f"{LOST}, in {worlds * runs} runs of each policy {where}; less is better. One run in twenty is worse than "
            f"the bad run. {start_sentence(catalogue)}"
        )
        parts: list[Part] = [
            *rest,
            Code(self.code, "In Python"),
            regret_section(self.table, self.runs, about),
            Section("What would change this", [Bullets(self.changes)]),
            inspection.levels_section(),
        ]
        details = [inspection.clusters_section(), inspection.top_section(), inspection.misplaced_section()]
        details += [traffic_section(self.traffic), inspection.tree_section(), *inspection.notes()]
        parts += [replace(section, page_only=True) for section in details]
        return Document(first, parts, name=self.name, about=count(self.horizon, "decision"), brief=(self.name,))


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
    plan = plan_advice(catalogue, horizon=horizon, policies=policies, seeds=seeds, quick=quick)
    simulate = partial(plan.run, rng=rng, checkpoints=_checkpoints(plan.horizon), jobs=jobs, progress=progress)
    results = WorldRuns(simulate(replicates=ROUNDS[0]), one_world=catalogue.means is not None)
    seconds = plan.horizon * plan.worlds * decision_seconds(plan.candidates, catalogue.tree.n_arms)
    for before, after in pairwise(ROUNDS):
        is_affordable = not quick and after * seconds <= 2 * BUDGET_SECONDS
        if not is_affordable or not _needs_more_runs(results, plan.candidates, catalogue.tree):
            break
        more = simulate(replicates=range(before, after))
        results = WorldRuns(results.runs.with_replicates(more), results.one_world)
    return weigh(catalogue, plan.candidates, results, inspect(catalogue, rng=rng), same=plan.same)


def plan_advice(
    catalogue: Catalogue, *, horizon: int, policies: PolicyNames | None, seeds: int | None, quick: bool
) -> Plan:
    """Choose the candidates, and the number of worlds if it is not given, for the first round of `advise`."""
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
    tree = tree_of(catalogue)
    if tree.depth == 0:
        raise InvalidValue(
            "this catalogue has no categories, so there is nothing to advise on; name the columns of its path"
        )
    asked = parse_candidates(policies, tree)
    if all(candidate.levels == 0 for candidate in asked):
        given = ", ".join(candidate.label for candidate in asked)
        raise InvalidValue(f"none of the policies uses the tree: {given}; add one that does, such as TSC")
    chosen, same = distinct([FLAT, *(candidate for candidate in asked if candidate != FLAT)], tree)
    plan = plan_candidates(catalogue, chosen, horizon=horizon, seeds=seeds, quick=quick, runs=ROUNDS[0])
    return replace(plan, worlds=whole("seeds", plan.worlds, 4, why="how many worlds"), same=same)


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
        way = _best_way(results, trusting).label
        best = min((candidate.label for candidate in trusting), key=results.mean)
        questions.append((way, FLAT.label))
        if results.mean(best) < (1 - CLOSE) * results.mean(way):
            questions.append((best, way))
        simpler = min(way, FLAT.label, key=results.mean)
    for candidate in adaptive:
        if results.mean(candidate.label) < (1 - CLOSE) * results.mean(simpler):
            questions.append((candidate.label, simpler))
    return any(
        1 - CLEAR_CHANCE <= results.compare(*question).chance <= CLEAR_CHANCE and results.luck(*question) > MAX_LUCK
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
    if trusting:
        way = _best_way(results, trusting)
        categories = results.compare(way.label, FLAT.label)
        least_regret = way if categories.saving > 0 and categories.matters else FLAT
        rivals = [FLAT.label, *(candidate.label for candidate in trusting)]
        simple = leader = by_label[results.learner(least_regret.label, rivals)]
        if leader not in (FLAT, way):
            categories = results.compare(leader.label, FLAT.label)
        verdict = ("flat" if leader == FLAT else "tree") if categories.is_decisive else "cannot tell"
    else:  # the categories change no candidate
        simple = leader = least_regret = FLAT
        verdict = "flat"
        absent = next(iter(same or {}), FLAT.label)
        categories = Difference(absent, FLAT.label, 0.0, 0.0, (0.0, 0.0), 0.0, 0.5, 0.0, 0.0)
    against_flat = categories
    for candidate in adaptive:
        gained = results.compare(candidate.label, simple.label)
        better = candidate if gained.saving > 0 and gained.matters else simple
        if results.learner(better.label, [simple.label, candidate.label]) == candidate.label:
            leader, least_regret = candidate, candidate if gained.saving > 0 else simple
            against_flat = results.compare(candidate.label, FLAT.label)
    return Advice(
        leader=leader,
        least_regret=least_regret,
        verdict=verdict,
        against_flat=against_flat,
        categories=categories,
        candidates=tuple(chosen),
        trusting=tuple(trusting),
        adaptive=tuple(adaptive),
        results=results,
        inspection=inspection,
        same=same or {},
    )


# ---------------------------------------------------------------- the answer in sentences


def _headline(advice: Advice) -> list[str]:
    leader, difference, mean = advice.leader, advice.against_flat, advice.results.mean
    when, run = f"Over {count(advice.horizon, 'decision')}", f"Run {leader.label}: {leader.how}."
    lost = "is expected to lose {} by not knowing the best arm"
    if advice.is_alike:
        how = f"Thompson sampling on all arms at once, which {LEARNS_ALIKE}"
        how = how if leader in advice.adaptive else leader.how
        run = f"Run {leader.label}: {how}. Here the categories make no difference."
    if not advice.is_compared:
        return [run, f"{when}, {leader.label} {lost.format(advice.in_rewards(mean(leader.label)))}."]
    tree, flat = advice.in_rewards(mean(difference.policy)), number(mean(difference.rival))
    both = f"{difference.policy} {lost.format(tree)}, flat TS {flat}"
    sign, word = (1, "saved") if difference.saving > 0 else (-1, "more")
    low, high = sorted(sign * end for end in difference.interval)
    interval = f"(95% interval {number(low)} to {number(high)})"
    saved = f"{number(sign * difference.saving)} {word} {interval}, or {percent(sign * difference.share)}"
    if leader in advice.adaptive:
        return [run, f"{when}, {both}: {saved}."]
    if advice.verdict == "cannot tell":
        bet = f"{leader.label} is the better bet" if leader != FLAT else "Run TS, which is the simpler of the two"
        run = f"The data cannot tell whether the categories pay off. {bet}: {leader.how}."
    if advice.verdict == "flat" and difference.saving <= 0:
        return [run, f"{when}, the categories do not pay off: {both}, {saved}."]
    return [run, f"{when}, {both}: {saved}."]


def _adaptive(advice: Advice) -> list[str]:
    """Say what it means for the categories that ATS is advised, or which simpler policy does as well or better."""
    leader, results, lines = advice.leader, advice.results, []
    for adaptive in advice.adaptive:
        if adaptive != leader:
            lead = results.compare(leader.label, adaptive.label)
            how = "does better" if lead.saving > 0 and lead.matters else "does as well"
            loses = f"would lose {number(results.mean(adaptive.label))}: the simpler {leader.label} {how}"
            lines.append(f"{adaptive.label}, which {LEARNS_ALIKE if advice.is_alike else LEARNS}, {loses}.")
        elif not advice.is_alike:
            other = advice.categories.policy
            pays = {"tree": "Trusting the categories pays off too", "flat": "Trusting the categories does not pay off"}
            pays |= {"cannot tell": "The data cannot tell whether trusting the categories pays off"}
            lines.append(f"{pays[advice.verdict]}: {other}, which does, loses {number(results.mean(other))}.")
    return lines


def _bad_runs(advice: Advice) -> list[str]:
    """Say so where another policy's bad runs are clearly less bad than those of the advised one."""
    results, ours = advice.results, advice.results.bad_run(advice.name)
    safest = min(advice.runs.policies, key=results.bad_run)
    theirs = results.bad_run(safest)
    if theirs >= CLEARLY_SAFER * ours:
        return []
    safer = f"{safest}, whose regret is {number(results.mean(safest))} on average, loses {number(theirs)}"
    return [f"The risk is in the bad runs: in one run of twenty {advice.name} loses {number(ours)} or more; {safer}."]


def _at_the_end(advice: Advice) -> list[str]:
    """Say what is lost per decision at the end of the horizon, and which policy would be ahead later."""
    leader, later, loss = advice.name, advice.overtaken, advice.results.loss
    other = FLAT.label if advice.leader != FLAT else advice.against_flat.policy
    line = f"At the end, {leader} loses {advice.in_rewards(loss(leader))} per decision"
    if later is not None and advice.results.has_stalled(leader):
        line += ", as much as before: it has stopped learning"
    if advice.is_compared:
        line += f"; {other} loses {number(loss(other))}"
    if later is not None:
        ahead = later.policy if later.policy == other else f"{later.policy}, which loses {number(loss(later.policy))},"
        line += f". If that continues, {ahead} will be ahead after about {number(later.at)} decisions"
    lines = [f"{line}."]
    if advice.leader != advice.least_regret:
        lines.append(
            f"Up to then, {advice.least_regret.label} has slightly less regret, but {leader} loses less per decision "
            "at the end, so it is the better choice."
        )
    return lines


def _traffic_warning(advice: Advice) -> list[str]:
    """Warn where most decisions go to a category that is unlikely to hold the best arm."""
    if advice.leader == FLAT or advice.is_alike:
        return []
    row = max(advice.traffic, key=lambda row: float(row[advice.name]))
    best = next((cluster.best for cluster in advice.inspection.clusters if cluster.path == (row.cluster,)), 1.0)
    if row[advice.name] < MIN_TRAFFIC or best >= MAX_CHANCE:
        return []
    holds = f"holds the best arm with probability {chance(best)}"
    holds = "does not hold the best arm" if advice.inspection.worlds == 1 else holds
    return [f"{percent(row[advice.name])} of its decisions are in {row.cluster}, which {holds}."]


def _ahead_from(advice: Advice) -> list[str]:
    if advice.pays_from is not None:
        first = advice.pays_from <= max(advice.horizon // 100, 10)
        since = "from the start" if first else f"after about {number(advice.pays_from)} decisions"
        return [f"{advice.against_flat.policy} is ahead of TS {since}."]
    if advice.is_compared and advice.verdict == "tree" and advice.against_flat.saving > 0:
        return ["These seeds do not show after how many decisions it is ahead; more seeds would."]
    return []


def _alternatives(advice: Advice) -> list[str]:
    """List policies that have even less regret, and those that are about as good."""
    ours = advice.results.mean(advice.name)
    named = {candidate.label for candidate in (advice.leader, FLAT, advice.least_regret, *advice.adaptive)}
    with_tree = {candidate.label for candidate in (*advice.trusting, *advice.adaptive)}
    kinds: dict[str, list[str]] = {
        "Even less regret, without the categories": [],
        "Possibly even less regret (more seeds would show)": [],
        "About as good": [],
    }
    for name in advice.runs.policies:
        ratio = advice.results.mean(name) / ours if ours > 0 else 1.0
        if name not in named and ratio < 1.05:
            kinds[list(kinds)[2 if ratio >= 0.95 else 1 if name in with_tree else 0]].append(name)
    return [f"{words}: {', '.join(names)}." for words, names in kinds.items() if names]


def _equivalent(advice: Advice) -> list[str]:
    """List candidates that are the same policy on this tree."""
    tree = advice.inspection.catalogue.tree
    sizes = [len(arms) for arms in tree.clusters.values()]
    why = ""
    if sizes == [tree.n_arms]:
        why = ", because all arms are in one category"
    elif max(sizes) == 1:
        why = ", because every category has one arm"
    lines = []
    for other in dict.fromkeys(advice.same.values()):
        names = [name for name, kept in advice.same.items() if kept == other]
        are = "is" if len(names) == 1 else "are"
        because = why if other == FLAT.label else ""
        lines.append(f"{' and '.join(names)} {are} the same policy as {other} here{because}.")
    return lines


def _odds(advice: Advice) -> list[str]:
    if not advice.is_compared:
        return []
    difference = advice.against_flat
    line = f"The chance that {difference.policy} loses less than TS on this catalogue is {chance(difference.chance)}."
    if (difference.saving > 0) == (difference.chance > 0.5) or abs(difference.chance - 0.5) < 0.1:
        return [line]
    rare = "it loses much more" if difference.saving < 0 else "it loses much less"
    return [f"{line} In the other worlds {rare}, which decides the average."]


# ---------------------------------------------------------------- what would change the answer


def _less_traffic(advice: Advice) -> list[str]:
    """Find the longest horizon, shorter than the one asked for, at which another policy is clearly better."""
    results, times = advice.results, advice.runs.times
    for at in range(len(times) - 2, -1, -1):
        if times[at] < times[-1] / 100:
            break
        other = min(advice.runs.policies, key=lambda name: results.mean(name, at))
        lead = results.compare(other, advice.name, at)
        if other != advice.name and lead.share > 0.05 and lead.saving > student(len(advice.runs.seeds)) * lead.noise:
            return [f"Less traffic: up to about {number(int(times[at]))} decisions, {other} has less regret."]
    return []


def _more_traffic_or_data(advice: Advice) -> list[str]:
    """Say which policy leads later, and how much more data would settle the verdict.

    The uncertainty falls with the square root of the plays.
    """
    later, difference, lines = advice.overtaken, advice.categories, []
    if later is not None:
        lines.append(f"More traffic: beyond about {number(later.at)} decisions, {later.policy} has less regret.")
    if advice.verdict == "cannot tell":
        times = (1.2816 * difference.sd / max(abs(difference.saving), 1e-12)) ** 2
        if advice.inspection.worlds == 1 or difference.by_seeds > 0.5:
            lines.append("More seeds: most of the uncertainty here is noise of the simulation.")
        elif times > 100:
            lines.append("More data would hardly help: the two are about equally good here.")
        else:
            lines.append(f"More data: about {max(times, 1.5):.2g} times the plays would settle it.")
    return lines


def _other_categories(advice: Advice) -> list[str]:
    """Say how better or worse categories would change the answer, and which arms to move."""
    inspection, lines = advice.inspection, []
    total = 1 - inspection.within.value
    if advice.verdict != "tree" and total < 0.5:
        lines.append(
            f"Better categories: these explain {percent(total)} of the variance of the means; a random grouping would "
            f"explain {percent(sum(inspection.levels['by_chance']))}. A tree pays off when good arms share a category."
        )
    if advice.verdict == "tree" and advice.leader not in advice.adaptive:
        used = inspection.levels["share"][: advice.leader.levels]
        levels = "level 1" if len(used) == 1 else f"levels 1 to {len(used)}"
        lines.append(
            f"Less informative categories: this relies on {levels} explaining {percent(sum(used))} of the variance."
        )
    if len(inspection.misplaced):
        arms = inspection.misplaced["arm"]
        more = f" and {len(arms) - 3:,} more" if len(arms) > 3 else ""
        lines.append(f"Moving arms that look misplaced: {', '.join(map(str, arms[:3]))}{more} (see inspect).")
    return lines
