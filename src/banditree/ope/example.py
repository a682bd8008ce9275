"""Write one of two real logs as an example: the same shop under a random and under a learning policy."""

from __future__ import annotations

import gzip
import os
from importlib import resources

from banditree.catalogue.example import write_once
from banditree.errors.checks import choice

FILES = {"random": "open_bandit_random_all.csv.gz", "thompson": "open_bandit_bts_all.csv.gz"}


def write_example_log(path: str | os.PathLike[str], *, policy: str = "random") -> None:
    """Write a log of the Open Bandit Dataset: 10,000 impressions of a fashion shop, as .csv or .csv.gz.

    ``policy`` is the one that wrote it: "random" (every item equally likely) or "thompson" (the shop's own Thompson
    sampling, which learned). The columns are timestamp, item, position, click, propensity and four features of the
    user; the items are those of `banditree.catalogue.write_example`. An existing file with other content is not
    overwritten; that is an error.
    """
    name = FILES[choice("policy", policy, tuple(FILES))]
    packed = (resources.files("banditree.problems") / "data" / name).read_bytes()
    write_once(path, {".csv": gzip.decompress(packed), ".csv.gz": packed})
