"""The results of a simulation: one run, the runs of every policy and seed, comparisons of policies, and files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, starmap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditree.base import words
from banditree.base.arrays import Array, Floats
from banditree.base.intervals import chance_below, student_interval
from banditree.base.result import Result
from banditree.base.tables import Table, frame
from banditree.base.words import count, number
from banditree.errors import InvalidType, InvalidValue
from banditree.problems.instance import AnyInstance, describe
from banditree.simulation import files
from banditree.simulation.statistics import OverSeeds, over_seeds
from banditree.tree.build import Name

if TYPE_CHECKING:
    from banditree.base.document import Document, Note, Picture

Ints = NDArray[np.int64]
Built = tuple[str, Mapping[str, object]]  # a policy's class, and the numbers and texts among its parameters

BY_POLICY = (
    *("regret", "engine", "evaluations", "seconds", "clusters", "plays", "built", "replicates"),
    *("traces", "cluster_traces", "simple_regret"),
)  # {policy: ...}
RELATIVE_ROUNDING = 1e-12  # regrets that differ by a smaller share are equal


@dataclass
class Run:
    """What one policy did on the instance of one seed."""

    engine: str
    regret: Floats  # (times,) cumulative
    plays: Ints  # (arms,) in the order of the instance's arms
    evaluations: float = np.nan  # children sampled or scored per step, in a plain walk
    seconds: float = 0.0
    clusters: Mapping[Name, float] = field(default_factory=dict)  # plays of each top cluster
    replicates: Floats | None = None  # (replicates, times) regret of each, if this is the mean of several runs
    trace: Ints | None = None  # (times, arms) plays until each time, if they are wanted
    cluster_trace: Mapping[Name, Ints] = field(default_factory=dict)  # {top cluster: (times,)}
    simple_regret: Floats | None = None  # (times,) of the arm played most often so far

    @classmethod
    def empty(cls, engine: str, n_times: int, n_arms: int, *, traced: bool = False) -> Run:
        # np.full and not np.zeros, which would leave it to the first steps to allocate a large array.
        trace = np.full((n_times, n_arms), 0, np.int64) if traced else None
        return cls(engine, np.zeros(n_times), np.full(n_arms, 0, np.int64), trace=trace)

    @classmethod
    def mean(cls, runs: Sequence[Run]) -> Run:
        """Average several runs of a policy on the same instance; plays per arm are left out."""
        regret = np.array([run.regret for run in runs])
        return cls(
            engine=common_engine(run.engine for run in runs),
            regret=regret.mean(axis=0),
            plays=runs[0].plays[:0],
            evaluations=float(np.mean([run.evaluations for run in runs])),
            seconds=sum(run.seconds for run in runs) / len(runs),
            clusters={key: sum(run.clusters[key] for run in runs) / len(runs) for key in runs[0].clusters},
            replicates=regret,
        )


def common_engine(engines: Iterable[str]) -> str:
    """Return the engine of several runs: "native" only if all of them were."""
    return "native" if all(engine == "native" for engine in engines) else "readable"


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

    @property
    def p(self) -> float:
        """The two-sided p-value of the paired t-test; NaN for one seed."""
        if self.seeds < 2:
            return float("nan")
        if self.se == 0:
            return float(self.difference == 0)
        return 2 * chance_below(-abs(self.z), self.seeds)

    def document(self) -> Document:
        from banditree.base.document import Document

        seeds = count(self.seeds, "paired seed")
        if self.difference == 0:
            return Document(f"{self.a} has the same regret as {self.b} ({seeds})")
        less = "less" if self.difference < 0 else "more"
        return Document(
            f"{self.a} has {number(abs(self.difference), 4)} {less} regret than {self.b} (95% interval of the "
            f"difference {words.interval(self.interval, partial(number, digits=4))}, z = {self.z:.2f}, {seeds})"
        )

    def facts(self) -> dict[str, object]:
        return super().facts() | {"interval": self.interval}


@dataclass(frozen=True, eq=False, repr=False)
class Runs(Result):
    """Regret of every policy on every seed, with plays and wall times. Printing shows the table."""

    times: Ints  # (times,) the last is the horizon
    seeds: tuple[int, ...]
    regret: Mapping[str, Floats]  # {policy: (seeds, times)} cumulative pseudo-regret
    engine: Mapping[str, str]  # {policy: "native", or "readable" if any of its runs was}
    evaluations: Mapping[str, Floats]  # {policy: (seeds,)} children sampled or scored per step
    seconds: Mapping[str, float]  # {policy: wall time of all its runs, or of one replicate of each}
    clusters: Mapping[str, Sequence[Mapping[Name, float]]]  # {policy: {top cluster: plays} for each seed}
    plays: Mapping[str, Ints]  # {policy: (seeds, arms)}, where all seeds have the same instance
    arms: tuple[Name, ...]  # the order of plays; empty where instances differ
    problem: str
    instance: AnyInstance | None = None  # the instance, where all seeds have the same one; not saved
    built: Mapping[str, Built] = field(default_factory=dict)  # {policy: its class and parameters}, for built-in ones
    replicates: Mapping[str, Floats] = field(default_factory=dict)
    # {policy: (seeds, replicates, times)} where policies ran several times per seed and regret is the mean
    traces: Mapping[str, Ints] = field(default_factory=dict)  # {policy: (seeds, times, arms)} plays until each time
    cluster_traces: Mapping[str, Sequence[Mapping[Name, Ints]]] = field(default_factory=dict)
    # {policy: {top cluster: (times,)} for each seed}; these three with simulate(..., traces=True)
    simple_regret: Mapping[str, Floats] = field(default_factory=dict)  # {policy: (seeds, times)}
    made: Mapping[str, object] = field(default_factory=dict)  # rng, delay, batch and version; `about` has it all

    @classmethod
    def gather(
        cls,
        runs: Mapping[str, list[Run]],
        *,
        seeds: Sequence[int],
        times: Ints,
        problem: object,
        instance: AnyInstance | None = None,
        built: Mapping[str, Built] | None = None,
        made: Mapping[str, object] | None = None,
    ) -> Runs:
        """Collect single runs, each list in the order of the seeds. ``instance`` is None where seeds differ."""
        if instance is not None and len({len(run.plays) for of_policy in runs.values() for run in of_policy}) > 1:
            warnings.warn(
                f"{problem!r:.60} says fixed = True, but seeds have different arms; plays are left out", stacklevel=4
            )
            instance = None
        replicates = _stacked(runs, "replicates")
        plays: dict[str, Ints] = {}
        arms: tuple[Name, ...] = ()
        if instance is not None and not replicates:
            plays = _stacked(runs, "plays")
            arms = instance.tree.arms
        return cls(
            times=times,
            seeds=tuple(seeds),
            regret=_stacked(runs, "regret"),
            engine={name: common_engine(run.engine for run in of_policy) for name, of_policy in runs.items()},
            evaluations={name: np.array([run.evaluations for run in of_policy]) for name, of_policy in runs.items()},
            seconds={name: sum(run.seconds for run in of_policy) for name, of_policy in runs.items()},
            clusters={name: [run.clusters for run in of_policy] for name, of_policy in runs.items()},
            plays=plays,
            arms=arms,
            problem=describe(problem),
            instance=instance,
            built=built or {},
            replicates=replicates,
            made=made or {},
            traces=_stacked(runs, "trace"),
            cluster_traces={
                name: [run.cluster_trace for run in of_policy]
                for name, of_policy in runs.items()
                if all(run.trace is not None for run in of_policy)
            },
            simple_regret=_stacked(runs, "simple_regret"),
        )

    @property
    def about(self) -> dict[str, object]:
        """What the runs were made with: rng, delay, batch, horizon, problem, version. Joining what differs is refused.

        >>> import banditree as bt
        >>> runs = bt.simulate([bt.TS], bt.problems.strong_dominance(), horizon=10, seeds=2, rng=7)
        >>> runs.about["rng"], runs.about["horizon"]
        (7, 10)
        """
        return {**self.made, "horizon": int(self.times[-1]), "problem": self.problem}

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies, in the order they were given."""
        return tuple(self.regret)

    # ---------------------------------------------------------------- what the numbers say

    def table(self, time: int | None = None) -> Table:
        """Return one row per policy, best first: regret at the horizon or at ``time``, cost and wall time per step."""
        index, n_seeds = self._time_index(time), len(self.seeds)
        rows = []
        for name, regret in self.regret.items():
            summary = over_seeds(regret[:, index])
            microseconds = 1e6 * self.seconds[name] / (n_seeds * int(self.times[-1]))
            cost = float(np.mean(self.evaluations[name]))
            rows.append((name, summary.mean, summary.sd, summary.se, summary.interval, cost, microseconds))
        rows.sort(key=lambda row: row[1])
        ranked = [(*row[:5], rank, *row[5:], self.engine[row[0]]) for rank, row in enumerate(rows, start=1)]
        columns = ("policy", "mean", "sd", "se", "interval", "rank", "evaluations", "microseconds", "engine")
        return Table(columns, ranked)

    def compare(self, a: str, b: str, time: int | None = None) -> Comparison:
        """Compare the regret of two policies, paired by seed, at the horizon or at a recorded ``time``."""
        for name in (a, b):
            self._check_policy(name)
        index = self._time_index(time)
        regret_a, regret_b = self.regret[a][:, index], self.regret[b][:, index]
        difference = regret_a - regret_b
        difference[np.abs(difference) <= RELATIVE_ROUNDING * np.maximum(np.abs(regret_a), np.abs(regret_b))] = 0.0
        summary = over_seeds(difference)
        z = summary.mean / summary.se if summary.se > 0 else float("nan")
        return Comparison(a, b, summary.mean, summary.se, z, summary.seeds)

    def compare_all(self, time: int | None = None) -> Table:
        """Compare all pairs of policies as `compare` does, with p-values as they are and adjusted after Holm (1979).

        Rejecting where ``holm`` is below 0.05 finds a difference where there is none in at most 5% of all tables,
        however many pairs there are.

        >>> import banditree as bt
        >>> runs = bt.simulate([bt.TS, bt.TSC, bt.UCB1], bt.problems.strong_dominance(), horizon=500, seeds=5)
        >>> runs.compare_all().columns
        ('a', 'b', 'difference', 'interval', 'p', 'holm')
        """
        pairs = sorted(starmap(partial(self.compare, time=time), combinations(self.policies, 2)), key=lambda it: it.p)
        adjusted = np.maximum.accumulate([min((len(pairs) - i) * it.p, 1.0) for i, it in enumerate(pairs)]).tolist()
        rows = [(it.a, it.b, it.difference, it.interval, it.p, holm) for it, holm in zip(pairs, adjusted, strict=True)]
        return Table(("a", "b", "difference", "interval", "p", "holm"), rows)

    def over_seeds(self, policy: str) -> OverSeeds:
        """Return mean, standard deviation and standard error of a policy's regret at every time: (times,) each."""
        self._check_policy(policy)
        return over_seeds(self.regret[policy])

    def plot(self, **options: Any) -> Any:
        """Plot mean regret over time with bands; `banditree.plots.regret` has the options. Returns the Axes."""
        from banditree import plots

        return plots.regret(self, **options)

    def document(self) -> Document:
        from banditree.base.document import Document, Note

        best, *others = self.table()
        after = f"after {count(int(self.times[-1]), 'step')}, over {count(len(self.seeds), 'seed')}"
        if others:
            second = f"{others[0].policy} has {number(others[0].mean)}"
            headline = f"{best.policy} has the least regret, {number(best.mean)}, {after}; {second}."
        else:
            headline = f"{best.policy} has a regret of {number(best.mean)} {after}."
        table = self.table().grid()
        notes = (Note(f"Problem: {self.problem}"), *made_notes(self.made))
        return Document(headline, (table, self.picture(), *notes), name="Regret")

    def picture(self, width: float = 6.4, height: float = 3.8) -> Picture:
        """Return the regret of every policy over time as a part of a document; the size is in inches."""
        from banditree.base.document import Picture

        def draw() -> str:
            from banditree import plots

            return plots.svg(plots.regret(self, ax=plots.sheet(width, height), legend="below"))

        return Picture(draw, alt=f"Regret over time: {', '.join(self.policies)}")

    def facts(self) -> dict[str, object]:
        return {
            **self.about,
            "seeds": len(self.seeds),
            "policies": self.table(),
            "times": self.times,
            "regret": {name: regret.mean(axis=0) for name, regret in self.regret.items()},
        }

    def _check_policy(self, name: str) -> None:
        if name not in self.regret:
            raise InvalidValue(f"no policy {name!r}; there are {', '.join(self.regret)}")

    def _time_index(self, time: int | None) -> int:
        """Return the index of a time among the checkpoints; of the horizon for None."""
        if time is None:
            return -1
        matches = np.flatnonzero(self.times == time) if np.isscalar(time) else np.empty(0)
        if len(matches) == 0:
            raise InvalidValue(
                f"regret was not recorded at time {time}; times are {self.times[:3]} ... {self.times[-1]}"
            )
        return int(matches[0])

    # ---------------------------------------------------------------- selecting and joining

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
            self._check_policy(name)
        return self._with_names({name: name for name in names})

    def rename(self, names: Mapping[str, str]) -> Runs:
        """Return the same runs with policies renamed, {old name: new name}; other policies keep their names.

        >>> import banditree as bt
        >>> runs = bt.simulate([bt.TS, bt.TSC], bt.problems.strong_dominance(), horizon=10, seeds=2)
        >>> runs.rename({"TSC": "clustered"}).policies
        ('TS', 'clustered')
        """
        for name in names:
            self._check_policy(name)
        new_names = {name: names.get(name, name) for name in self.policies}
        if len(set(new_names.values())) < len(new_names):
            raise InvalidValue(
                f"two policies would have the same name among {list(new_names.values())}; give other names"
            )
        return self._with_names(new_names)

    def _with_names(self, names: Mapping[str, str]) -> Runs:
        """Keep the policies in ``{name: new name}``, in its order."""
        fields: dict[str, Any] = {}
        for field_name in BY_POLICY:
            values = getattr(self, field_name)
            fields[field_name] = {new: values[name] for name, new in names.items() if name in values}
        return replace(self, **fields)

    def join(self, other: Runs) -> Runs:
        """Join other runs of the same problem: more policies on the same seeds, or the same policies on more seeds.

        ``runs | others`` does the same. Both simulations need the same ``rng``, so that a seed is the same instance.

        >>> import banditree as bt
        >>> problem = bt.problems.strong_dominance()
        >>> runs, later = (bt.simulate([p], problem, horizon=10, seeds=2) for p in (bt.TS, bt.TSC))
        >>> (runs | later).policies
        ('TS', 'TSC')
        """
        if type(other) is not type(self):
            raise InvalidType(f"{other!r:.60} must be runs, as bt.simulate returns them")
        ours, theirs = self.about, other.about
        differs = [name for name in ours if name in theirs and ours[name] != theirs[name]]  # files of 0.3 say less
        if differs:
            pairs = ", ".join(f"{name} {ours[name]!s:.300} and {theirs[name]!s:.300}" for name in differs)
            raise InvalidValue(f"these runs were made with different settings: {pairs}; simulate both with the same")
        if self.times.tolist() != other.times.tolist():
            raise InvalidValue(
                "these runs have different times; give both simulations the same horizon and checkpoints"
            )
        if set(self.policies) == set(other.policies):
            twice = sorted({*self.seeds} & {*other.seeds})
            if twice:
                raise InvalidValue(
                    f"seed {twice[0]} is in both; give the second simulation other seeds, or other policies"
                )
            fields = {**self._join_seeds(other), "seeds": self.seeds + other.seeds}
        elif self.seeds == other.seeds:
            in_both = [name for name in self.policies if name in other.policies]
            if in_both:
                raise InvalidValue(f"policy {in_both[0]!r} is in both; select or rename the policies of one of them")
            fields = {name: {**getattr(self, name), **getattr(other, name)} for name in BY_POLICY}
        else:
            raise InvalidValue("these runs share neither their seeds nor their policies, so they cannot be joined")
        have_same_arms = self.arms == other.arms
        if not have_same_arms:
            fields |= {"plays": {}, "arms": ()}
        if other.instance is None or not have_same_arms:
            fields["instance"] = None
        return replace(self, **fields)

    def _join_seeds(self, other: Runs) -> dict[str, Any]:
        """Return the fields by policy of the runs on the seeds of both."""
        fields: dict[str, object] = {}
        for field_name in BY_POLICY:
            ours, theirs = getattr(self, field_name), getattr(other, field_name)
            shared = [name for name in ours if name in theirs]
            if field_name == "replicates" and _count_replicates(ours) != _count_replicates(theirs):
                raise InvalidValue("these runs have different numbers of replicates")
            if field_name in files.BY_SEED:
                fields[field_name] = {name: np.concatenate([ours[name], theirs[name]]) for name in shared}
            elif field_name in ("clusters", "cluster_traces"):
                fields[field_name] = {name: [*ours[name], *theirs[name]] for name in shared}
            elif field_name == "seconds":
                fields[field_name] = {name: ours[name] + theirs[name] for name in shared}
            elif field_name == "engine":
                fields[field_name] = {name: common_engine((ours[name], theirs[name])) for name in shared}
            else:  # how policies were built
                fields[field_name] = {name: ours[name] for name in shared if ours[name] == theirs[name]}
        return fields

    def __or__(self, other: object) -> Runs:
        return self.join(other) if isinstance(other, Runs) else NotImplemented

    def _records(self) -> Iterator[tuple[str, int, int, float]]:
        """Yield one row per policy, seed and time."""
        for name, regret in self.regret.items():
            for seed, row in zip(self.seeds, regret.tolist(), strict=True):
                for time, value in zip(self.times.tolist(), row, strict=True):
                    yield name, seed, time, value

    def to_frame(self) -> Any:
        """Return one row per policy, seed and time, in the library that is installed: pandas, Polars or PyArrow."""
        return frame(dict(zip(files.COLUMNS, map(list, zip(*self._records(), strict=True)), strict=True)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: as ``.csv`` one row per policy, seed and time, for other tools; else NPZ with everything.

        `load` reads the latter. The instance is in neither.
        """
        if files.is_csv(path):
            return files.write_csv(path, files.COLUMNS, self._records())
        header, arrays = files.encode_runs(self)
        return files.write_npz(path, {"kind": "runs", **header}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Read what `save` wrote as ``.npz``: everything except the instance."""
        return files.read_runs(cls, path)


def _stacked(runs: Mapping[str, list[Run]], name: str) -> dict[str, Array]:
    """Return an array with one row per seed of every policy, where all seeds have one and these have the same shape."""
    by_policy = {policy: [getattr(run, name) for run in of_policy] for policy, of_policy in runs.items()}
    return {
        policy: np.array(rows)
        for policy, rows in by_policy.items()
        if all(row is not None and row.shape == rows[0].shape for row in rows)
    }


def _count_replicates(regret: Mapping[str, Floats]) -> dict[str, int]:
    return {name: values.shape[1] for name, values in regret.items()}


def made_notes(made: Mapping[str, object]) -> list[Note]:
    """Return a note that says what runs were made with, if that is known."""
    from banditree.base.document import Note

    text = ", ".join(f"{name} {value}" for name, value in made.items())
    return [Note(f"Made with {text}")] if text else []
