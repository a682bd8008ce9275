"""What all tests share: the engines, and Hypothesis settings that make every run the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from banditree.policy import engines
from tests.support.helpers import ENGINES

settings.register_profile(
    "banditree",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("banditree")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test that asks for it runs on each engine of this install."""
    name: str = request.param
    with engines.using(name):
        yield name
