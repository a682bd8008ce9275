"""Hold the results of a simulation: regret of every policy and seed over time; tables, comparisons, files."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BadFile, InvalidValue
from banditree.output.files import read_whole, write_whole
from banditree.report import words
from banditree.report.intervals import student_interval
from banditree.report.result import Result
from banditree.report.tables import Table, frame
from banditree.report.words import count, number
from banditree.simulation.joining import BY_POLICY, joined
from banditree.simulation.run_outcome import Run, one_engine
from banditree.simulation.statistics import OverSeeds, over_seeds

if TYPE_CHECKING:
    from banditree.report.document import Document, Picture

Floats = NDArray[np.float64]
Built = tuple[str, Mapping[str, Any]]  # a policy's class, and the numbers and texts among its parameters
COLUMNS = ("policy", "seed", "time", "regret")
ROUNDING = 1e-12  # a relative difference of regrets that counts as none
MARK = "# banditree runs 1 "  # starts a saved file's first line, which has as JSON what is not in the columns


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """The mean difference in regret of two policies on the same seeds, a minus b, with a 95% interval."""

    a: str
    b: str
    difference: float
    se: float
    z: float
    seeds: int

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of a 95% interval for the difference, by Student's t."""
        return student_interval(self.difference, self.se, self.seeds)

    def document(self) -> Document:
        from banditree.report.document import Document

        seeds = count(self.seeds, "paired seed")
        if self.difference == 0:
            return Document(f"{self.a} has the same regret as {self.b} ({seeds})")
        less = "less" if self.difference < 0 else "more"
        return Document(
            f"{self.a} has {number(abs(self.difference), 4)} {less} regret than {self.b} (95% interval of the "
            f"difference {words.interval(self.interval, partial(number, digits=4))}, z = {self.z:.2f}, {seeds})"
        )

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"interval": self.interval}


