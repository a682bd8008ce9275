"""Claims about the instances rather than the runs: dominance, widths, distances and diameters of clusters.

The docstrings of the functions are shown in the report as what decides a claim, with their parameters filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from banditree.base.arrays import Floats
from banditree.paper.claims.checks import Check, Finding, Measured, Missing, mean
from banditree.paper.claims.claim import Claim, Data
from banditree.paper.figures import DEFAULT, FIGURES, Setting
from banditree.paper.results import another_problem, instance
from banditree.problems import Instance
from banditree.theory import Quality, quality

SWEEP_INSTANCES, SINGLE_INSTANCES = 5, 25  # examined of each setting of a sweep, and of a figure with one setting
ALL_SEEDS = ("2a",)  # figures whose instances are cheap enough to examine all of them
SWEEPS = ("1a", "1b", "1c", "1d", "1e")


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


def judge_count(data: Data, *, what: str, holds: Callable[[Setting, Quality], bool], expected: str = "all") -> Finding:
    """A count over instances, by the paper's definitions: {what} {expected} of them.

    Examined are the first 5 seeds of every setting of figure 1, all seeds of 2a and the first 25 of 2b, and no others.
    """
    checks: list[Check] = []
    numbers: dict[str, float] = {}
    listed = []
    for figure in data.figures:
        outcomes = [
            holds(setting, quality(drawn.tree, _means(drawn))) for setting, drawn in examined_instances(data, figure)
        ]
        n, n_true = len(outcomes), sum(outcomes)
        estimate = Measured((n_true if expected == "all" else n - n_true) / n, 0.0, n)
        checks.append(Check(f"{what} {expected} of those of {figure}", estimate, threshold=1 - 0.5 / n))
        numbers |= {f"instances of {figure}": float(n), f"instances of {figure} where it holds": float(n_true)}
        of_all = f"all {n}" if n_true == n else f"{n_true or 'none'} of the {n}"
        listed.append(f"{of_all} examined instances of {figure}")
    facts = f"{what[0].upper()}{what[1:]} {', '.join(listed)}"
    return Finding(tuple(checks), facts, numbers, checks[0].estimate.seeds)


def has_given_quality(setting: Setting, of_instance: Quality) -> bool:
    """Say whether the best cluster has the width, and every other the distance, that the setting asks for."""
    parameters, distances = setting.problem.parameters, np.array(list(of_instance.distance.values()))
    return bool(np.isclose(of_instance.width, parameters["width"]) and np.allclose(distances, parameters["distance"]))


def similar(data: Data, *, most: float = 0.5) -> Finding:
    """In 2a and in 2b, arms of a cluster have more similar expected rewards than all arms have.

    The standard deviation of expected rewards around the mean of their cluster, over that of all expected rewards, one
    number per instance, is below {most:g}; on the instances of all seeds of 2a and the first 25 of 2b.
    """
    shares = {
        figure: np.array([_spread_within(drawn) for _, drawn in examined_instances(data, figure)])  # (instances,)
        for figure in ("2a", "2b")
    }
    checks = tuple(
        Check(
            f"arms of a cluster spread less than {most:g} times as much as all arms in {figure}",
            mean(share),
            most,
            above=False,
        )
        for figure, share in shares.items()
    )
    facts = (
        f"The means of a cluster's arms spread {shares['2a'].mean():.2f} times as much as those of all arms in 2a, "
        f"{shares['2b'].mean():.2f} in 2b"
    )
    numbers = {f"spread within clusters in {figure}": float(share.mean()) for figure, share in shares.items()}
    return Finding(checks, facts, numbers, len(shares["2a"]))


def diameters(data: Data) -> Finding:
    """Clusters are wider in 2e (ε = 0.5) than in 2f (ε = 0.1), with the same number of arms and clusters.

    The greatest distance between the coefficients of two arms of a cluster, averaged over clusters, one number per
    instance, is larger in 2e; on the instances of the first 25 seeds.
    """
    wide, narrow = (
        mean(np.array([_diameter(drawn) for _, drawn in examined_instances(data, figure)])) for figure in ("2e", "2f")
    )
    check = Check("clusters have a larger diameter in 2e than in 2f", wide - narrow)
    facts = (
        f"The diameter of a cluster's coefficients is {wide.value:.2f} on average with ε = 0.5 (2e) "
        f"and {narrow.value:.2f} with ε = 0.1 (2f)"
    )
    return Finding((check,), facts, {"diameter in 2e": wide.value, "diameter in 2f": narrow.value}, wide.seeds)


def _means(drawn: Instance) -> Floats:
    assert drawn.means is not None
    return drawn.means


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


_claim = partial(Claim, over_time=False, of_instances=True)
_count_dominance = partial(judge_count, what="strong dominance holds in", holds=lambda _, quality: quality.dominance)

INSTANCES = (
    _claim(
        "instances-strong-dominance",
        "The instances have strong dominance",
        "We generate synthetic data, for which strong dominance holds",
        SWEEPS,
        _count_dominance,
    ),
    _claim(
        "instances-width-and-distance",
        "The instances have the width and the distance they are given",
        "The optimal cluster will then have a width of w* and the distance from each sub-optimal cluster to the "
        "optimal cluster will be d.",
        SWEEPS,
        partial(judge_count, what="width and distances are w* and d in", holds=has_given_quality),
    ),
    _claim(
        "instances-hierarchical-dominance",
        "The trees of figure 1f have hierarchical strong dominance",
        "recursively sorting and merging the arms into a balanced binary tree, which has the hierarchical strong "
        "dominance property.",
        ("1f",),
        partial(
            judge_count, what="hierarchical strong dominance holds in", holds=lambda _, quality: quality.hierarchical
        ),
    ),
    _claim(
        "instances-similar-rewards",
        "Arms of a k-means cluster have similar rewards",
        "the smoothness of the function ensures arms within the same cluster to have similar expected rewards",
        ("2a", "2b"),
        similar,
    ),
    _claim(
        "instances-violate-dominance",
        "The k-means instances violate strong dominance",
        "the periodicity of sin yields many local optima and the optimal cluster won't strongly dominate the other "
        "clusters.",
        ("2a", "2b"),
        partial(_count_dominance, expected="none"),
    ),
    _claim(
        "instances-diameter",
        "The parameter ε sets how wide a cluster is",
        "we can control the expected diameter of a cluster by varying ε.",
        ("2e", "2f"),
        diameters,
    ),
)
