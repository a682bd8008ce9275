"""Keep the runs of finished figures on disk; tables and claims are made from them."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditree.base.files import write_whole
from banditree.errors import BadFile, InvalidValue
from banditree.paper.figures import DEFAULT, FIGURES, Setting
from banditree.problems import Instance
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import Streams

IN_ORDER = [(name, variant) for name, figure in FIGURES.items() for variant in figure.variants]  # the paper's
COLUMNS = ("figure", "variant", "setting", "policy", "time", "seeds", "mean", "sd", "se")


@dataclass(frozen=True)
class FinishedFigure:
    """How a figure was run. Two runs with the same ``inputs`` have the same numbers."""

    figure: str
    variant: str
    seeds: int
    engine: str
    version: str
    seconds: float = 0.0  # wall time
    jobs: int = 1
    labels: tuple[str, ...] = ()  # its settings, in order

    @property
    def inputs(self) -> tuple[str | int, ...]:
        return self.figure, self.variant, self.seeds, self.engine, self.version


def stem(figure: str, variant: str = DEFAULT) -> str:
    """Return the start of the names of a figure's files: ``2b``, ``2b-global``."""
    return figure if variant == DEFAULT else f"{figure}-{variant}"


def stream(figure: str, variant: str, setting: Setting) -> np.random.SeedSequence:
    """Return the random stream of a setting: no two settings share one, unless they say so.

    A variant that does not change the problem has the instances of the default, so that nothing else differs.
    """
    key = f"{figure}/{variant if another_problem(figure, variant, setting) else DEFAULT}/{setting.stream}"
    return np.random.SeedSequence(0, spawn_key=(zlib.crc32(key.encode()),))


def another_problem(figure: str, variant: str, setting: Setting) -> bool:
    """Say whether a variant changes the problem of a setting, and not only a policy."""
    if variant == DEFAULT:
        return False
    return all(repr(default.problem) != repr(setting.problem) for default in FIGURES[figure].settings())


def instance(figure: str, label: str, seed: int, variant: str = DEFAULT) -> Instance:
    """Draw the instance of a setting and seed again."""
    setting = next(setting for setting in FIGURES[figure].settings(variant) if setting.label == label)
    return setting.problem.instance(Streams(stream(figure, variant, setting)).instance(seed))


@dataclass
class Results:
    """The finished figures of a folder. Runs are read from disk when they are first needed."""

    out: Path
    kept: dict[tuple[str, str], FinishedFigure] = field(default_factory=dict)  # {(figure, variant): how}, in order
    _runs: dict[tuple[str, str], dict[str, Runs]] = field(default_factory=dict, repr=False)

    def __contains__(self, figure: object) -> bool:
        """Say whether a figure (its default), or a (figure, variant), is finished."""
        return ((figure, DEFAULT) if isinstance(figure, str) else figure) in self.kept

    def runs(self, figure: str, variant: str = DEFAULT) -> dict[str, Runs]:
        """Return the runs of every setting of a figure by label, in order; empty for a figure that runs nothing."""
        key = figure, variant
        if key not in self.kept:
            raise InvalidValue(f"figure {figure!r}, variant {variant!r}, is not in {self.out}; run it first")
        if key not in self._runs:
            labels = self.kept[key].labels
            self._runs[key] = {label: Runs.load(self._file(key, i)) for i, label in enumerate(labels)}
        return self._runs[key]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of ``results.csv``: regret over seeds by figure, variant, setting, policy and time."""
        rows = []
        for figure, variant in self.kept:
            times = slice(-1 if FIGURES[figure].kind == "sweep" else 0, None)  # of a sweep only the last
            for label, runs in self.runs(figure, variant).items():
                for policy in runs.policies:
                    summary = runs.over_seeds(policy)  # (times,) each
                    numbers = (column[times].tolist() for column in (runs.times, summary.mean, summary.sd, summary.se))
                    for time, *by_time in zip(*numbers, strict=True):
                        row = (figure, variant, label, policy, time, summary.seeds, *by_time)
                        rows.append(dict(zip(COLUMNS, row, strict=True)))
        return rows

    def write_csv(self) -> Path:
        """Write ``results.csv``."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        path = self.out / "results.csv"
        write_whole(path, [text.getvalue().encode()])
        return path

    def keep(self, how: FinishedFigure, runs: Mapping[str, Runs]) -> None:
        """Write the runs of a finished figure, and then the file that marks it as finished."""
        key = how.figure, how.variant
        for i, of_setting in enumerate(runs.values()):
            self._file(key, i).unlink(missing_ok=True)
            of_setting.save(self._file(key, i))
        write_whole(self._mark(key), [json.dumps(asdict(how), indent=1).encode()])
        self._runs[key] = dict(runs)
        finished = self.kept | {key: how}
        self.kept = {key: finished[key] for key in IN_ORDER if key in finished}

    def forget(self, figure: str, variant: str) -> None:
        """Remove the mark that a figure is finished."""
        self._mark((figure, variant)).unlink(missing_ok=True)
        self.kept.pop((figure, variant), None)
        self._runs.pop((figure, variant), None)

    def _mark(self, key: tuple[str, str]) -> Path:
        return self.out / "runs" / f"{'-'.join(key)}.json"

    def _file(self, key: tuple[str, str], i: int) -> Path:
        stem = self.out / "runs" / f"{'-'.join(key)}-{i}"
        old = stem.with_name(f"{stem.name}.csv")  # of a folder that 0.3 wrote
        return old if old.exists() else stem.with_name(f"{stem.name}.npz")


def load_results(out: str | Path) -> Results:
    """Read which figures are finished in a folder that ``banditree reproduce`` wrote."""
    results = Results(Path(out))
    for key in IN_ORDER:
        mark = results._mark(key)
        if not mark.exists():
            continue
        try:
            how = json.loads(mark.read_text(encoding="utf-8"))
            results.kept[key] = FinishedFigure(**how | {"labels": tuple(how["labels"])})
        except (ValueError, TypeError, KeyError) as error:
            raise BadFile(f"{mark} is damaged ({error}); delete it to run that figure again") from None
    return results
