"""Claims about the instances rather than the runs: dominance, widths, distances and diameters of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from banditree import theory
from banditree.paper.claims.checks import Check, Finding, Floats, Measured, Missing, mean
from banditree.paper.claims.claim import Claim, Data, Evaluate
from banditree.paper.figures import DEFAULT, FIGURES, Setting
from banditree.paper.results import another_problem, instance
from banditree.problems import Instance

SWEEP_INSTANCES, SINGLE_INSTANCES = 5, 25  # examined of each setting of a sweep, and of a figure with one setting
ALL_SEEDS = ("2a",)  # figures whose instances are cheap enough to examine all of them
SIMILAR_SHARE = 0.5  # "similar expected rewards": arms of a cluster spread at most half as much as all arms
SWEEPS = ("1a", "1b", "1c", "1d", "1e")

Holds = Callable[[Setting, Instance], bool]


def examined_instances(data: Data, figure: str) -> Iterator[tuple[Setting, Instance]]:
    """Yield the instances of the first seeds of every setting; those that settings share are yielded once."""
    n_seeds = len(next(iter(data.settings(figure).values())).seeds)
    settings = FIGURES[figure].settings(data.variant)
    if data.variant != DEFAULT and not any(another_problem(figure, data.variant, setting) for setting in settings):
        raise Missing(f"other instances in {figure} ({data.variant})")
    if figure not in ALL_SEEDS:
        n_seeds = min(n_seeds, SWEEP_INSTANCES if FIGURES[figure].kind == "sweep" else SINGLE_INSTANCES)
    for setting in {setting.stream: setting for setting in settings}.values():
        for seed in range(n_seeds):
            yield setting, instance(figure, setting.label, seed, data.variant)


def judge_count(figures: Sequence[str], holds: Holds, what: str, *, expected: bool = True) -> Evaluate:
    """Judge whether something holds in every examined instance, or in none. ``what`` names it, with a verb."""

    def evaluate(data: Data) -> Finding:
        checks: list[Check] = []
        numbers: dict[str, float] = {}
        listed = []
        for figure in figures:
            outcomes = [holds(setting, drawn) for setting, drawn in examined_instances(data, figure)]
            n, n_true = len(outcomes), sum(outcomes)
            estimate = Measured((n_true if expected else n - n_true) / n, 0.0, n)
            side = "all" if expected else "none"
            checks.append(Check(f"{what} {side} of those of {figure}", estimate, threshold=1 - 0.5 / n))
            numbers |= {f"instances of {figure}": float(n), f"instances of {figure} where it holds": float(n_true)}
            listed.append(f"{_out_of(n_true, n)} examined instances of {figure}")
        facts = f"{what[0].upper()}{what[1:]} {', '.join(listed)}"
        return Finding(tuple(checks), facts, numbers, checks[0].estimate.seeds, data.horizon(figures[0]))

    return evaluate


def similar(data: Data) -> Finding:
    """Judge whether arms of a cluster have means closer to each other than all arms have."""
    checks, numbers = [], {}
    for figure in ("2a", "2b"):
        shares = np.array([_spread_within(drawn) for _, drawn in examined_instances(data, figure)])  # (instances,)
        what = f"arms of a cluster spread less than {SIMILAR_SHARE:g} times as much as all arms in {figure}"
        checks.append(Check(what, mean(shares), SIMILAR_SHARE, above=False))
        numbers[f"spread within clusters in {figure}"] = float(shares.mean())
    in_2a, in_2b = numbers.values()
    facts = (
        f"The means of a cluster's arms spread {in_2a:.2f} times as much as those of all arms in 2a, {in_2b:.2f} in 2b"
    )
    return Finding(tuple(checks), facts, numbers, checks[0].estimate.seeds, data.horizon("2a"))


def diameters(data: Data) -> Finding:
    """Judge whether clusters are wider where ε is larger, with the same number of arms and clusters."""
    measured = {
        figure: mean(np.array([_diameter(drawn) for _, drawn in examined_instances(data, figure)]))
        for figure in ("2e", "2f")
    }
    check = Check("clusters have a larger diameter in 2e than in 2f", measured["2e"] - measured["2f"])
    numbers = {f"diameter in {figure}": diameter.value for figure, diameter in measured.items()}
    facts = (
        f"The diameter of a cluster's coefficients is {numbers['diameter in 2e']:.2f} on average with ε = 0.5 (2e) "
        f"and {numbers['diameter in 2f']:.2f} with ε = 0.1 (2f)"
    )
    return Finding((check,), facts, numbers, measured["2e"].seeds, data.horizon("2e"))


def _out_of(n_true: int, n: int) -> str:
    return f"all {n}" if n_true == n else f"{n_true or 'none'} of the {n}"


def _means(drawn: Instance) -> Floats:
    assert drawn.means is not None
    return drawn.means


def _has_dominance(_: Setting, drawn: Instance) -> bool:
    return theory.quality(drawn.tree, _means(drawn)).dominance


def _has_hierarchical_dominance(_: Setting, drawn: Instance) -> bool:
    return theory.quality(drawn.tree, _means(drawn)).hierarchical


def _has_given_quality(setting: Setting, drawn: Instance) -> bool:
    """Say whether the best cluster has the width, and every other the distance, that the setting asks for."""
    quality, parameters = theory.quality(drawn.tree, _means(drawn)), setting.problem.parameters
    distances = np.array(list(quality.distance.values()))  # (clusters,)
    return bool(np.isclose(quality.width, parameters["width"]) and np.allclose(distances, parameters["distance"]))


def _groups(drawn: Instance) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return a mask of the arms of each top cluster: (arms,) each."""
    top = np.asarray(drawn.tree.nodes.top_of_arms)
    return [top == cluster for cluster in np.unique(top)]


