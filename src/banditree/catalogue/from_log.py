"""Make a catalogue from a log of decisions by counting its rows per arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditree.catalogue.items import Catalogue
from banditree.errors import InvalidType, InvalidValue
from banditree.output.words import count
from banditree.tree import Tree


def from_log(log: Any, tree: Any) -> Catalogue:
    """Count the rows of a log per arm: rewards of 0 and 1 as successes, others by mean and standard deviation."""
    if not hasattr(log, "places"):
        raise InvalidType("name the column of the items, arm=...; tree= goes with a log from bt.read_log")
    if not isinstance(tree, Tree):
        raise InvalidType("a log has no categories; give the tree of its arms: read_catalogue(log, tree=tree)")
    places, r = log.places(tree), log.rewards
    notes = [*log.notes, f"{count(len(r), 'row')} of a log: counted per arm"]
    plays = np.bincount(places, minlength=tree.n_arms).astype(np.float64)
    sums = np.bincount(places, r, minlength=tree.n_arms)
    if np.isin(r, (0.0, 1.0)).all():
        return Catalogue(tree, plays=plays, successes=sums, notes=notes)
    mean = sums / np.where(plays > 0, plays, np.nan)  # (arms,)
    squares = np.bincount(places, (r - mean[places]) ** 2, minlength=tree.n_arms)
    sd = np.sqrt(squares / np.where(plays > 1, plays - 1, np.nan))
    if not (sd > 0).any():
        raise InvalidValue("no arm of the log has rewards that differ, so their spread is unknown; add rows")
    return Catalogue(tree, plays=plays, reward_mean=mean, reward_sd=sd, notes=notes)