@dataclass(frozen=True, eq=False, repr=False)
class Runs(Result):
    """Regret of every policy on every seed, with plays and wall times. Printing shows the table."""

    times: NDArray[np.int64]  # (times,) the last is the horizon
    seeds: tuple[int, ...]
    regret: Mapping[str, Floats]  # {policy: (seeds, times)} cumulative pseudo-regret
    engine: Mapping[str, str]  # {policy: "native", or "readable" if any of its runs was}
    evaluations: Mapping[str, Floats]  # {policy: (seeds,)} children sampled or scored per step
    seconds: Mapping[str, float]  # {policy: wall time of all its runs, or of one replicate of each}
    clusters: Mapping[str, Sequence[Mapping[Any, float]]]  # {policy: {top cluster: plays} for each seed}
    plays: Mapping[str, NDArray[np.int64]]  # {policy: (seeds, arms)}, where all seeds have the same instance
    arms: tuple[Any, ...]  # the order of plays; empty where instances differ
    problem: str
    instance: Any = None  # the instance, where all seeds have the same one; not saved
    built: Mapping[str, Built] = field(default_factory=dict)  # {policy: its class and parameters}, for built-in ones
    replicates: Mapping[str, Floats] = field(default_factory=dict)
    # {policy: (seeds, replicates, times)} where policies ran several times per seed and regret is the mean; not saved

    @classmethod
    def gather(
        cls,
        runs: Mapping[str, list[Run]],
        *,
        seeds: Sequence[int],
        times: NDArray[Any],
        problem: Any,
        instance: Any = None,
        built: Mapping[str, Built] | None = None,
    ) -> Runs:
        """Collect single runs, each list in the order of the seeds. ``instance`` is None where seeds differ."""
        fixed = instance is not None
        if fixed and len({len(run.plays) for each in runs.values() for run in each}) > 1:
            warnings.warn(
                f"{problem!r:.60} says fixed = True, but seeds have different arms; plays are left out", stacklevel=4
            )
            fixed, instance = False, None
        replicated = {
            name: np.array([run.replicates for run in each])
            for name, each in runs.items()
            if all(run.replicates is not None for run in each)
        }
        fixed = fixed and not replicated
        return cls(
            times=times,
            seeds=tuple(seeds),
            regret={name: np.array([run.regret for run in each]) for name, each in runs.items()},
            engine={name: one_engine(run.engine for run in each) for name, each in runs.items()},
            evaluations={name: np.array([run.evaluations for run in each]) for name, each in runs.items()},
            seconds={name: sum(run.seconds for run in each) for name, each in runs.items()},
            clusters={name: [run.clusters for run in each] for name, each in runs.items()},
            plays={name: np.array([run.plays for run in each]) for name, each in runs.items()} if fixed else {},
            arms=instance.tree.arms if fixed else (),
            problem=repr(problem),
            instance=instance,
            built=built or {},
            replicates=replicated,
        )

    def select(self, policies: Iterable[str]) -> Runs:
        """Return the runs of these policies alone, in this order.

        >>> import banditree as bt
        >>> runs = bt.simulate([bt.TS, bt.TSC], bt.problems.strong_dominance(), horizon=10, seeds=2)
        >>> runs.select(["TSC"]).policies
        ('TSC',)
        """
        names = [policies] if isinstance(policies, str) else list(policies)
        if not names or len(set(names)) < len(names):
            raise InvalidValue(f"policies {names} must name at least one policy, and none twice")
        for name in names:
            self._check(name)
        return self._keyed({name: name for name in names})

    def rename(self, names: Mapping[str, str]) -> Runs:
        """Return the same runs with policies renamed, {old name: new name}; other policies keep their names.

        >>> import banditree as bt
        >>> runs = bt.simulate([bt.TS, bt.TSC], bt.problems.strong_dominance(), horizon=10, seeds=2)
        >>> runs.rename({"TSC": "clustered"}).policies
        ('TS', 'clustered')
        """
        for name in names:
            self._check(name)
        found = {name: names.get(name, name) for name in self.policies}
        if len(set(found.values())) < len(found):
            raise InvalidValue(f"two policies would have the same name among {list(found.values())}; give other names")
        return self._keyed(found)

    def with_replicates(self, more: Runs) -> Runs:
        """Add more replicates of the same policies on the same seeds, as if all had been run at once."""
        if (self.policies, self.seeds, self.times.tolist()) != (more.policies, more.seeds, more.times.tolist()):
            raise InvalidValue("replicates must be of the same policies, seeds and times")
        if not (self.replicates and more.replicates):
            raise InvalidValue("there are no replicates to add up; call simulate with replicates above 1")
        each = {name: np.concatenate([self.replicates[name], more.replicates[name]], axis=1) for name in self.policies}
        share = {name: self.replicates[name].shape[1] / each[name].shape[1] for name in self.policies}

        def mixed(name: str, ours: Any, theirs: Any) -> Any:
            return share[name] * ours + (1 - share[name]) * theirs

        return replace(
            self,
            regret={name: values.mean(axis=1) for name, values in each.items()},
            engine={name: one_engine((self.engine[name], more.engine[name])) for name in each},
            evaluations={name: mixed(name, self.evaluations[name], more.evaluations[name]) for name in each},
            seconds={name: mixed(name, self.seconds[name], more.seconds[name]) for name in each},
            clusters={
                name: [
                    {key: mixed(name, ours[key], theirs[key]) for key in ours}
                    for ours, theirs in zip(self.clusters[name], more.clusters[name], strict=True)
                ]
                for name in each
            },
            replicates=each,
        )

    def _check(self, name: str) -> None:
        if name not in self.regret:
            raise InvalidValue(f"no policy {name!r}; there are {', '.join(self.regret)}")

    def _keyed(self, names: Mapping[str, str]) -> Runs:
        """Keep the policies in ``{name: new name}``, in its order."""
        fields: dict[str, Any] = {}
        for field_name in BY_POLICY:
            values = getattr(self, field_name)
            fields[field_name] = {new: values[name] for name, new in names.items() if name in values}
        return replace(self, **fields)

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies, in the order they were given."""
        return tuple(self.regret)

    def _at(self, time: int | None) -> int:
        """Return the index of a time among the checkpoints."""
        if time is None:
            return -1
        found = np.flatnonzero(self.times == time) if np.isscalar(time) else np.empty(0)
        if len(found) == 0:
            raise InvalidValue(
                f"regret was not recorded at time {time}; times are {self.times[:3]} ... {self.times[-1]}"
            )
        return int(found[0])

    def table(self, time: int | None = None) -> Table:
        """Return one row per policy, best first: regret at the horizon or at ``time``, cost and wall time per step."""
        at, n = self._at(time), len(self.seeds)
        rows = []
        for name, regret in self.regret.items():
            found = over_seeds(regret[:, at])
            microseconds = 1e6 * self.seconds[name] / (n * int(self.times[-1]))
            cost = float(np.mean(self.evaluations[name]))
            rows.append((name, found.mean, found.sd, found.se, found.interval, cost, microseconds))
        rows.sort(key=lambda row: row[1])
        ranked = [(*row[:5], rank, *row[5:], self.engine[row[0]]) for rank, row in enumerate(rows, start=1)]
        columns = ("policy", "mean", "sd", "se", "interval", "rank", "evaluations", "microseconds", "engine")
        return Table(columns, ranked)

    def compare(self, a: str, b: str, time: int | None = None) -> Comparison:
        """Compare the regret of ``a`` with that of ``b``, paired by seed."""
        for name in (a, b):
            self._check(name)
        ours, theirs = (self.regret[name][:, self._at(time)] for name in (a, b))
        difference = ours - theirs
        difference[np.abs(difference) <= ROUNDING * np.maximum(np.abs(ours), np.abs(theirs))] = 0.0
        found = over_seeds(difference)
        z = found.mean / found.se if found.se > 0 else float("nan")
        return Comparison(a, b, found.mean, found.se, z, found.seeds)

    def over_seeds(self, policy: str) -> OverSeeds:
        """Return mean, standard deviation and standard error of a policy's regret at every time: (times,) each."""
        self._check(policy)
        return over_seeds(self.regret[policy])

    def join(self, other: Runs) -> Runs:
        """Join other runs of the same problem: more policies on the same seeds, or the same policies on more seeds.

        ``runs | others`` does the same. Both simulations need the same ``rng``, so that a seed is the same instance.

        >>> import banditree as bt
        >>> problem = bt.problems.strong_dominance()
        >>> runs, later = (bt.simulate([p], problem, horizon=10, seeds=2) for p in (bt.TS, bt.TSC))
        >>> (runs | later).policies
        ('TS', 'TSC')
        """
        return joined(self, other)

    def __or__(self, other: Any) -> Runs:
        return self.join(other) if isinstance(other, Runs) else NotImplemented

    def plot(self, **options: Any) -> Any:
        """Plot mean regret over time with bands; `banditree.plots.regret` has the options. Returns the Axes."""
        from banditree import plots

        return plots.regret(self, **options)

    def _records(self) -> Iterator[tuple[str, int, int, float]]:
        for name, regret in self.regret.items():
            for seed, row in zip(self.seeds, regret.tolist(), strict=True):
                for time, value in zip(self.times.tolist(), row, strict=True):
                    yield name, seed, time, value

    def to_frame(self) -> Any:
        """Return one row per policy, seed and time, in the library that is installed: pandas, Polars or PyArrow."""
        return frame(dict(zip(COLUMNS, map(list, zip(*self._records(), strict=True)), strict=True)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file that any tool can read; what does not fit its columns is in the first line, a comment."""
        rest = {
            "problem": self.problem,
            "engine": self.engine,
            "seconds": self.seconds,
            "evaluations": {name: values.tolist() for name, values in self.evaluations.items()},
            "clusters": {name: [list(seed.items()) for seed in seeds] for name, seeds in self.clusters.items()},
            "plays": {name: plays.tolist() for name, plays in self.plays.items()},
            "arms": self.arms,
            "built": self.built,
        }
        text = io.StringIO()
        text.write(MARK + json.dumps(rest) + "\n")
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)  # names may hold anything
        writer.writerow(COLUMNS)
        writer.writerows(self._records())
        write_whole(path, [text.getvalue().encode()])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Read what `save` wrote: everything except the instance and the replicates."""
        first, _, text = read_whole(path).decode("utf-8", "replace").partition("\n")
        if not first.startswith(MARK):
            raise BadFile(f"{path} was not written by Runs.save; its first line must start with {MARK!r}")
        try:
            rest = json.loads(first.removeprefix(MARK))
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            names = list(rest["engine"])
            seeds = tuple(dict.fromkeys(int(row["seed"]) for row in rows))
            times = list(dict.fromkeys(int(row["time"]) for row in rows))
            keys = [(row["policy"], int(row["seed"]), int(row["time"])) for row in rows]
            if keys != list(product(names, seeds, times)):
                raise ValueError("some rows are missing or out of order")
            for what in ("evaluations", "clusters", "plays", "seconds"):
                if list(rest[what]) != names and (what != "plays" or rest[what]):
                    raise ValueError(f"{what} are not those of {', '.join(names)}")
                if what != "seconds" and any(len(each) != len(seeds) for each in rest[what].values()):
                    raise ValueError(f"{what} are not those of {len(seeds)} seeds")
            values = np.array([float(row["regret"]) for row in rows]).reshape(len(names), len(seeds), len(times))
            return cls(
                times=np.array(times, np.int64),
                seeds=seeds,
                regret=dict(zip(names, values, strict=True)),
                engine=rest["engine"],
                evaluations={name: np.array(each, float) for name, each in rest["evaluations"].items()},
                seconds=rest["seconds"],
                clusters={name: [dict(seed) for seed in each] for name, each in rest["clusters"].items()},
                plays={name: np.array(each, np.int64) for name, each in rest["plays"].items()},
                arms=tuple(rest["arms"]),
                problem=rest["problem"],
                built={name: (kind, dict(given)) for name, (kind, given) in rest.get("built", {}).items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
            raise BadFile(f"{path} is damaged: {error}") from None

    def document(self) -> Document:
        from banditree.report.document import Document, Note

        best, *others = self.table()
        after = f"after {count(int(self.times[-1]), 'step')}, over {count(len(self.seeds), 'seed')}"
        if others:
            second = f"{others[0].policy} has {number(others[0].mean)}"
            headline = f"{best.policy} has the least regret, {number(best.mean)}, {after}; {second}."
        else:
            headline = f"{best.policy} has a regret of {number(best.mean)} {after}."
        table = self.table().grid()
        return Document(headline, (table, *self._pictures(), Note(f"Problem: {self.problem}")), name="Regret")

    def _pictures(self) -> tuple[Picture, ...]:
        from banditree.report.document import Picture

        def draw() -> str:
            from banditree import plots

            return plots.svg(plots.regret(self, ax=plots.sheet(), legend="below"))

        return (Picture(draw, alt=f"Regret over time: {', '.join(self.policies)}"),)

    def facts(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "horizon": self.times[-1],
            "seeds": len(self.seeds),
            "policies": self.table(),
            "times": self.times,
            "regret": {name: regret.mean(axis=0) for name, regret in self.regret.items()},
        }