def _spread_within(drawn: Instance) -> float:
    """Return the standard deviation of means around those of their clusters, over that of all means."""
    means = _means(drawn)
    total = sum(float(((means[arms] - means[arms].mean()) ** 2).sum()) for arms in _groups(drawn))
    return float(np.sqrt(total / len(means) / means.var()))


def _diameter(drawn: Instance) -> float:
    """Return the greatest distance between two arms of a cluster, averaged over clusters."""
    assert drawn.theta is not None
    theta = drawn.theta  # (arms, dim)
    return float(np.mean([np.linalg.norm(theta[a][:, None] - theta[a][None], axis=2).max() for a in _groups(drawn)]))


def _statistic(what: str, where: str, which: str) -> str:
    return f"{what} on the instances of {which}; it must {where}. A count over these instances: no others are examined."


_claim = partial(Claim, over_time=False, of_instances=True)


FIRST = f"the first {SWEEP_INSTANCES} seeds of every setting"
KMEANS = f"all seeds of 2a and the first {SINGLE_INSTANCES} of 2b"

INSTANCES = (
    _claim(
        "instances-strong-dominance",
        "The instances have strong dominance",
        "We generate synthetic data, for which strong dominance holds",
        SWEEPS,
        _statistic("Strong dominance is computed", "hold in all", FIRST),
        judge_count(SWEEPS, _has_dominance, "strong dominance holds in"),
    ),
    _claim(
        "instances-width-and-distance",
        "The instances have the width and the distance they are given",
        "The optimal cluster will then have a width of w* and the distance from each sub-optimal cluster to the "
        "optimal cluster will be d.",
        SWEEPS,
        _statistic("Width and distances are computed by the paper's definitions", "be w* and d in all", FIRST),
        judge_count(SWEEPS, _has_given_quality, "width and distances are w* and d in"),
    ),
    _claim(
        "instances-hierarchical-dominance",
        "The trees of figure 1f have hierarchical strong dominance",
        "recursively sorting and merging the arms into a balanced binary tree, which has the hierarchical strong "
        "dominance property.",
        ("1f",),
        _statistic("Hierarchical strong dominance is computed", "hold in all", FIRST),
        judge_count(("1f",), _has_hierarchical_dominance, "hierarchical strong dominance holds in"),
    ),
    _claim(
        "instances-similar-rewards",
        "Arms of a k-means cluster have similar rewards",
        "the smoothness of the function ensures arms within the same cluster to have similar expected rewards",
        ("2a", "2b"),
        "In 2a and in 2b: the standard deviation of expected rewards around the mean of their cluster, over that of "
        f"all expected rewards, one number per instance, is below {SIMILAR_SHARE:g}; on the instances of {KMEANS}.",
        similar,
    ),
    _claim(
        "instances-violate-dominance",
        "The k-means instances violate strong dominance",
        "the periodicity of sin yields many local optima and the optimal cluster won't strongly dominate the other "
        "clusters.",
        ("2a", "2b"),
        _statistic("Strong dominance is computed", "hold in none", KMEANS),
        judge_count(("2a", "2b"), _has_dominance, "strong dominance holds in", expected=False),
    ),
    _claim(
        "instances-diameter",
        "The parameter ε sets how wide a cluster is",
        "we can control the expected diameter of a cluster by varying ε.",
        ("2e", "2f"),
        "The greatest distance between the coefficients of two arms of a cluster, averaged over clusters, one number "
        "per instance, is larger in 2e (ε = 0.5) than in 2f (ε = 0.1); on the instances of the first "
        f"{SINGLE_INSTANCES} seeds.",
        diameters,
    ),
)
