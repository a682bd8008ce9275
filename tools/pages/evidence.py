"""What a generated page depends on, as a digest that the page carries, and how a page is made in parts.

A digest is of behaviour, not of text: of the arms that policies choose on small fixed problems, and of the worlds that
are played. Code that is moved, renamed or formatted keeps it; a law that changes does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import banditree as bt
from tools.pages.journal import Journal, Line

DOCS = Path(__file__).parents[2] / "docs"
ROUNDS = 150  # of each policy; a change of its law shows within a few dozen
WIDTHS = (3, 1, 4, 2)  # arms per cluster
POLICIES = ("TS", "TSC", "HTS", "ATS", "LinTS", "LinTSC", "LinATS")


# ---------------------------------------------------------------- digests


def digest(*parts: object) -> str:
    """Eight hexadecimal digits of what the parts say."""
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()[:8]


def numbers(values: Iterable[Any]) -> str:
    """A few digits of sums over arrays: the same on every machine, and another for other arrays."""
    arrays = [np.asarray(value, np.float64) for value in values]
    return " ".join(f"{array.shape} {array.sum():.4e} {np.square(array).sum():.4e}" for array in arrays)


@cache
def law(policies: Sequence[str] = POLICIES) -> str:
    """Digest of the arms that policies choose, and of their probabilities in the end."""
    return digest(*(f"{name} {_played(name, normal)}" for name in policies for normal in (False, True)))


def _played(name: str, normal: bool) -> str:
    """What a policy does on clicks, or on rewards with noise that it has to learn."""
    tree = bt.Tree.from_labels(np.repeat(np.arange(len(WIDTHS)), WIDTHS).tolist())
    is_linear, kind = name.startswith("Lin"), getattr(bt, name)
    has_prior = normal and kind.about.takes_prior
    settings: dict[str, Any] = {"dim": 2} if is_linear else {"prior": bt.Gaussian()} if has_prior else {}
    policy = kind(tree, rng=3, **settings)
    stream = np.random.default_rng(4)
    means, slopes = stream.uniform(0.1, 0.6, tree.n_arms), stream.normal(size=(tree.n_arms, 2))
    chosen = []
    for _ in range(ROUNDS):
        context = stream.normal(size=2)
        seen = (context,) if is_linear else ()
        arm = policy.choose(*seen)
        noise = stream.normal() if normal else stream.random()
        mean = float(slopes[arm] @ context) if is_linear else means[arm]
        policy.update(arm, mean + noise if normal else float(noise < mean), *seen)
        chosen.append(arm)
    return f"{chosen} {numbers([policy.propensities(*seen)])}"


# ---------------------------------------------------------------- pages


@dataclass(frozen=True)
class Part:
    """What is measured in one go: its name, a digest of all that it depends on, and how it is measured."""

    name: str
    digest: str
    measure: Callable[[], Iterable[Line]]


@dataclass(frozen=True)
class Page:
    """A page of the docs that a program makes, and the CSV file with all its lines.

    Parameters
    ----------
    name
        The page is ``NAME.md`` and its lines are in ``data/NAME.csv``.
    columns
        Of the lines, after the part's name and digest.
    parts
        Lists what has to be measured.
    text
        Of the lines and the folder of the page, into which pictures are drawn; parts may be missing.
    """

    name: str
    columns: Sequence[str]
    parts: Callable[[], list[Part]]
    text: Callable[[list[Line], Path], str]

    def digest(self) -> str:
        """What the page depends on."""
        return digest(*(part.digest for part in self.parts()))

    def make(self, folder: Path, until: float = float("inf")) -> int:
        """Measure what is missing until a time (`monotonic`), write the page, and return how many parts are left."""
        parts = self.parts()
        digests = {part.name: part.digest for part in parts}
        data = folder / "data" / f"{self.name}.csv"
        columns = ("part", "digest", *self.columns)
        journal = Journal(data, columns, lambda line: digests.get(line["part"]) == line["digest"])
        done = {line["part"] for line in journal.lines}
        for part in parts:
            if part.name not in done and monotonic() < until:
                begin = monotonic()
                journal.add({"part": part.name, "digest": part.digest, **line} for line in part.measure())
                done.add(part.name)
                print(f"{self.name}: {part.name}, {monotonic() - begin:.0f} s", flush=True)
        journal.write()
        left = [part.name for part in parts if part.name not in done]
        place = {part.name: i for i, part in enumerate(parts)}
        text = self.text(sorted(journal.lines, key=lambda line: place[line["part"]]), folder)
        (folder / f"{self.name}.md").write_text(
            f"{text.rstrip()}\n\n{footer(self.name, self.digest(), left)}\n", encoding="utf-8"
        )
        return len(left)


def footer(name: str, of: str, left: Sequence[str] = ()) -> str:
    """The end of a page: what is pending, where all lines are, which version made it and from what."""
    named = ", ".join(left) if len(left) <= 5 else f"{len(left)} parts"
    pending = f"**Pending: {named}.** `make pages ONLY={name}` goes on. " if left else ""
    return f"{pending}All lines: [data/{name}.csv](data/{name}.csv).\n\n{stamp(of)}"


def stamp(of: str) -> str:
    """The line by which a page says which version made it, and from what."""
    return f"*Made by banditree {bt.__version__}; digest {of}.*"


def stamped(page: Path) -> tuple[str, str] | None:
    """The version and the digest that a page carries, None if it carries none."""
    found = re.search(r"^\*Made by banditree (\S+); digest (\w+)\.\*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return (found[1], found[2]) if found else None


def is_whole(page: Path) -> bool:
    """Whether nothing on a page is still to be measured."""
    return "**Pending" not in page.read_text(encoding="utf-8")
