"""Write the advice in sentences: what to run, what it saves, what it loses at the end, what would change the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from banditree.catalogue.candidates import FLAT, LEARNS, LEARNS_ALIKE, Candidate
from banditree.catalogue.comparison import Difference, Overtaking, WorldRuns
from banditree.catalogue.inspection import Inspection
from banditree.catalogue.sentences import chance, percent, rewards, short
from banditree.report.intervals import student
from banditree.report.tables import Table
from banditree.report.words import count

MOST_TRAFFIC = 0.5  # warn if at least this share of decisions goes to a category that is unlikely to hold the best arm
UNLIKELY = 0.05  # a category is unlikely to hold the best arm below this probability


@dataclass(frozen=True)
class Case:
    """The findings that the sentences describe."""

    leader: Candidate  # the advised policy
    least_regret: Candidate  # what would be advised if losses at the end did not count
    verdict: str
    difference: Difference  # a policy that uses the tree, compared with flat TS; the advised one if it uses the tree
    categories: Difference  # a policy that trusts the tree, compared with flat TS: the verdict is about this
    adaptive: tuple[Candidate, ...]  # candidates that learn how far to trust the tree
    pays_from: int | None
    overtaken: Overtaking | None
    found: WorldRuns
    inspection: Inspection
    traffic: Table
    same: Mapping[str, str]
    with_tree: frozenset[str]  # candidates whose decisions depend on the categories

    @property
    def horizon(self) -> int:
        return int(self.found.runs.times[-1])

    @property
    def alike(self) -> bool:
        """Whether the categories change no candidate."""
        return not self.ran(self.categories.policy)

    def ran(self, policy: str) -> bool:
        """Whether this is a policy other than flat TS that was simulated."""
        return policy != FLAT.label and policy in self.found.runs.policies

    def loss(self, policy: str) -> str:
        """Format what a policy loses per decision at the end."""
        return short(self.losses(policy))

    def losses(self, policy: str) -> float:
        """The mean reward that a policy loses per decision at the end."""
        return float(self.found.losses(policy).mean())

    def in_rewards(self, amount: float) -> str:
        """Format an amount of reward with its unit."""
        return rewards(amount, self.inspection.catalogue)


def sentences(case: Case) -> list[str]:
    """Say what to run, and what it saves."""
    lines = [*_headline(case), *_adaptive(case), *_at_the_end(case), *_traffic_warning(case)]
    lines += [*_ahead_from(case), *_alternatives(case), *_equivalent(case)]
    return [*lines, *_odds(case)] if case.ran(case.difference.policy) else lines


def _headline(case: Case) -> list[str]:
    leader, difference, found = case.leader, case.difference, case.found
    when, run = f"Over {count(case.horizon, 'decision')}", f"Run {leader.label}: {leader.how}."
    lost = "is expected to lose {} by not knowing the best arm"
    if case.alike:
        how = f"Thompson sampling on all arms at once, which {LEARNS_ALIKE}" if leader in case.adaptive else leader.how
        run = f"Run {leader.label}: {how}. Here the categories make no difference."
    if not case.ran(difference.policy):
        return [run, f"{when}, {leader.label} {lost.format(case.in_rewards(found.mean(leader.label)))}."]
    tree, flat = case.in_rewards(found.mean(difference.policy)), short(found.mean(difference.rival))
    both = f"{difference.policy} {lost.format(tree)}, flat TS {flat}"
    low, high = difference.interval
    if difference.saving > 0:
        interval = f"(95% interval {short(low)} to {short(high)})"
        saved = f"{short(difference.saving)} saved {interval}, or {percent(difference.share)}"
    else:
        interval = f"(95% interval {short(-high)} to {short(-low)})"
        saved = f"{short(-difference.saving)} more {interval}, or {percent(-difference.share)}"
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
    for each in case.adaptive:
        ours = case.found.mean(each.label)
        if each != case.leader:
            lead = case.found.compare(case.leader.label, each.label)
            how = "does better" if lead.saving > 0 and lead.matters else "does as well"
            learns = LEARNS_ALIKE if case.alike else LEARNS
            lines.append(
                f"{each.label}, which {learns}, would lose {short(ours)}: the simpler {case.leader.label} {how}."
            )
            continue
        if case.alike:
            continue
        other = case.categories.policy
        lost = f"{other}, which does, loses {short(case.found.mean(other))}"
        lines.append(
            {
                "tree": f"Trusting the categories pays off too: {lost}.",
                "flat": f"Trusting the categories does not pay off: {lost}.",
            }.get(case.verdict, f"The data cannot tell whether trusting the categories pays off: {lost}.")
        )
    return lines


def _at_the_end(case: Case) -> list[str]:
    """Say what is lost per decision at the end of the horizon, and which policy would be ahead later."""
    leader, later = case.leader.label, case.overtaken
    other = FLAT.label if case.leader != FLAT else case.difference.policy
    line = f"At the end, {leader} loses {case.in_rewards(case.losses(leader))} per decision"
    if later is not None and case.found.stalled(leader):
        line += ", as much as before: it has stopped learning"
    if case.ran(case.difference.policy):
        line += f"; {other} loses {case.loss(other)}"
    if later is not None:
        known = later.policy if later.policy == other else f"{later.policy}, which loses {case.loss(later.policy)},"
        line += f". If that continues, {known} will be ahead after about {short(later.at)} decisions"
    lines = [f"{line}."]
    if case.leader != case.least_regret:
        lines.append(
            f"Up to then, {case.least_regret.label} has slightly less regret, but {leader} loses less per decision at "
            "the end, so it is the better choice."
        )
    return lines


def _traffic_warning(case: Case) -> list[str]:
    """Warn where most decisions go to a category that is unlikely to hold the best arm."""
    if case.leader == FLAT or case.alike:
        return []
    row = max(case.traffic, key=lambda row: float(row[case.leader.label]))
    share = float(row[case.leader.label])
    best = next((each.best for each in case.inspection.clusters if each.path == (row.cluster,)), 1.0)
    if share < MOST_TRAFFIC or best >= UNLIKELY:
        return []
    holds = "holds the best arm with probability " + chance(best)
    holds = "does not hold the best arm" if case.inspection.worlds == 1 else holds
    return [f"{percent(share)} of its decisions are in {row.cluster}, which {holds}."]


def _ahead_from(case: Case) -> list[str]:
    if not case.ran(case.difference.policy):
        return []
    if case.pays_from is not None:
        first = case.pays_from <= max(case.horizon // 100, 10)
        since = "from the start" if first else f"after about {short(case.pays_from)} decisions"
        return [f"{case.difference.policy} is ahead of TS {since}."]
    if case.verdict == "tree" and case.difference.saving > 0:
        return ["These seeds do not show after how many decisions it is ahead; more seeds would."]
    return []


def _alternatives(case: Case) -> list[str]:
    """List policies that have even less regret, and those that are about as good."""
    ours = case.found.mean(case.leader.label)
    ratios = {
        name: case.found.mean(name) / ours if ours > 0 else 1.0
        for name in case.found.runs.policies
        if name not in (case.leader.label, FLAT.label, case.least_regret.label, *(each.label for each in case.adaptive))
    }
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
    difference = case.difference
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
        at = short(case.overtaken.at)
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
    found, leader = case.found, case.leader.label
    times = found.runs.times
    for at in range(len(times) - 2, -1, -1):
        if times[at] < times[-1] / 100:
            break
        other = min(found.runs.policies, key=lambda name: found.mean(name, at))
        lead = found.compare(other, leader, at)
        if other != leader and lead.share > 0.05 and lead.saving > student(len(found.runs.seeds)) * lead.noise:
            return [f"Less traffic: up to about {short(int(times[at]))} decisions, {other} has less regret."]
    return []


def _more_data(difference: Difference, *, known: bool) -> str:
    """Say how much more data would settle it; the uncertainty falls with the square root of the plays."""
    if known or difference.by_seeds > 0.5:
        return "More seeds: most of the uncertainty here is noise of the simulation."
    times = (1.2816 * difference.sd / max(abs(difference.saving), 1e-12)) ** 2
    if times > 100:
        return "More data would hardly help: the two are about equally good here."
    return f"More data: about {max(times, 1.5):.2g} times the plays would settle it."
