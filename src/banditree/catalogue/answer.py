"""Write the advice in sentences: what to run, what it saves, what it loses at the end, what would change the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from banditree.catalogue.candidates import FLAT, LEARNS, LEARNS_ALIKE, Candidate
from banditree.catalogue.comparison import Difference, Overtaking, WorldRuns
from banditree.catalogue.inspection import Inspection
from banditree.report.intervals import student
from banditree.report.tables import Table
from banditree.report.words import chance, count, number, percent

MIN_TRAFFIC = 0.5  # warn if at least this share of decisions goes to a category that is unlikely to hold the best arm
CLEARLY_SAFER = 0.9  # another policy is safer if its bad runs lose less than this share
MAX_CHANCE = 0.05  # a category is unlikely to hold the best arm below this probability


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """The findings that the sentences describe."""

    leader: Candidate  # the advised policy
    least_regret: Candidate  # what would be advised if losses at the end did not count
    verdict: str  # does it pay off to trust the categories: "tree", "flat", or "cannot tell"
    against_flat: Difference  # the advised policy, or else the best that uses the tree, compared with TS
    categories: Difference  # a policy that trusts the tree, compared with flat TS: the verdict is about this
    adaptive: tuple[Candidate, ...]  # candidates that learn how far to trust the tree
    pays_from: int | None  # decisions after which that policy stays ahead; None if it is not ahead at the horizon
    overtaken: Overtaking | None  # which policy would be ahead with more decisions, and from when
    results: WorldRuns
    inspection: Inspection
    traffic: Table
    same: Mapping[str, str]  # {candidate that was not simulated: the equivalent candidate that was}
    with_tree: frozenset[str]  # candidates whose decisions depend on the categories

    @property
    def horizon(self) -> int:
        return int(self.results.runs.times[-1])

    @property
    def is_alike(self) -> bool:
        """Whether the categories change no candidate."""
        return not self.is_simulated(self.categories.policy)

    def is_simulated(self, policy: str) -> bool:
        """Whether this is a policy other than flat TS that was simulated."""
        return policy != FLAT.label and policy in self.results.runs.policies

    def loss(self, policy: str) -> str:
        """Format what a policy loses per decision at the end."""
        return number(self.losses(policy))

    def losses(self, policy: str) -> float:
        """The mean reward that a policy loses per decision at the end."""
        return float(self.results.losses(policy).mean())

    def in_rewards(self, amount: float) -> str:
        """Format an amount of reward with its unit."""
        return self.inspection.catalogue.rewards(amount)


def sentences(case: Case) -> list[str]:
    """Say what to run, and what it saves."""
    lines = [*_headline(case), *_adaptive(case), *_bad_runs(case), *_at_the_end(case), *_traffic_warning(case)]
    lines += [*_ahead_from(case), *_alternatives(case), *_equivalent(case)]
    return [*lines, *_odds(case)] if case.is_simulated(case.against_flat.policy) else lines


def _headline(case: Case) -> list[str]:
    leader, difference, results = case.leader, case.against_flat, case.results
    when, run = f"Over {count(case.horizon, 'decision')}", f"Run {leader.label}: {leader.how}."
    lost = "is expected to lose {} by not knowing the best arm"
    if case.is_alike:
        how = f"Thompson sampling on all arms at once, which {LEARNS_ALIKE}" if leader in case.adaptive else leader.how
        run = f"Run {leader.label}: {how}. Here the categories make no difference."
    if not case.is_simulated(difference.policy):
        return [run, f"{when}, {leader.label} {lost.format(case.in_rewards(results.mean(leader.label)))}."]
    tree, flat = case.in_rewards(results.mean(difference.policy)), number(results.mean(difference.rival))
    both = f"{difference.policy} {lost.format(tree)}, flat TS {flat}"
    low, high = difference.interval
    if difference.saving > 0:
        interval = f"(95% interval {number(low)} to {number(high)})"
        saved = f"{number(difference.saving)} saved {interval}, or {percent(difference.share)}"
    else:
        interval = f"(95% interval {number(-high)} to {number(-low)})"
        saved = f"{number(-difference.saving)} more {interval}, or {percent(-difference.share)}"
    if leader in case.adaptive:
        return [run, f"{when}, {both}: {saved}."]
    if case.verdict == "cannot tell":
        bet = f"{leader.label} is the better bet" if leader != FLAT else "Run TS, which is the simpler of the two"
        run = f"The data cannot tell whether the categories pay off. {bet}: {leader.how}."
    if case.verdict == "flat" and difference.saving <= 0:
        return [run, f"{when}, the categories do not pay off: {both}, {saved}."]
    return [run, f"{when}, {both}: {saved}."]


def _adaptive(case: Case) -> list[str]:
    """Say what it means for the categories that ATS is advised, or which simpler policy does as well or better."""
    lines = []
    for adaptive in case.adaptive:
        ours = case.results.mean(adaptive.label)
        if adaptive != case.leader:
            lead = case.results.compare(case.leader.label, adaptive.label)
            how = "does better" if lead.saving > 0 and lead.matters else "does as well"
            learns = LEARNS_ALIKE if case.is_alike else LEARNS
            lines.append(
                f"{adaptive.label}, which {learns}, would lose {number(ours)}: the simpler {case.leader.label} {how}."
            )
            continue
        if case.is_alike:
            continue
        other = case.categories.policy
        lost = f"{other}, which does, loses {number(case.results.mean(other))}"
        lines.append(
            {
                "tree": f"Trusting the categories pays off too: {lost}.",
                "flat": f"Trusting the categories does not pay off: {lost}.",
            }.get(case.verdict, f"The data cannot tell whether trusting the categories pays off: {lost}.")
        )
    return lines


def _bad_runs(case: Case) -> list[str]:
    """Say so where another policy's bad runs are clearly less bad than those of the advised one."""
    leader, results = case.leader.label, case.results
    ours = results.bad_run(leader)
    others = [candidate for candidate in results.runs.policies if candidate != leader]
    safest = min(others, key=results.bad_run, default=leader)
    if results.bad_run(safest) >= CLEARLY_SAFER * ours:
        return []
    safer = (
        f"{safest}, whose regret is {number(results.mean(safest))} on average, loses {number(results.bad_run(safest))}"
    )
    return [f"The risk is in the bad runs: in one run of twenty {leader} loses {number(ours)} or more; {safer}."]


