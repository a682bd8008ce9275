"""Every policy that takes contexts takes them by name: the same as the encoded vectors, everywhere."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import banditree as bt
from tests.support.helpers import ENGINES

FEATURES = bt.Features({"device": ["phone", "desktop"], "age": (18, 90), "returning": bool})
VISITS = pd.DataFrame(
    {
        "returning": [True, False, True, False],
        "other": [1, 2, 3, 4],
        "device": ["phone", "desktop", "tv", "phone"],
        "age": [18, 30, 54, 120],
    }
)
ROWS: list[dict[str, Any]] = VISITS.to_dict("records")
ARMS = ["s1", "h1", "h2", "s2"]
REWARDS = [1.0, 0.0, 1.0, 0.5]
LINEAR = [name for name, policy in bt.ALGORITHMS.items() if policy.about.takes_contexts]
TREE = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})


def twins(name: str, engine: str) -> tuple[bt.Policy, bt.Policy, np.ndarray[Any, Any]]:
    """A policy with features, one with plain vectors, and the vectors that stand for VISITS."""
    with bt.policy.engines.using(engine):
        algorithm: Any = bt.ALGORITHMS[name]
        named = algorithm(TREE, features=FEATURES, rng=3)
        encoded = FEATURES.encode(VISITS)
        if not named.belief.has_intercept:
            encoded = np.column_stack([encoded, np.ones(len(VISITS))])
        return named, algorithm(TREE, dim=encoded.shape[1], rng=3), encoded


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LINEAR)
def test_features_are_the_vectors_they_stand_for(name: str, engine: str) -> None:
    named, plain, encoded = twins(name, engine)
    assert (named.dim, named.features, plain.features) == (FEATURES.dim, FEATURES, None)
    named.update_many(ARMS, REWARDS, contexts=VISITS)
    plain.update_many(ARMS, REWARDS, contexts=encoded)
    named.update("h3", 1, context=ROWS[1])
    plain.update("h3", 1, context=encoded[1])
    named.update_many(ARMS[:2], [3.0, 2.0], plays=[4, 5], contexts=ROWS[:2])
    plain.update_many(ARMS[:2], [3.0, 2.0], plays=[4, 5], contexts=encoded[:2])
    for row, x in zip(ROWS, encoded, strict=True):
        assert named.choose(context=row) == plain.choose(context=x)
        assert named.choose(context=row, exclude=["h1"]) == plain.choose(context=x, exclude=["h1"])
        assert named.slate(3, context=row) == plain.slate(3, context=x)
        assert named.decide(context=row) == plain.decide(context=x)
        assert named.best(context=row) == plain.best(context=x)
        assert repr(named.table(context=row)) == repr(plain.table(context=x))
        np.testing.assert_array_equal(named.propensities(context=row), plain.propensities(context=x))
    chosen = plain.choose_many(contexts=encoded).tolist()
    assert named.choose_many(contexts=VISITS).tolist() == chosen
    assert named.choose_many(contexts=pl.from_pandas(VISITS)).shape == (4,)
    assert named.choose_many(contexts=ROWS, only=["h1", "h2"]).shape == (4,)


@pytest.mark.parametrize("name", LINEAR)
def test_a_vector_has_the_numbers_of_the_features_without_a_constant(name: str) -> None:
    named, _, encoded = twins(name, "readable")
    x = FEATURES.encode(ROWS[0])
    named.update("s1", 1, context=x)
    named.update("s1", 1, context=pd.Series(ROWS[0]))
    named.choose(context=x.tolist())
    named.choose_many(contexts=FEATURES.encode(VISITS))
    wrong = np.append(x, 1.0) if encoded.shape[1] > FEATURES.dim else x[:-1]
    before = repr(named.table())
    for call in (
        lambda: named.choose(context=wrong),
        lambda: named.update("s1", 1, context=wrong),
        lambda: named.update_many(["s1"], [1], contexts=[wrong]),
        lambda: named.choose_many(contexts=[wrong]),
        lambda: named.decide(context=wrong),
    ):
        with pytest.raises(ValueError, match="the features 'device', 'age', 'returning', or 4 numbers"):
            call()
    assert repr(named.table()) == before


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LINEAR)
def test_features_are_kept_with_the_policy(name: str, engine: str) -> None:
    named, plain, _ = twins(name, engine)
    named.update_many(ARMS, REWARDS, contexts=VISITS)
    for other in (
        bt.from_bytes(named.to_bytes(), rng=3),
        copy.deepcopy(named),
        pickle.loads(pickle.dumps(named)),  # noqa: S301
    ):
        assert other.features == FEATURES
        assert repr(other.table(context=ROWS[2])) == repr(named.table(context=ROWS[2]))
    named.add_arms({"h4": ("hats",)})
    assert named.features == FEATURES
    assert "device" in repr(named)
    assert "device, age, returning" in repr(named.table())
    assert b"features" not in plain.to_bytes()  # files of policies without features are those of 0.2


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_contexts_change_nothing(engine: str) -> None:
    named = twins("LinTSC", engine)[0]
    named.update_many(ARMS, REWARDS, contexts=VISITS)
    before = named.to_bytes()
    bad: list[Any] = [ROWS[0] | {"age": None}, {"device": "phone"}, ROWS[0] | {"returning": 1}, None, "phone", 3]
    for context in bad:
        for call in (named.choose, named.best, named.decide, named.propensities):
            with pytest.raises(bt.errors.BanditreeError):
                call(context=context)
        with pytest.raises(bt.errors.BanditreeError):
            named.update("s1", 1, context=context)
    for contexts in (VISITS.drop(columns="age"), VISITS.assign(age=[1, 2, 3, None]), VISITS.iloc[:2], ROWS[0], None):
        with pytest.raises(bt.errors.BanditreeError):
            named.update_many(ARMS, REWARDS, contexts=contexts)
    assert named.to_bytes() == before


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match="takes no context; leave out features="):
        bt.TSC(TREE, features=FEATURES)
    with pytest.raises(TypeError, match="leave out dim="):
        bt.LinTS(TREE, features=FEATURES, dim=4)
    with pytest.raises(TypeError, match=r"must be bt.Features"):
        bt.LinTS(TREE, features={"device": ["a", "b"]}, dim=None, prior=bt.Linear(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"4 columns, and a constant .* dim=4"):
        bt.LinTS(TREE, features=FEATURES, prior=bt.Linear(4))
    assert bt.LinTS(TREE, features=FEATURES, prior=bt.Linear(5, precision=2.0)).dim == 4


def test_a_policy_with_features_plays_a_simulated_problem() -> None:
    features = bt.Features({"x": (-3.0, 3.0), "y": (-3.0, 3.0)})
    problem = bt.problems.linear(n_arms=4, n_clusters=2, spread=0.1, dim=2)
    runs = bt.simulate(
        {"by name": lambda tree, rng: bt.LinTS(tree, features=features, rng=rng)}, problem, horizon=20, seeds=1
    )
    assert runs.regret["by name"].shape[0] == 1
