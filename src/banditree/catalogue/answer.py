"""The advice in words: what to run, what it saves, what it still loses at the end, and what would change that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from banditree.catalogue.candidates import FLAT, WITH_DEPTH, Candidate
from banditree.catalogue.comparison import Difference, OnWorlds, Overtaking
from banditree.catalogue.inspection import Inspection
from banditree.catalogue.sentences import chance, percent, short
from banditree.output.tables import Table
from banditree.output.words import count
from banditree.simulation.statistics import student

MOST_TRAFFIC = 0.5  # share of decisions in one category that is worth a word where the best arm is elsewhere
UNLIKELY = 0.05  # how likely a category holds the best arm, where it is taken to be elsewhere


@dataclass(frozen=True)
class Case:
    """What the sentences are made of."""

    leader: Candidate  # what is advised
    before: Candidate  # what would be, if what is lost per decision at the end did not count
    verdict: str
    difference: Difference  # a way down the tree against flat
    pays_from: int | None
    overtaken: Overtaking | None
    found: OnWorlds
    inspection: Inspection
    traffic: Table
    same: Mapping[str, str]
    with_tree: frozenset[str]  # candidates to which the categories make a difference

    @property
    def horizon(self) -> int:
        return int(self.found.runs.times[-1])

    @property
    def alike(self) -> bool:
        """Whether no candidate is changed by the categories."""
        return self.difference.policy not in self.found.runs.policies

    def loss(self, policy: str) -> str:
        """What a policy loses per decision at the end."""
        return short(float(self.found.losses(policy).mean()))


def sentences(case: Case) -> list[str]:
    """What to run, and what it saves."""
    lines = [*_headline(case), *_at_the_end(case), *_where(case), *_since(case), *_others(case), *_same(case)]
    return lines if case.alike else [*lines, *_odds(case)]


def _headline(case: Case) -> list[str]:
    leader, difference, found = case.leader, case.difference, case.found
    when, run = f"Over {count(case.horizon, 'decision')}", f"Run {leader.label}: {leader.how}."
    lost = "is expected to lose {} rewards to not knowing the best arm"
    if case.alike:
        return [
            f"{run[:-1]}. Here the categories make no difference.",
            f"{when} {leader.label} {lost.format(short(found.mean(leader.label)))}.",
        ]
    tree, flat = short(found.mean(difference.policy)), short(found.mean(difference.rival))
    both = f"{difference.policy} {lost.format(tree)}, a flat TS {flat}"
    low, high = difference.interval
    if difference.saving > 0:
        interval = f"(95% interval {short(low)} to {short(high)})"
        saved = f"{short(difference.saving)} saved {interval}, or {percent(difference.share)}"
    else:
        interval = f"(95% interval {short(-high)} to {short(-low)})"
        saved = f"{short(-difference.saving)} more {interval}, or {percent(-difference.share)}"
    if case.verdict == "cannot tell":
        bet = f"{leader.label} is the better bet" if leader != FLAT else "Run TS, which is the simpler of the two"
        run = f"The data cannot tell whether the categories pay. {bet}: {leader.how}."
    if case.verdict == "flat" and difference.saving <= 0:
        return [run, f"{when} the categories do not pay: {both}, {saved}."]
    return [run, f"{when} {both}: {saved}."]


def _at_the_end(case: Case) -> list[str]:
    """What is lost per decision at the end of the horizon, and who is ahead later."""
    leader, later = case.leader.label, case.overtaken
    other = FLAT.label if case.leader != FLAT else case.difference.policy
    line = f"At the end {leader} loses {case.loss(leader)} rewards per decision"
    if later is not None and case.found.stalled(leader):
        line += ", as many as before: it has stopped learning"
    if not case.alike:
        line += f"; {other} loses {case.loss(other)}"
    if later is not None:
        known = later.policy if later.policy == other else f"{later.policy}, which loses {case.loss(later.policy)},"
        line += f". If that goes on, {known} is ahead from about {short(later.at)} decisions on"
    lines = [f"{line}."]
    if case.leader != case.before:
        lines.append(
            f"By then {case.before.label} has less regret, but so little less that {leader}, which loses less per "
            "decision at the end, is the better choice."
        )
    return lines


def _where(case: Case) -> list[str]:
    """A warning where most decisions go to a category that is unlikely to hold the best arm."""
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


def _since(case: Case) -> list[str]:
    if case.alike:
        return []
    if case.pays_from is not None:
        first = case.pays_from <= max(case.horizon // 100, 10)
        since = "the start" if first else f"about {short(case.pays_from)} decisions on"
        return [f"{case.difference.policy} is ahead of TS from {since}."]
    if case.verdict == "tree" and case.difference.saving > 0:
        return ["From how many decisions on it is ahead, these seeds do not tell; more seeds would."]
    return []


def _others(case: Case) -> list[str]:
    """Policies that are better still, and those that are about as good."""
    ours = case.found.mean(case.leader.label)
    ratios = {
        name: case.found.mean(name) / ours if ours > 0 else 1.0
        for name in case.found.runs.policies
        if name not in (case.leader.label, FLAT.label, case.before.label)
    }
    kinds = {
        "Less regret still, without the categories": [
            name for name, ratio in ratios.items() if ratio < 0.95 and name not in case.with_tree
        ],
        "Perhaps less regret still, which more seeds would tell": [
            name for name, ratio in ratios.items() if ratio < 0.95 and name in case.with_tree
        ],
        "About as good": [name for name, ratio in ratios.items() if 0.95 <= ratio < 1.05],
    }
    return [f"{words}: {', '.join(names)}." for words, names in kinds.items() if names]


def _same(case: Case) -> list[str]:
    """Candidates that are one policy on this tree."""
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


# What would change it


def changes(case: Case) -> list[str]:
    """What would change the answer."""
    inspection = case.inspection
    lines = _less_traffic(case)
    if case.overtaken is not None:
        at = short(case.overtaken.at)
        lines.append(f"More traffic: for more than about {at} decisions {case.overtaken.policy} has less regret.")
    if case.verdict == "cannot tell":
        lines.append(_more_data(case.difference, known=inspection.worlds == 1))
    total = 1 - inspection.within.value
    if case.verdict != "tree" and total < 0.5:
        lines.append(
            f"Better categories: these explain {percent(total)} of the variance of the means, grouping at random would "
            f"explain {percent(sum(inspection.levels['by_chance']))}. A tree pays when good arms share a category."
        )
    if case.verdict == "tree":
        used = inspection.levels["share"][: case.leader.depth if case.leader.policy in WITH_DEPTH else 1]
        levels = "level 1" if len(used) == 1 else f"levels 1 to {len(used)}"
        lines.append(
            f"Categories that mean less: this counts on {levels} explaining {percent(sum(used))} of the variance."
        )
    if len(inspection.misplaced):
        arms = inspection.misplaced["arm"]
        more = f" and {len(arms) - 3:,} more" if len(arms) > 3 else ""
        names = ", ".join(map(str, arms[:3]))
        lines.append(f"Moving arms that look misplaced: {names}{more} (see inspect).")
    return lines or ["Nothing that the simulation shows: with less traffic the same policy leads."]


def _less_traffic(case: Case) -> list[str]:
    """The longest shorter horizon at which another policy is clearly better."""
    found, leader = case.found, case.leader.label
    times = found.runs.times
    for at in range(len(times) - 2, -1, -1):
        if times[at] < times[-1] / 100:
            break
        other = min(found.runs.policies, key=lambda name: found.mean(name, at))
        lead = found.compare(other, leader, at)
        if other != leader and lead.share > 0.05 and lead.saving > student(len(found.runs.seeds)) * lead.noise:
            return [f"Less traffic: for up to about {short(int(times[at]))} decisions {other} has less regret."]
    return []


def _more_data(difference: Difference, *, known: bool) -> str:
    """How much more would have to be known, the uncertainty falling with the root of the plays."""
    if known or difference.by_seeds > 0.5:
        return "More seeds: most of what is open here is the noise of the simulation."
    times = (1.2816 * difference.sd / max(abs(difference.saving), 1e-12)) ** 2
    if times > 100:
        return "More data will hardly tell: the two are about equally good here."
    return f"More data: about {max(times, 1.5):.2g} times the plays would tell."