def _at_the_end(case: Case) -> list[str]:
    """Say what is lost per decision at the end of the horizon, and which policy would be ahead later."""
    leader, later = case.leader.label, case.overtaken
    other = FLAT.label if case.leader != FLAT else case.against_flat.policy
    line = f"At the end, {leader} loses {case.in_rewards(case.losses(leader))} per decision"
    if later is not None and case.results.has_stalled(leader):
        line += ", as much as before: it has stopped learning"
    if case.is_simulated(case.against_flat.policy):
        line += f"; {other} loses {case.loss(other)}"
    if later is not None:
        known = later.policy if later.policy == other else f"{later.policy}, which loses {case.loss(later.policy)},"
        line += f". If that continues, {known} will be ahead after about {number(later.at)} decisions"
    lines = [f"{line}."]
    if case.leader != case.least_regret:
        lines.append(
            f"Up to then, {case.least_regret.label} has slightly less regret, but {leader} loses less per decision at "
            "the end, so it is the better choice."
        )
    return lines


def _traffic_warning(case: Case) -> list[str]:
    """Warn where most decisions go to a category that is unlikely to hold the best arm."""
    if case.leader == FLAT or case.is_alike:
        return []
    row = max(case.traffic, key=lambda row: float(row[case.leader.label]))
    share = float(row[case.leader.label])
    best = next((cluster.best for cluster in case.inspection.clusters if cluster.path == (row.cluster,)), 1.0)
    if share < MIN_TRAFFIC or best >= MAX_CHANCE:
        return []
    holds = "holds the best arm with probability " + chance(best)
    holds = "does not hold the best arm" if case.inspection.worlds == 1 else holds
    return [f"{percent(share)} of its decisions are in {row.cluster}, which {holds}."]


