"""Real data of a fashion shop: its items as a problem, and as files to try things on.

data/README.md has the source and the licence.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import numpy as np

from banditree.base.files import write_whole
from banditree.errors import InvalidValue
from banditree.errors.checks import choice
from banditree.problems.instance import Instance, Problem
from banditree.problems.rewards import Bernoulli
from banditree.stream import Rng
from banditree.tree import Tree

DATA = resources.files("banditree.problems") / "data"
CAMPAIGNS = ("all", "men", "women")
LOGS = {"random": "open_bandit_random_all.csv.gz", "thompson": "open_bandit_bts_all.csv.gz"}
COLUMNS = ("item", "category", "subcategory", "plays", "clicks")


def open_bandit(campaign: str = "all") -> Problem:
    """Clicks on items of the Open Bandit Dataset: category -> subcategory -> item, click rates of 0.09% to 0.5%.

    The mean of an item is alpha / (alpha + beta), the posterior mean of the shop's own policy. Strong
    dominance does not hold. ``campaign`` is "all" (80 items), "men" (34) or "women" (46).

    >>> open_bandit().instance(0).tree
    Tree(80 arms, 28 clusters, depth 2)
    """
    return Problem("open_bandit", _draw, {"campaign": choice("campaign", campaign, CAMPAIGNS)}, fixed=True)


def _draw(rng: Rng, campaign: str) -> Instance:
    items = _read_items(campaign)
    alpha, beta = (np.array([float(row[name]) for row in items]) for name in ("alpha", "beta"))  # (arms,)
    tree = Tree.from_paths([(row["category"], row["subcategory"], int(row["item"])) for row in items])
    return Instance({"category": tree}, Bernoulli(), means=alpha / (alpha + beta))


def _read_items(campaign: str) -> list[dict[str, str]]:
    table = (DATA / "open_bandit_items.csv").read_text(encoding="utf-8")
    return [row for row in csv.DictReader(table.splitlines()) if row["campaign"] == campaign]


def write_example(path: str | os.PathLike[str], *, campaign: str = "all") -> None:
    """Write the items of the Open Bandit Dataset as a CSV file: item, category, subcategory, plays, clicks.

    The counts are those behind the beliefs of the shop's own policy: clicks are its alpha, plays alpha + beta. An
    existing file with other content is not overwritten; that is an error.
    """
    choice("campaign", campaign, CAMPAIGNS)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _read_items(campaign):
        plays = int(row["alpha"]) + int(row["beta"])
        writer.writerow((row["item"], row["category"], row["subcategory"], plays, row["alpha"]))
    _write_once(path, {".csv": text.getvalue().encode()})


def write_example_log(path: str | os.PathLike[str], *, policy: str = "random") -> None:
    """Write a log of the Open Bandit Dataset: 10,000 impressions of a fashion shop, as .csv or .csv.gz.

    ``policy`` is the one that wrote it: "random" (every item equally likely) or "thompson" (the shop's own Thompson
    sampling, which learned). The columns are timestamp, item, position, click, propensity and four features of the
    user; the items are those of `write_example`. An existing file with other content is not overwritten; that is an
    error.
    """
    name = LOGS[choice("policy", policy, tuple(LOGS))]
    packed = (DATA / name).read_bytes()
    _write_once(path, {".csv": gzip.decompress(packed), ".csv.gz": packed})


def _write_once(path: str | os.PathLike[str], contents: Mapping[str, bytes]) -> None:
    """Write the content for the ending of the file's name, unless the file exists with another content."""
    file = Path(path)
    content = next((content for ending, content in contents.items() if file.name.lower().endswith(ending)), None)
    if content is None:
        endings = " or ".join(contents)
        raise InvalidValue(f"cannot write {file}: the example is a CSV file; give a name that ends in {endings}")
    if file.is_file() and file.read_bytes() != content:
        raise InvalidValue(f"{file} already exists and is not this example; give another name, or remove it first")
    write_whole(path, [content])
