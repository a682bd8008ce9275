"""Simulate policies on instances of a problem, over many seeds, on many cores or machines."""

from banditree.simulation.runs import Runs
from banditree.simulation.simulator import on, simulate
from banditree.simulation.sweeping import Sweep, sweep

__all__ = ["Runs", "Sweep", "on", "simulate", "sweep"]