def _ahead_from(case: Case) -> list[str]:
    if not case.is_simulated(case.against_flat.policy):
        return []
    if case.pays_from is not None:
        first = case.pays_from <= max(case.horizon // 100, 10)
        since = "from the start" if first else f"after about {number(case.pays_from)} decisions"
        return [f"{case.against_flat.policy} is ahead of TS {since}."]
    if case.verdict == "tree" and case.against_flat.saving > 0:
        return ["These seeds do not show after how many decisions it is ahead; more seeds would."]
    return []


def _alternatives(case: Case) -> list[str]:
    """List policies that have even less regret, and those that are about as good."""
    ours = case.results.mean(case.leader.label)
    known = {candidate.label for candidate in (case.leader, FLAT, case.least_regret, *case.adaptive)}
    others = [name for name in case.results.runs.policies if name not in known]
    ratios = {name: case.results.mean(name) / ours if ours > 0 else 1.0 for name in others}
    kinds = {
        "Even less regret, without the categories": [
            name for name, ratio in ratios.items() if ratio < 0.95 and name not in case.with_tree
        ],
        "Possibly even less regret (more seeds would show)": [
            name for name, ratio in ratios.items() if ratio < 0.95 and name in case.with_tree
        ],
        "About as good": [name for name, ratio in ratios.items() if 0.95 <= ratio < 1.05],
    }
    return [f"{words}: {', '.join(names)}." for words, names in kinds.items() if names]


def _equivalent(case: Case) -> list[str]:
    """List candidates that are the same policy on this tree."""
    tree = case.inspection.catalogue.tree
    sizes = [len(arms) for arms in tree.clusters.values()]
    why = ""
    if len(sizes) == 1 and sizes[0] == tree.n_arms:
        why = ", because all arms are in one category"
    elif max(sizes) == 1:
        why = ", because every category has one arm"
    lines = []
    for other in dict.fromkeys(case.same.values()):
        names = [name for name, kept in case.same.items() if kept == other]
        are = "is" if len(names) == 1 else "are"
        because = why if other == FLAT.label else ""
        lines.append(f"{' and '.join(names)} {are} the same policy as {other} here{because}.")
    return lines


def _odds(case: Case) -> list[str]:
    difference = case.against_flat
    line = f"The chance that {difference.policy} loses less than TS on this catalogue is {chance(difference.chance)}."
    if (difference.saving > 0) == (difference.chance > 0.5) or abs(difference.chance - 0.5) < 0.1:
        return [line]
    rare = "it loses much more" if difference.saving < 0 else "it loses much less"
    return [f"{line} In the other worlds {rare}, which decides the average."]


# What would change the answer


def changes(case: Case) -> list[str]:
    """Say what would change the answer."""
    inspection = case.inspection
    lines = _less_traffic(case)
    if case.overtaken is not None:
        at = number(case.overtaken.at)
        lines.append(f"More traffic: beyond about {at} decisions, {case.overtaken.policy} has less regret.")
    if case.verdict == "cannot tell":
        lines.append(_more_data(case.categories, known=inspection.worlds == 1))
    total = 1 - inspection.within.value
    if case.verdict != "tree" and total < 0.5:
        lines.append(
            f"Better categories: these explain {percent(total)} of the variance of the means; a random grouping would "
            f"explain {percent(sum(inspection.levels['by_chance']))}. A tree pays off when good arms share a category."
        )
    if case.verdict == "tree" and case.leader not in case.adaptive:
        used = inspection.levels["share"][: case.leader.levels]
        levels = "level 1" if len(used) == 1 else f"levels 1 to {len(used)}"
        lines.append(
            f"Less informative categories: this relies on {levels} explaining {percent(sum(used))} of the variance."
        )
    if len(inspection.misplaced):
        arms = inspection.misplaced["arm"]
        more = f" and {len(arms) - 3:,} more" if len(arms) > 3 else ""
        names = ", ".join(map(str, arms[:3]))
        lines.append(f"Moving arms that look misplaced: {names}{more} (see inspect).")
    return lines or ["Nothing that the simulation shows: with less traffic, the same policy leads."]


def _less_traffic(case: Case) -> list[str]:
    """Find the longest horizon, shorter than the one asked for, at which another policy is clearly better."""
    results, leader = case.results, case.leader.label
    times = results.runs.times
    for at in range(len(times) - 2, -1, -1):
        if times[at] < times[-1] / 100:
            break
        other = min(results.runs.policies, key=lambda name: results.mean(name, at))
        lead = results.compare(other, leader, at)
        if other != leader and lead.share > 0.05 and lead.saving > student(len(results.runs.seeds)) * lead.noise:
            return [f"Less traffic: up to about {number(int(times[at]))} decisions, {other} has less regret."]
    return []


def _more_data(difference: Difference, *, known: bool) -> str:
    """Say how much more data would settle it; the uncertainty falls with the square root of the plays."""
    if known or difference.by_seeds > 0.5:
        return "More seeds: most of the uncertainty here is noise of the simulation."
    times = (1.2816 * difference.sd / max(abs(difference.saving), 1e-12)) ** 2
    if times > 100:
        return "More data would hardly help: the two are about equally good here."
    return f"More data: about {max(times, 1.5):.2g} times the plays would settle it."
