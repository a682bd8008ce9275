"""contextualbandits: predict and partial_fit of batches, here of one row. It has no bandits without contexts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.contestants.agent import Agent, C, Offer, Setting, V

PACKAGE = "contextualbandits"
REQUIRES = ("contextualbandits", "numpy")
IMPORT = "from contextualbandits.online import LinTS, LinUCB"
FIRST = """
import numpy as np
from contextualbandits.online import LinTS
policy = LinTS(nchoices=100, random_state=1)
x = np.ones((1, 5))
policy.partial_fit(x, policy.predict(x), np.ones(1))
"""


def _linear(setting: Setting, *, policy: str, **settings: Any) -> Agent:
    from contextualbandits import online  # type: ignore[import-not-found]

    built = getattr(online, policy)(
        nchoices=setting.n_arms, fit_intercept=False, random_state=setting.seed + 1, **settings
    )
    built.partial_fit(np.zeros((1, setting.dim or 1)), np.zeros(1, int), np.zeros(1))  # it wants to know the length

    def update(arm: int, reward: float, x: Any) -> None:
        built.partial_fit(x, np.array([arm]), np.array([reward], float))

    return Agent(lambda x: int(built.predict(x)[0]), update, context=lambda x: x[None])


OFFERS = {
    "LinTS": Offer(f"LinTS(v_sq={V:g})", partial(_linear, policy="LinTS", v_sq=V)),
    "LinUCB": Offer(f"LinUCB(alpha={C:g})", partial(_linear, policy="LinUCB", alpha=C)),
}
