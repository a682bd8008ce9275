"""Write one of two real logs as an example: the same shop under a random and under a learning policy."""

from __future__ import annotations

import gzip
import os
from importlib import resources
from pathlib import Path

from banditree.errors import InvalidValue
from banditree.errors.checks import choice
from banditree.output.files import write_whole

FILES = {"random": "open_bandit_random_all.csv.gz", "thompson": "open_bandit_bts_all.csv.gz"}


def write_example_log(path: str | os.PathLike[str], *, policy: str = "random") -> None:
    """Write a log of the Open Bandit Dataset: 10,000 impressions of a fashion shop, as .csv or .csv.gz.

    ``policy`` is the one that wrote it: "random" (every item equally likely) or "thompson" (the shop's own Thompson
    sampling, which learned). The columns are timestamp, item, position, click, propensity and four features of the
    user; the items are those of `banditree.catalogue.write_example`. An existing file with other content is not
    overwritten; that is an error.
    """
    name = FILES[choice("policy", policy, tuple(FILES))]
    content = (resources.files("banditree.problems") / "data" / name).read_bytes()
    file = Path(path)
    if file.name.lower().endswith(".csv"):
        content = gzip.decompress(content)
    elif not file.name.lower().endswith(".csv.gz"):
        raise InvalidValue(f"cannot write {file}: the example is a CSV file; give a name that ends in .csv or .csv.gz")
    if file.is_file() and file.read_bytes() != content:
        raise InvalidValue(f"{file} already exists and is not this example; give another name, or remove it first")
    write_whole(path, [content])
