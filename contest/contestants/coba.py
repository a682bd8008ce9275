"""coba's learners: predict and learn. Actions are one-hot, with their category one-hot beside it."""

from __future__ import annotations

from functools import partial
from typing import Any

from contest.contestants import Agent, Offer, has_groups, in_unit_interval, noise_of, unlike_default
from contest.world import Floats, World

PACKAGE = "coba"
REQUIRES = ("coba", "numpy")
LARGEST = 5000  # features: its linear learners keep a matrix of so many rows and columns


def offers(world: World) -> list[Offer]:
    flat = [
        Offer("coba BanditUCB", partial(_agent, learner="BanditUCBLearner"), "default; ignores contexts"),
        Offer("coba BanditEpsilon", partial(_agent, learner="BanditEpsilonLearner"), "default; ignores contexts"),
    ]
    if not world.dim:
        return flat
    noise = noise_of(world)
    corral = [Offer("coba Corral", _corral, "of LinUCB and BanditEpsilon")] if in_unit_interval(world) else []
    told_ucb = Offer("coba LinUCB", partial(_agent, learner="LinUCBLearner", alpha=noise), "told the noise")
    told_ts = Offer("coba LinTS", partial(_agent, learner="LinTSLearner", v=noise**2), "told the noise")
    return [
        Offer("coba LinUCB", partial(_agent, learner="LinUCBLearner"), "default"),
        *unlike_default(told_ucb, world),
        Offer("coba LinTS", partial(_agent, learner="LinTSLearner"), "default"),
        *unlike_default(told_ts, world),
        *corral,
        *flat,
    ]


def _agent(world: World, seed: int, *, learner: str, **settings: Any) -> Agent:
    from coba import learners

    if learner.startswith("Bandit"):
        return _of(world, getattr(learners, learner)(seed=seed + 1), list(range(world.n_arms)))
    n_labels = int(world.labels.max()) + 1 if has_groups(world) else 0
    size = 1 + (world.n_arms + n_labels) * (1 + world.dim)
    if size > LARGEST:
        raise ValueError(f"its one model would need a matrix of {size:,} x {size:,} numbers")
    return _of(world, getattr(learners, learner)(seed=seed + 1, **settings), _features(world))


def _corral(world: World, seed: int) -> Agent:
    from coba import learners

    bases = [learners.LinUCBLearner(), learners.BanditEpsilonLearner()]
    return _of(world, learners.CorralLearner(bases, seed=seed + 1), _features(world))


def _features(world: World) -> list[tuple[int, ...]]:
    """Actions: the arm one-hot, and its category one-hot."""
    n_labels = int(world.labels.max()) + 1 if has_groups(world) else 0
    return [
        (*(int(i == arm) for i in range(world.n_arms)), *(int(i == label) for i in range(n_labels)))
        for arm, label in enumerate(world.labels.tolist())
    ]


def _of(world: World, learner: Any, actions: list[Any]) -> Agent:
    numbers = {action: arm for arm, action in enumerate(actions)}
    kwargs: dict[str, Any] = {}  # what a learner wants to have back with the reward

    def choose(x: Floats) -> tuple[int, float]:
        action, probability, *more = learner.predict(x.tolist() or None, actions)
        kwargs.clear()
        kwargs.update(more[0] if more else {})
        return numbers[action], probability

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        learner.learn(x.tolist() or None, actions[arm], reward, probability, **kwargs)

    return Agent(choose, learn)
