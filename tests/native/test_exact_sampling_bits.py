"""The native engine gives the same numbers on every machine, to the last bit.

Elsewhere tests hold laws and never pin draws. Here pinned numbers are right: what must not change between machines,
compilers and builds is every bit of a run, and only a value computed elsewhere can show that. Digests are of draws,
and of the evidence that runs end with: sums of draws, so that one last bit of one reward or context is in them.

A change of the engine that draws otherwise, on purpose, changes these digests: the failing test prints the new ones.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.helpers import NAMES, make

native = pytest.importorskip("banditree._native")

ROOT = Path(__file__).parents[2]
TREE = bt.Tree({"wide": range(60), "deep": {"left": range(60, 70), "right": {"low": [70, 71], "high": range(72, 80)}}})
# Sums of powers of two, so that no arithmetic but the engine's is in them.
MEANS = (np.arange(80) * 37 % 80 + 8) / 128
THETA = ((np.arange(240) * 71 % 240) / 128 - 1).reshape(80, 3)
CONTEXTS = ((np.arange(600) * 97 % 600) / 256 - 1).reshape(200, 3)

DIGESTS = {
    "ATS": "026ca51724749455",
    "draws": "7bf0520425bd7eac",
    "TS": "cd71fcf5d8fe3fee",
    "TSC": "5d8aeda7d15ea7b9",
    "HTS": "2f2cd50a2eec3fcb",
    "UCB1": "e2e0b783b762c551",
    "UCBC": "ce7dff39556813df",
    "UCT": "affc94ff8575f019",
    "TSMax": "b03747f3ee9d160e",
    "LinATS": "75d50d12681d1163",
    "LinTS": "651e7509588aacd8",
    "LinTSC": "b4132a82cfd51a35",
    "LinHTS": "b45495505858882f",
    "LinUCB": "aa3dc6cd98263504",
    "LinUCBC": "c31e4a5f0489983a",
    "LinUCT": "5e88007892f5e6b2",
    "HierTS": "9b074d642160b678",
}


def runs_of(name: str) -> str:
    """Digest of what two runs of each kind that the policy knows leave: evidence, what derives from it, regret, and the
    decisions it comes to then.
    """
    if name.startswith("Lin"):
        kinds: list[tuple[Any, dict[str, Any]]] = [(bt.problems.linear_from(TREE, THETA, contexts="unit"), {})]
    else:
        kinds = [(bt.problems.bernoulli(TREE, MEANS), {}), (bt.problems.bounded(TREE, MEANS, 4.0), {})]
    if name in ("TS", "TSC", "HTS"):
        kinds.append((bt.problems.gaussian(TREE, MEANS), {"prior": bt.Gaussian(sd=1.0)}))
    found = hashlib.sha256()
    for problem, options in kinds:
        policies: list[bt.Policy] = []

        def build(tree: bt.Tree, *, rng: Any, kept: list[bt.Policy] = policies, given: Any = options) -> bt.Policy:
            kept.append(make(name, tree, rng, **given))
            return kept[-1]

        with engines.using("native"):
            runs = bt.simulate({name: build}, problem, horizon=600, seeds=2, rng=12, checkpoints=60)
        arrays = [array for policy in policies for array in policy._state.rows.arrays().values()]
        for array in (runs.regret[name], *arrays):
            found.update(np.asarray(array, "<f8").tobytes())
        for policy in policies:  # many decisions at once find their winners otherwise
            policy._state.walk.refresh()  # so that they depend on the evidence alone
            many = (
                policy.choose_many(contexts=CONTEXTS) if name.startswith("Lin") else policy.choose_many(len(CONTEXTS))
            )
            found.update(np.asarray(many, "<i8").tobytes())
    return found.hexdigest()[:16]


def draws() -> str:
    """Digest of draws of every kind, on all their paths, and of the functions they are made of."""
    rng = native_stream(34)
    shapes = np.array([0.05, 0.5, 1.0, 1.5, 3.0, 100.0, 1e6])
    a, b = (grid.ravel() for grid in np.meshgrid(shapes, shapes))
    points = rng.random(20_000)
    found = hashlib.sha256()
    for array in (
        rng.standard_normal(20_000),
        rng.standard_exponential(20_000),
        rng.standard_gamma(shapes, (1000, len(shapes))),
        rng.beta(a, b, (1000, len(a))),
        rng.beta_log_odds(a, b, (1000, len(a))),
        [native.ln(x) for x in points],
        [native.exp(40 * x - 20) for x in points],
    ):
        found.update(np.asarray(array, "<f8").tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("wider_vectors", [False, True])
def test_runs_have_the_bits_they_have_everywhere(wider_vectors: bool) -> None:
    if native.use_wider_vectors(wider_vectors) != wider_vectors:
        pytest.skip("this processor has no wider vectors")
    try:
        found = {"draws": draws()} | {name: runs_of(name) for name in NAMES}
    finally:
        native.use_wider_vectors(True)
    assert found == DIGESTS, f"DIGESTS = {found}"


def test_the_build_asks_for_no_more_than_the_baseline() -> None:
    flags = (ROOT / "CMakeLists.txt").read_text()
    options = "\n".join(line.split("#")[0] for line in flags.splitlines())
    assert "-ffp-contract=off" in options
    assert "/fp:precise" in options
    for name in ("CMakeLists.txt", "pyproject.toml", "Makefile"):
        text = "\n".join(line.split("#")[0] for line in (ROOT / name).read_text().splitlines())
        assert not re.search(
            r"-march|-mtune|-mcpu|-mfma|-mavx|-Ofast|fast-math|/fp:fast|/arch:|-ffp-contract=(on|fast)", text
        )


def test_the_source_uses_plain_ieee_arithmetic() -> None:
    """Of the C library only what IEEE 754 rounds correctly, as sqrt and floor: no other functions, nothing fused."""
    inexact = r"\bstd::(log\w*|exp\w+|exp|pow|sin|cos|tan\w*|[lt]gamma|erf\w*|cbrt|hypot|fma)\("
    special = r"immintrin|arm_neon|x86intrin|_mm\d*_|__builtin_fma|\b(fma|pow|lgamma)\(|#pragma (STDC|GCC|clang|omp)"
    special += r'|target\((?!"avx2"\))'  # no processor with more than wider vectors: fused operations round otherwise
    sources = sorted((ROOT / "src" / "native").rglob("*.?pp"))
    assert len(sources) > 10
    for source in sources:
        text = re.sub(r"//.*", "", source.read_text())
        assert not re.search(f"{inexact}|{special}", text), source.name
