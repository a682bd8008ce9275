"""Bandits on trees of arms: Thompson sampling for clustered arms, other algorithms, and the tools to run them.

>>> import banditree as bt
>>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
>>> policy = bt.ATS(tree, rng=7)
>>> arm = policy.choose()
>>> policy.update(arm, reward=1)
"""

from typing import TYPE_CHECKING

from banditree import errors
from banditree.beliefs import Belief, Beta, Counts, Gaussian, Linear
from banditree.data.features import Features
from banditree.policy import Decision, Policy
from banditree.policy.algorithms import (
    ALGORITHMS,
    ATS,
    HTS,
    TS,
    TSC,
    UCB1,
    UCBC,
    UCT,
    HierTS,
    LinATS,
    LinHTS,
    LinTS,
    LinTSC,
    LinUCB,
    LinUCBC,
    LinUCT,
    TSMax,
)
from banditree.policy.engines import engine
from banditree.rules import UCB, BestArm, Rule, Thompson, View
from banditree.tree import Tree

if TYPE_CHECKING:
    from banditree import adapters, catalogue, ope, plots, problems, report, testing, theory
    from banditree.catalogue import Catalogue, advise, read_catalogue
    from banditree.ope import evaluate, read_log, replay
    from banditree.policy.citations import cite
    from banditree.policy.saving import from_bytes, load
    from banditree.simulation import Runs, Sweep, on, simulate, sweep
    from banditree.tree import clustering

__version__ = "0.4.0"

# Loaded on first use, so that `import banditree` costs little more than NumPy: modules, and names inside modules.
_MODULES = ("adapters", "catalogue", "ope", "plots", "problems", "report", "testing", "theory", "tree.clustering")
_NAMES = {
    "catalogue": ("Catalogue", "advise", "read_catalogue"),
    "ope": ("evaluate", "read_log", "replay"),
    "policy.citations": ("cite",),
    "policy.saving": ("from_bytes", "load"),
    "simulation": ("Runs", "Sweep", "on", "simulate", "sweep"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module in _MODULES:
        if name == module.rpartition(".")[2]:
            return import_module(f"banditree.{module}")
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"banditree.{module}"), name)
    raise AttributeError(f"module 'banditree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ALGORITHMS", "HTS", "TS", "ATS", "TSC", "UCB", "UCB1", "UCBC", "UCT", "Belief", "BestArm", "Beta", "Catalogue",
    "Counts", "Decision", "Features", "Gaussian", "HierTS", "LinATS", "LinHTS", "LinTS", "LinTSC", "LinUCB", "LinUCBC",
    "LinUCT", "Linear", "Policy", "Rule", "Runs", "Sweep", "TSMax", "Thompson", "Tree", "View", "adapters", "advise",
    "catalogue", "cite", "clustering", "engine", "errors", "evaluate", "from_bytes", "load", "on", "ope", "plots",
    "problems", "read_catalogue", "read_log", "replay", "report", "simulate", "sweep", "testing", "theory",
]  # fmt: skip
