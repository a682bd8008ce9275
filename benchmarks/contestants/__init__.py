"""Who takes part: one module each. A new peer is a file in ``peers`` and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

OURS = "banditree, native"
READABLE = "banditree, readable"
NUMPY = "NumPy loop"
PEERS = ("mabwiser", "river", "contextualbandits", "coba", "bayesianbandits", "vowpalwabbit", "pybandits")


@dataclass(frozen=True)
class Contestant:
    """A name, the module that says how it is called, and whose environment it runs in (None: this one)."""

    name: str
    module: str
    peer: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> ModuleType:
        """The module; it imports its library only where it is used, so every Python can read it."""
        return import_module(self.module)

    def offers(self) -> dict[str, str]:
        """Algorithm -> what this contestant runs for it, in its own words."""
        return {algorithm: offer.label for algorithm, offer in self.load().OFFERS.items()}


OWN = (
    Contestant(OURS, "benchmarks.contestants.ours", environ={"BANDITREE_ENGINE": "native"}),
    Contestant(READABLE, "benchmarks.contestants.ours", environ={"BANDITREE_ENGINE": "readable"}),
    Contestant(NUMPY, "benchmarks.contestants.numpy_loop"),
)
OTHERS = tuple(Contestant(peer, f"benchmarks.contestants.peers.{peer}", peer=peer) for peer in PEERS)
