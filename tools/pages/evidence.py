"""What a generated page depends on, as a digest that the page carries.

A digest is of behaviour, not of text: of the arms that policies choose on small fixed problems, and of the worlds that
are played. Code that is moved or renamed keeps it; a law that changes does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import banditree as bt

ROUNDS = 150  # of each policy; a change of its law shows within a few dozen
WIDTHS = (3, 1, 4, 2)  # arms per cluster
POLICIES = ("TS", "TSC", "HTS", "ATS", "LinTS", "LinTSC", "LinATS")


def digest(*parts: object) -> str:
    """Eight hexadecimal digits of what the parts say."""
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()[:8]


def numbers(values: Iterable[Any]) -> str:
    """A few digits of sums over arrays: the same on every machine, and another for other arrays."""
    arrays = [np.asarray(value, np.float64) for value in values]
    return " ".join(f"{array.shape} {array.sum():.4e} {np.square(array).sum():.4e}" for array in arrays)


def law(policies: Sequence[str] = POLICIES) -> str:
    """Digest of the arms that policies choose."""
    return digest(*(f"{name} {_chosen(name)}" for name in policies))


def _chosen(name: str) -> list[Any]:
    tree = bt.Tree.from_labels(np.repeat(np.arange(len(WIDTHS)), WIDTHS).tolist())
    is_linear = name.startswith("Lin")
    policy = getattr(bt, name)(tree, rng=3, **({"dim": 2} if is_linear else {}))
    stream = np.random.default_rng(4)
    means, slopes = stream.uniform(0.1, 0.6, tree.n_arms), stream.normal(size=(tree.n_arms, 2))
    chosen = []
    for _ in range(ROUNDS):
        context = stream.normal(size=2)
        arm = policy.choose(context) if is_linear else policy.choose()
        noise = stream.random()
        reward = float(slopes[arm] @ context + noise) if is_linear else float(noise < means[arm])
        policy.update(arm, reward, *((context,) if is_linear else ()))
        chosen.append(arm)
    return chosen


def stamp(of: str) -> str:
    """The line by which a page says which version made it, and from what."""
    return f"*Made by banditree {bt.__version__}; digest {of}.*"


def stamped(page: Path) -> tuple[str, str] | None:
    """The version and the digest that a page carries, None if it carries none."""
    found = re.search(r"^\*Made by banditree (\S+); digest (\w+)\.\*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return (found[1], found[2]) if found else None
