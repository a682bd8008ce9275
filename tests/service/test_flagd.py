"""Weights as a flag: flagd's own evaluation, from npm, chooses each arm as often as our weights say."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from banditree.service.settings import Plan, Settings
from tests.support.serving import inside

FOLDER = Path(__file__).parents[2] / "build" / "flagd"  # kept between runs
PACKAGES = {"@openfeature/flagd-core": "^4.0.1", "@openfeature/core": "^1.12.0"}
EVALUATE = """
import { readFileSync } from "node:fs";
import { FlagdCore } from "@openfeature/flagd-core";
const { flags, n } = JSON.parse(readFileSync(0, "utf8"));
const core = new FlagdCore();
core.setConfigurations(JSON.stringify(flags));
const found = [];
for (let i = 0; i < n; i++) found.push(core.resolveStringEvaluation("main", "none", { targetingKey: `visitor-${i}` }));
console.log(JSON.stringify(found.map((one) => [one.value, one.flagMetadata.event])));
"""
ARMS = {f"{kind}{i}": [kind] for kind in ("s", "h") for i in range(4)}
N = 10_000


@pytest.fixture
def evaluate() -> Any:
    """flagd's evaluation of a flag for many visitors, or a skip that says what is missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js and npm are not installed: flagd's evaluation was not tried")
    FOLDER.mkdir(parents=True, exist_ok=True)
    manifest = json.dumps({"private": True, "type": "module", "dependencies": PACKAGES})
    installed = FOLDER / "installed.json"  # what the packages there were installed from
    if not installed.exists() or installed.read_text() != manifest:
        (FOLDER / "package.json").write_text(manifest)
        words = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install flagd's evaluation: {done.stderr.strip()[:200]}")
        installed.write_text(manifest)
    (FOLDER / "evaluate.js").write_text(EVALUATE)

    def run(flags: Any) -> list[list[Any]]:
        words, asked = [node, "evaluate.js"], json.dumps({"flags": flags, "n": N})
        done = subprocess.run(words, cwd=FOLDER, input=asked, capture_output=True, text=True, timeout=300, check=True)
        found: list[list[Any]] = json.loads(done.stdout)
        return found

    return run


def tail(counts: Counter[str], weights: dict[str, float]) -> float:
    """The probability of counts as far from what is expected, if these are the weights."""
    expected = [counts.total() * weights[arm] / sum(weights.values()) for arm in weights]
    return float(stats.chisquare([counts[arm] for arm in weights], expected).pvalue)


def test_flagd_chooses_each_arm_as_often_as_the_weights_say(evaluate: Any, tmp_path: Path) -> None:
    with inside(Plan(ARMS, Settings(policy="ATS")), store=tmp_path / "decisions.db") as (_, http):
        made = http.post("/v1/decisions", json=[{}] * 60).json()
        rewards = [{"id": its["id"], "reward": float(i % 4 == 0)} for i, its in enumerate(made)]
        http.post("/v1/rewards", json=rewards)
        weights = http.get("/v1/weights").json()
        found = evaluate(http.get("/v1/weights?format=flagd").json())
        counts = Counter(arm for arm, _ in found)
        assert counts.keys() <= ARMS.keys()
        assert {event for _, event in found} == {weights["event"]}
        shares = {arm: weight for arm, weight in weights["weights"].items() if N * weight >= 5}
        assert len(shares) >= 4
        counts = Counter({arm: n for arm, n in counts.items() if arm in shares})
        assert counts.total() > 0.99 * N
        assert tail(counts, shares) > 1e-4
        assert tail(counts, dict.fromkeys(shares, 1.0)) < 1e-4  # it could have told

        # What flagd chose is recorded as a decision with the quantised probability.
        rows = [
            {"id": f"d{i}", "arm": arm, "propensity": weights["weights"][arm], "group": "policy", "event": event}
            for i, (arm, event) in enumerate(found[:500])
        ]
        done = http.post("/v1/batch", json={"decisions": rows}).json()
        assert done == {"accepted": 500, "duplicate": 0, "refused": []}
