"""Simulations: many runs of policies on instances of a problem, over seeds, cores and machines."""

from banditree.simulation.runs import Runs
from banditree.simulation.simulator import on, simulate
from banditree.simulation.sweeping import Sweep, sweep

__all__ = ["Runs", "Sweep", "on", "simulate", "sweep"]
