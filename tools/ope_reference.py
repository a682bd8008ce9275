"""Estimators of another implementation on the same arrays: ``python -m tools.ope_reference``.

Open Bandit Pipeline (the PyPI package sb-obp) needs NumPy below 2, so it runs in an environment of its own, which is
made at the first call. Its figures are printed as JSON; tests/ope/test_estimators.py keeps them and holds ours to them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats

REQUIRES = ("sb-obp==0.5.10", "numpy<2")
ROWS, ARMS = 400, 12
CLUSTER = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])  # (arms,)
TAU, LAM = 2.0, 5.0


def arrays() -> dict[str, NDArray[Any]]:
    """A log of a policy that sees contexts, a target, and predictions: the same on every machine."""
    rng = np.random.default_rng(20)
    x = rng.random((ROWS, 2))
    behaviour = _softmax(2 * x @ rng.random((2, ARMS)) + rng.random(ARMS))
    target = _softmax(3 * x @ rng.random((2, ARMS)) + 2 * rng.random(ARMS))
    arm = (behaviour.cumsum(axis=1) < rng.random(ROWS)[:, None]).sum(axis=1).clip(max=ARMS - 1)
    means = 0.1 + 0.6 * x @ rng.random((2, ARMS)) / 2
    reward = (rng.random(ROWS) < means[np.arange(ROWS), arm]).astype(float)
    predicted = np.clip(means + 0.2 * (rng.random((ROWS, ARMS)) - 0.5), 0, 1)
    return {"x": x, "behaviour": behaviour, "target": target, "arm": arm, "reward": reward, "predicted": predicted}


def _softmax(scores: Floats) -> Floats:
    chances: Floats = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def figures() -> dict[str, float]:
    """What Open Bandit Pipeline says; to be called in its own environment."""
    from obp import ope

    made = arrays()
    p = made["behaviour"][np.arange(ROWS), made["arm"]]
    common = {"reward": made["reward"], "action": made["arm"], "action_dist": made["target"][:, :, None]}
    weighted = common | {"pscore": p}
    model = {"estimated_rewards_by_reg_model": made["predicted"][:, :, None]}
    one_hot = np.eye(3)[CLUSTER][:, :, None]  # (arms, clusters, 1)
    found = {
        "ips": ope.InverseProbabilityWeighting().estimate_policy_value(**weighted),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**weighted),
        "dm": ope.DirectMethod().estimate_policy_value(**common, **model),
        "dr": ope.DoublyRobust().estimate_policy_value(**weighted, **model),
        "sndr": ope.SelfNormalizedDoublyRobust().estimate_policy_value(**weighted, **model),
        "switch-dr": ope.SwitchDoublyRobust(lambda_=TAU).estimate_policy_value(**weighted, **model),
        "dros": ope.DoublyRobustWithShrinkage(lambda_=LAM).estimate_policy_value(**weighted, **model),
        "mips": ope.MarginalizedInverseProbabilityWeighting(
            n_actions=ARMS, embedding_selection_method=None
        ).estimate_policy_value(
            **common,
            action_embed=CLUSTER[made["arm"]][:, None],
            pi_b=made["behaviour"][:, :, None],
            p_e_a=one_hot,
        ),
    }
    return {name: float(value) for name, value in found.items()}


def main() -> None:
    """Make the environment, run `figures` in it, and print them."""
    from benchmarks.harness import ROOT, python_of

    python = python_of("sb-obp", REQUIRES, patience=1800)
    code = "import json; from tools.ope_reference import figures; print(json.dumps(figures(), indent=2))"
    done = subprocess.run([python, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    print(json.dumps(json.loads(done.stdout), indent=2))


if __name__ == "__main__":
    main()
