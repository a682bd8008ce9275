"""Make a catalogue from a log of decisions by counting its rows per arm."""

from __future__ import annotations

from typing import Any

from banditree.catalogue.items import Catalogue
from banditree.catalogue.reward_columns import adding_up, counted
from banditree.errors import InvalidType, InvalidValue
from banditree.report.words import count
from banditree.tree import Tree


def from_log(log: Any, tree: Any) -> Catalogue:
    """Count the rows of a log per arm: rewards of 0 and 1 as successes, others by mean and standard deviation."""
    if not hasattr(log, "places"):
        raise InvalidType("name the column of the items, arm=...; tree= goes with a log from bt.read_log")
    if not isinstance(tree, Tree):
        raise InvalidType("a log has no categories; give the tree of its arms: read_catalogue(log, tree=tree)")
    notes = [*log.notes, f"{count(len(log), 'row')} of a log: counted per arm"]
    places = log.places(tree)
    found = counted(log.rewards, adding_up(places, tree.n_arms), places)
    if "reward_sd" in found and not (found["reward_sd"] > 0).any():
        raise InvalidValue("no arm of the log has rewards that differ, so their spread is unknown; add rows")
    return Catalogue(tree, **found, notes=notes)
