"""How long everything may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The full run; `quick` has the same cases, made short."""

    rounds: int = 5
    own_rounds: int = 21  # without peers, which are slow: more rounds, for a machine that is not always as fast
    horizon: int = 3000
    contextual_horizon: int = 1000
    at_least: float = 0.1  # seconds of steps a contestant is timed for in a round, as many runs as that takes
    patience: float = 15.0  # seconds after which a run is stopped
    enough: float = 60.0  # seconds of steps after which a slow contestant sits out the remaining rounds
    batch: int = 1_000_000
    decisions: int = 100_000
    seeds: int = 20  # of a simulation in a round
    largest: int = 1_000_000  # arms
    growth_rounds: int = 9
    peer_arms: int = 10_000  # arms for the peers' memory
    cold_rounds: int = 9
    thread_horizon: int = 100_000

    @classmethod
    def quick(cls) -> Options:
        return cls(
            rounds=3,
            own_rounds=3,
            horizon=2000,
            contextual_horizon=300,
            at_least=0.03,
            patience=5.0,
            enough=2.0,
            batch=200_000,
            decisions=20_000,
            seeds=2,
            largest=10_000,
            growth_rounds=2,
            peer_arms=1000,
            cold_rounds=3,
            thread_horizon=20_000,
        )
