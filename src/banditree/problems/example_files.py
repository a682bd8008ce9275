"""Write real data as files to try things on: a catalogue, and two logs of the same shop."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from banditree.errors import InvalidValue
from banditree.errors.checks import choice
from banditree.output.files import write_whole
from banditree.problems.real import CAMPAIGNS

LOGS = {"random": "open_bandit_random_all.csv.gz", "thompson": "open_bandit_bts_all.csv.gz"}
COLUMNS = ("item", "category", "subcategory", "plays", "clicks")


def write_example(path: str | os.PathLike[str], *, campaign: str = "all") -> None:
    """Write the items of the Open Bandit Dataset as a CSV file: item, category, subcategory, plays, clicks.

    The counts are those behind the beliefs of the shop's own policy: clicks are its alpha, plays alpha + beta. An
    existing file with other content is not overwritten; that is an error.
    """
    choice("campaign", campaign, CAMPAIGNS)
    table = resources.files("banditree.problems") / "data" / "open_bandit_items.csv"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        if row["campaign"] == campaign:
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
    packed = (resources.files("banditree.problems") / "data" / name).read_bytes()
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
