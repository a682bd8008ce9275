"""Which policy to run on a catalogue, what it saves, and what would change the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import candidates, playing
from banditree.catalogue.candidates import FLAT, Candidate, Named
from banditree.catalogue.inspection import Inspection, inspect
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.plain import plain
from banditree.catalogue.simulation import default_seeds, traffic
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.output.tables import Table
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import LONGEST
from banditree.simulation.simulator import simulate as run
from banditree.simulation.statistics import chance_below, student

Floats = NDArray[np.float64]
SURE = 0.9  # how likely one policy must be better for the data to tell
SMALL = 0.02  # a saving below this share, that the data cannot tell from none, is not worth a tree, nor a deeper one
AGAIN = " again"  # the second run of a policy in the same world


@dataclass(frozen=True)
class Difference:
    """How much less regret one policy has than another at the horizon, over the worlds that the data allow."""

    policy: str
    rival: str
    saving: float  # expected
    sd: float  # of the expected saving in one world: what is not known is which world it is
    interval: tuple[float, float]  # 95%, of the same
    share: float  # the saving as a share of the rival's regret
    chance: float  # that the policy is better in the world there is
    noise: float  # standard error of the saving, from the luck of the simulation
    by_seeds: float  # the share of the interval's variance that more seeds would take away

    @property
    def told(self) -> bool:
        """Whether the data tell which of the two is better."""
        return max(self.chance, 1 - self.chance) >= SURE

    @property
    def matters(self) -> bool:
        """Whether there is a difference to speak of: the data tell it, or it is not small."""
        return self.told or abs(self.share) >= SMALL


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What `advise` answers. ``print(advice)`` shows the sentences, ``advice.to_dict()`` is for machines."""

    policy: str  # the class to run: TS, TSC, HTS, ...
    depth: int | None  # of the tree, where the class has a choice
    verdict: str  # "tree", "flat", or "cannot tell"
    code: str  # how to build the policy
    horizon: int
    against_flat: Difference  # the best way down the tree against TS
    pays_from: int | None  # decisions after which that way is ahead for good; None where it is not by the horizon
    sentences: tuple[str, ...]  # the answer in words
    changes: tuple[str, ...]  # what would change it
    table: Table  # policy, regret, interval, chance of being the best
    inspection: Inspection
    runs: Runs  # a row a world: the mean of the policy's two runs in it
    traffic: Table

    @property
    def name(self) -> str:
        return Candidate(self.policy, self.depth).name

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings; None for what is not a number."""
        names = ("policy", "depth", "verdict", "code", "horizon", "against_flat", "pays_from", "sentences", "changes")
        found = {name: getattr(self, name) for name in names}
        curves = {name: self.runs.regret[name].mean(axis=0) for name in self.table["policy"]}
        found |= {"policies": self.table, "seeds": len(self.runs.seeds), "times": self.runs.times, "regret": curves}
        converted: dict[str, Any] = plain(found | {"traffic": self.traffic}) | {"inspection": self.inspection.to_dict()}
        return converted

    def __str__(self) -> str:
        return "\n".join([*self.sentences, "", "What would change this:", *(f"- {line}" for line in self.changes)])

    __repr__ = __str__


def advise(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: Named | None = None,
    seeds: int | None = None,
    rng: Any = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Advice:
    """Whether the categories pay for ``horizon`` decisions, and which policy to run.

    Simulates every candidate twice in each of ``seeds`` worlds that the data allow; the two runs tell the luck of a run
    from what is not known of the world. The advice is flat TS or the best way down the tree, whichever has the least
    expected regret. Where each of two is at least 10% likely to be the better one, the data cannot tell, and the advice
    says so; if besides they are within 2% of each other, it is the simpler: flat, or of two ways down the tree the one
    named first in ``policies``, where the simpler come first by default.

    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": [f"s{i}" for i in range(20)], "hats": [f"h{i}" for i in range(5)]})
    >>> catalogue = Catalogue(tree, means=[0.1] * 20 + [0.4, 0.45, 0.5, 0.45, 0.4])
    >>> advice = advise(catalogue, horizon=2000, seeds=10)
    >>> advice.policy, advice.verdict
    ('TSC', 'tree')
    """
    horizon = whole("horizon", horizon, 1, LONGEST, why="how many decisions")
    tree = tree_of(catalogue)
    if tree.depth == 0:
        raise InvalidValue("this catalogue has no categories, so there is nothing to advise on; name path columns")
    chosen = candidates.for_tree(tree) if policies is None else candidates.named(policies, tree)
    if FLAT not in chosen:
        chosen = [FLAT, *chosen]
    if not any(candidate.uses_tree for candidate in chosen):
        given = ", ".join(candidate.name for candidate in chosen)
        raise InvalidValue(f"none of the policies uses the tree: {given}; give one that does as well, such as TSC")
    seeds = (
        default_seeds(2 * horizon * len(chosen)) if seeds is None else whole("seeds", seeds, 4, why="how many worlds")
    )
    runs = run(
        {each.name + tail: playing.factory(each, catalogue) for each in chosen for tail in ("", AGAIN)},
        catalogue.world(),
        horizon=horizon,
        seeds=seeds,
        rng=rng,
        checkpoints=_checkpoints(horizon),
        jobs=jobs,
        progress=progress,
    )
    return weigh(
        catalogue, chosen, _as_pairs(runs, chosen, one_world=catalogue.means is not None), inspect(catalogue, rng=rng)
    )


def _checkpoints(horizon: int) -> list[int]:
    """Dense early, where policies part, and even later, where curves are read."""
    early = np.geomspace(min(10, horizon), horizon, 40)
    even = np.linspace(horizon / 40, horizon, 40)
    return [int(time) for time in np.unique(np.concatenate([early, even]).astype(int).clip(1))]


@dataclass(frozen=True)
class Pairs:
    """Two runs of every policy in every world."""

    runs: Runs  # the mean of the two
    one_world: bool  # means are known
    regret: dict[str, Floats]  # {policy: (worlds, 2, times)}

    def compare(self, policy: str, rival: str, at: int = -1) -> Difference:
        """How much less regret ``policy`` has.

        The two runs share the world and nothing else, so that the covariance of their differences is the variance
        over worlds of the expected difference: luck has no part in it. One standard error is added to the covariance,
        which few worlds may understate. Where means are known all worlds are the same.
        """
        saved = (self.regret[rival] - self.regret[policy])[:, :, at]  # (worlds, 2)
        mean = float(saved.mean())
        noise = float(saved.mean(axis=1).std(ddof=1)) / math.sqrt(len(saved))
        one, shared, _, two = np.cov(saved.T).ravel().tolist()
        among_worlds = 0.0 if self.one_world else max(shared, 0.0)
        unsure = 0.0 if self.one_world else math.sqrt((one * two + shared**2) / (len(saved) - 1))
        sd = math.sqrt(among_worlds + unsure + noise**2)
        chance = chance_below(mean / sd, len(saved)) if sd > 0 else 0.5 + 0.5 * np.sign(mean)
        reach = student(len(saved)) * sd
        lost = float(self.regret[rival][:, :, at].mean())
        return Difference(
            policy=policy,
            rival=rival,
            saving=mean,
            sd=sd,
            interval=(mean - reach, mean + reach),
            share=mean / lost if lost > 0 else 0.0,
            chance=float(chance),
            noise=noise,
            by_seeds=1 - among_worlds / sd**2 if sd > 0 else 1.0,
        )


def _as_pairs(runs: Runs, chosen: list[Candidate], *, one_world: bool) -> Pairs:
    names = [candidate.name for candidate in chosen]

    def both(name: str) -> tuple[Any, Any]:
        return name, name + AGAIN

    regret = {name: np.stack([runs.regret[each] for each in both(name)], axis=1) for name in names}
    together = Runs(
        times=runs.times,
        seeds=runs.seeds,
        regret={name: values.mean(axis=1) for name, values in regret.items()},
        engine={name: runs.engine[name] for name in names},
        evaluations={name: np.mean([runs.evaluations[each] for each in both(name)], axis=0) for name in names},
        seconds={name: sum(runs.seconds[each] for each in both(name)) / 2 for name in names},
        clusters={name: _halves(*(runs.clusters[each] for each in both(name))) for name in names},
        plays={},
        arms=(),
        problem=runs.problem,
    )
    return Pairs(together, one_world, regret)


def _halves(one: Sequence[Mapping[Any, float]], two: Sequence[Mapping[Any, float]]) -> list[dict[Any, float]]:
    """Plays by top cluster, the mean of two runs, world by world."""
    return [{cluster: (a[cluster] + b[cluster]) / 2 for cluster in a} for a, b in zip(one, two, strict=True)]


def weigh(catalogue: Catalogue, chosen: list[Candidate], pairs: Pairs, inspection: Inspection) -> Advice:
    """From runs to an answer."""
    from banditree.catalogue import sentences

    means = {name: float(regret[:, :, -1].mean()) for name, regret in pairs.regret.items()}
    with_tree = [candidate for candidate in chosen if candidate.uses_tree]
    best_mean = min(with_tree, key=lambda each: means[each.name])
    rival = next(each for each in with_tree if not pairs.compare(best_mean.name, each.name).matters)
    difference = pairs.compare(rival.name, FLAT.name)
    leader = rival if difference.saving > 0 and difference.matters else FLAT
    verdict = ("flat" if leader == FLAT else "tree") if difference.told else "cannot tell"
    pays_from = _pays_from(pairs, rival.name)
    horizon = int(pairs.runs.times[-1])
    best = np.array([pairs.regret[name][:, :, -1].mean(axis=1) for name in means]).argmin(axis=0)  # (worlds,)
    rows = [
        (row.policy, row.mean, row.interval, float((best == list(means).index(row.policy)).mean()))
        for row in pairs.runs.table()
    ]
    return Advice(
        policy=leader.policy,
        depth=leader.depth,
        verdict=verdict,
        code=playing.code(leader, catalogue),
        horizon=horizon,
        against_flat=difference,
        pays_from=pays_from,
        sentences=tuple(sentences.answer(leader, verdict, difference, pays_from, horizon, means)),
        changes=tuple(sentences.changes(leader, verdict, difference, pairs, inspection)),
        table=Table(("policy", "regret", "interval", "best"), rows),
        inspection=inspection,
        runs=pairs.runs,
        traffic=traffic(catalogue, pairs.runs),
    )


def _pays_from(pairs: Pairs, policy: str) -> int | None:
    """The first time from which on the policy is ahead of flat, beyond the noise of the simulation, at all times."""
    times = pairs.runs.times
    found = None
    for at in range(len(times) - 1, -1, -1):
        difference = pairs.compare(policy, FLAT.name, at)
        if difference.saving <= student(len(pairs.runs.seeds)) * difference.noise:
            break
        found = int(times[at])
    return found
