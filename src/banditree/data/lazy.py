"""Logs whose rows an engine keeps: DuckDB, Polars (lazy frames), Dask, Spark or Ibis. The engine sums, we add up.

What estimators need of a log are sums over its rows (`banditree.ope.sums`), so a log of any size is a group-by: first
per arm, which also counts what is wrong with the rows, then per arm, fold and band of propensities. Only policies that
learn from single rows see them, a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.base.words import count
from banditree.data import cells
from banditree.data.defects import Defect, quote
from banditree.data.folds import BLOCKS, FOLDS, UTC_NAMES, fold_expression, time_expression
from banditree.data.log import (
    CATEGORY,
    EMPTY_ARM,
    ESTIMATED,
    FITTED,
    WRONG_PROPENSITIES,
    Log,
    LogError,
    multiples,
    no_rows,
    read_log,
    read_paths,
)
from banditree.data.propensities import SHARES
from banditree.data.sources import MAX_NUMBER, TOO_LARGE, WAITING, Columns, engine_at_work
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import real
from banditree.tree import Tree
from banditree.tree.build import Name

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]  # of any engine

MAX_GROUPS = 200_000  # about as many sums are fetched: with more, bands of propensities are wider
MIN_WIDTH, WIDE = 1e-6, 1e-3  # of a band, relative; from WIDE on, results say so
BINS = 1000  # of times, at each look at them
CHUNK = 100_000  # rows in memory at a time
MAX_EXAMPLES = 5
ENGINES = {"DUCKDB": "DuckDB", "POLARS": "Polars", "DASK": "Dask", "PYSPARK": "Spark", "IBIS": "Ibis"}
ZONE_OF_SESSION = ("DuckDB", "Ibis", "Spark")  # show times in the zone of a session, and not of a column
KEPT = (
    "{}: the rows of this log are kept by {}, which only sums them; for what looks at single rows, read them, or a "
    "sample of them, into memory first, and give that to read_log"
)
NO_CHUNKS = (
    "{} does not hand over rows in chunks; write them to Parquet files, and give duckdb.sql(\"from '*.parquet'\")"
)
NO_ORDER = "the rows of a lazy log have no order; name the column of their times: read_log(..., time=...), or --time"
BANDS = (
    "propensities were summed in bands that are {:.1%} wide: ips, snips, dm, dr and sndr are exact; switch-dr, dros "
    "and intervals of rare rewards are approximate"
)
NO_CATEGORIES = (
    "the categories of {} are not known before all rows are read; build the policy with features= "
    "(bt.Features.from_frame of some of the rows)"
)


@dataclass(frozen=True)
class Named:
    """The columns of a log by what they are for."""

    arm: str
    reward: str
    propensity: str | None = None
    context: Mapping[str, str | None] = field(default_factory=dict)
    time: str | None = None
    fold: str | None = None
    path: str | None = None

    @property
    def given(self) -> list[str]:
        """All names, which must differ but for those of fold and time."""
        fold = None if self.fold == self.time else self.fold
        named = (self.arm, self.reward, self.measured, *self.context, self.time, fold, self.path)
        return [name for name in named if name is not None]

    @property
    def measured(self) -> str | None:
        """The column of propensities, if they are not estimated."""
        return None if self.propensity == ESTIMATED else self.propensity


def _kept(name: str, is_there: Callable[[LazyLog], bool] = lambda log: True) -> property:
    """Refuse to list rows that are not in memory; None where the log has no such column."""

    def get(log: LazyLog) -> None:
        if is_there(log):
            raise InvalidValue(KEPT.format(name, log.engine))

    return property(get)


class LazyLog(Log):
    """A log whose rows stay with an engine. Nothing is read until an answer is wanted; then the engine sums."""

    named: Named
    codes, rewards, columns = _kept("codes"), _kept("rewards"), _kept("columns")
    propensities = _kept("propensities", lambda log: log.named.propensity is not None)
    contexts = _kept("contexts", lambda log: bool(log.named.context))
    times = _kept("times", lambda log: log.named.time is not None)
    folds = _kept("folds", lambda log: log.named.fold is not None)

    def __init__(self, frame: Frame, named: Named, *, notes: Sequence[str] = (), learned_online: bool = False) -> None:
        self.frame, self.named, self.notes, self.learned_online = frame, named, tuple(notes), learned_online
        self.report: Callable[[str], None] = lambda what: None  # is told what the engine computes
        self.estimated = named.propensity == ESTIMATED
        self._summed: dict[str, Log] = {}

    @property
    def is_lazy(self) -> bool:
        return True

    @property
    def engine(self) -> str:
        name: str = self.frame.implementation.name
        return ENGINES.get(name, name.title())

    def __len__(self) -> int:
        return len(self.summed())

    def __repr__(self) -> str:
        return f"Log(rows kept by {self.engine}: {', '.join(self.named.given)})"

    @property
    def ids(self) -> tuple[Name, ...]:  # type: ignore[override]
        return self.summed().ids

    @property
    def without_reward(self) -> int:  # type: ignore[override]
        return self.summed().without_reward

    @property
    def paths(self) -> dict[Name, tuple[Name, ...]] | None:  # type: ignore[override]
        return None if self.named.path is None else self.summed().paths

    def summed(self, by: str = "arms") -> Log:
        if by not in self._summed:
            self._summed[by] = self._by_arm() if by == "arms" else self._by_band(by)
        log = self._summed[by]
        return replace(log, notes=(*self.notes, *log.notes), learned_online=self.learned_online)

    def counts(self, tree: Tree) -> tuple[Floats, Floats]:
        return self.summed().counts(tree)

    def split(self, share: float = 0.5) -> tuple[LazyLog, LazyLog]:
        """Split into the earlier ``share`` of the rows, to about a thousandth, and the rest."""
        share = real("share", share, 0.0, 1.0, why="the part of the rows that comes first")
        first, cut, end = self._cuts([share])
        if not first < cut < end:
            raise InvalidValue(
                f"share={share} of {count(len(self), 'row')} leaves one part empty; give a share nearer to 0.5"
            )
        return self._where(lambda time: time < cut), self._where(lambda time: time >= cut)

    def _where(self, test: Callable[[nw.Expr], nw.Expr]) -> LazyLog:
        """Keep only the rows at some times."""
        import narwhals as nw

        assert self.named.time is not None
        time = time_expression(nw.col(self.named.time), self.schema[self.named.time])
        assert time is not None
        log = LazyLog(self.frame.filter(test(time)), self.named, notes=self.notes, learned_online=self.learned_online)
        log.report = self.report
        log.__dict__["_centre"] = self._centre
        return log

    def chunks(self, *, by_name: bool = False) -> Iterator[Log]:
        import narwhals as nw

        context = self.named.context
        text = [
            column
            for column, kind in context.items()
            if kind == CATEGORY or not (self.schema[column].is_numeric() or self.schema[column] == nw.Boolean)
        ]
        if text and not by_name:
            raise InvalidType(NO_CATEGORIES.format(" and ".join(map(repr, text))))
        rows = self._cleaned.filter(~nw.col("bt_r").is_null()).select(self.named.arm, self.named.reward, *context)
        self.report(f"{self.engine}: rows, {CHUNK:,} at a time")
        with engine_at_work(self.engine, "reading rows"):
            for table in _tables(rows.to_native(), self.engine):
                yield read_log(table, arm=self.named.arm, reward=self.named.reward, context=context)

    # ------------------------------------------------------------ what the engine computes

    def _fetch(self, frame: Frame, what: str) -> nw.DataFrame[Any]:
        """Let the engine compute a table, and fetch it."""
        self.report(f"{self.engine}: {what}")
        with engine_at_work(self.engine, f"computing {what}"):
            return frame.collect(backend="pyarrow")

    def _ask(self, frame: Frame, what: str) -> dict[str, list[Any]]:
        """Let the engine compute a small table, and fetch its columns."""
        return self._fetch(frame, what).to_dict(as_series=False)

    @cached_property
    def schema(self) -> nw.Schema:
        with engine_at_work(self.engine, "looking up the columns"):
            return self.frame.collect_schema()

    def check_types(self) -> None:
        """Refuse columns that are neither numbers nor times where these are needed."""
        import narwhals as nw

        problems, named, schema = [], self.named, self.schema
        for column in filter(None, (named.reward, named.measured)):
            if not schema[column].is_numeric() and schema[column] != nw.Boolean:
                shown = self._ask(self.frame.select(column).head(MAX_EXAMPLES), f"the first rows of {column!r}")[column]
                wrong = next(iter(cells.numbers(shown, truths=True)[1].values()), f"a column of {schema[column]}")
                problems.append(Defect(None, column, f"{wrong}; give numbers, or cast the column in the query"))
        for column in filter(None, (named.time, named.fold)):
            if time_expression(nw.col(column), schema[column]) is None:
                what = "give numbers, dates or times, or cast the column in the query"
                problems.append(Defect(None, column, f"a column of {schema[column]}; {what}"))
            zone = getattr(schema[column], "time_zone", None)
            if zone not in (None, *UTC_NAMES) and self.engine in ZONE_OF_SESSION:
                problems.append(Defect(None, column, f"times in {zone}; set the time zone of the session to UTC"))
        if schema[named.arm].is_nested():
            problems.append(Defect(None, named.arm, f"a column of {schema[named.arm]}; give text or whole numbers"))
        if problems:
            raise LogError(f"the rows of {self.engine}", problems)

    @cached_property
    def _cleaned(self) -> Frame:
        """The rows with numbers in columns of our own: null where nothing is known, such as a reward to come."""
        import narwhals as nw

        named, schema = self.named, self.schema

        def number(column: str) -> nw.Expr:
            value = nw.col(column).cast(nw.Float64)
            return nw.when(~value.is_nan()).then(value) if schema[column].is_float() else value

        arm = nw.col(named.arm)
        if isinstance(schema[named.arm], nw.Categorical | nw.Enum):
            arm = arm.cast(nw.String)
        added: dict[str, Any] = {"bt_arm": arm, "bt_r": number(named.reward)}
        if named.measured is not None:
            added["bt_p"] = number(named.measured)
        if named.time is not None:
            added["bt_time"] = time_expression(nw.col(named.time), schema[named.time])
        fold = named.fold or named.time
        if fold is not None:
            added["bt_fold"] = fold_expression(nw.col(fold), schema[fold])
        return self.frame.with_columns(**added)

    @cached_property
    def _centre(self) -> float:
        """A number near the rewards, from which their powers are counted, so that little is lost to rounding.

        It is 0 where all are between -1 and 1, and else the median of some, which most may be equal to.
        """
        import narwhals as nw

        some = self._cleaned.filter(~nw.col("bt_r").is_null()).select("bt_r").head(BINS)
        first = np.array(self._ask(some, "the first rewards")["bt_r"], np.float64)
        first = first[np.abs(first) <= MAX_NUMBER]
        return 0.0 if not len(first) or (np.abs(first) <= 1).all() else float(np.median(first))

    def _by_arm(self) -> Log:
        """Sum the rewards of each arm, and refuse the log if something is wrong with its rows."""
        import narwhals as nw

        c, named = nw.col, self.named
        known, size = ~c("bt_r").is_null(), c("bt_r").abs()
        wrong = [
            (named.reward, "inf is not finite", "", size == np.inf),
            (named.reward, TOO_LARGE, "", (size > MAX_NUMBER) & (size < np.inf)),
        ]
        if named.measured is not None:
            tests = (c("bt_p").is_null(), c("bt_p") == 0, c("bt_p") < 0, c("bt_p") > 1)
            wrong += [
                (named.measured, *text, known & test) for text, test in zip(WRONG_PROPENSITIES, tests, strict=True)
            ]
        for column in filter(None, dict.fromkeys((named.time, named.fold))):
            is_empty = (
                c(column).is_null() | c(column).is_nan() if self.schema[column].is_float() else c(column).is_null()
            )
            wrong.append((column, "empty; every row needs a number or a time", "", known & is_empty))
        sums = {f"wrong{at}": test.cast(nw.Int64) for at, (*_, test) in enumerate(wrong)}
        sums |= {"all": nw.lit(1.0), "n": known.cast(nw.Int64), "r": c("bt_r"), "rr": (c("bt_r") - self._centre) ** 2}
        sums["different"] = (c("bt_r") != 0).cast(nw.Int64)
        ranges = {"low": c("bt_r"), "high": c("bt_r")}
        if named.measured is not None:
            ranges |= dict.fromkeys(("least", "most"), nw.when(known).then(c("bt_p")))
        totals = self._sum(self._cleaned, ["bt_arm"], sums, ranges, "sums by arm")
        n = totals["n"]
        names = {
            name for name, rows in zip(cells.names(totals["bt_arm"])[0], n, strict=True) if rows and name is not None
        }
        ids = sorted(names, key=lambda name: (isinstance(name, str), name))
        codes = _number_arms(totals.pop("bt_arm"), ids)
        problems = [
            self._defect(column, round(float(np.nansum(totals[f"wrong{at}"]))), text, kind, test)
            for at, (column, text, kind, test) in enumerate(wrong)
        ]
        is_empty = c("bt_arm").is_null()
        if self.schema[named.arm] == nw.String:
            is_empty = is_empty | (c("bt_arm").str.strip_chars() == "")
        problems.append(self._defect(named.arm, round(float(n[codes < 0].sum())), EMPTY_ARM, "", known & is_empty))
        missing = round(float((totals["all"] - n).sum()))
        if not n.sum():
            problems.append(Defect(None, None, no_rows(missing, self.notes)))
        if any(problems):
            raise LogError(f"the rows of {self.engine}", filter(None, problems))
        log = _log_of(ids, codes[n > 0], {name: each[n > 0] for name, each in totals.items()}, self._centre)
        notes: tuple[str, ...] = (WAITING.format(count(missing, "row")),) if missing else ()
        if self.estimated:
            shares = np.bincount(log.codes, log.counted) / log.counted.sum()
            log, notes = log.given(shares[log.codes]), (*notes, FITTED.format(SHARES))
        paths = None if named.path is None else self._paths(ids)
        # 0, or where most rewards differ from 0, a typical reward.
        usual = 0.0 if totals["different"].sum() < n.sum() / 2 else self._centre or log.extremes[1]
        log.unusual = (usual, np.zeros_like(log.rewards))
        return replace(log, without_reward=missing, estimated=self.estimated, notes=notes, paths=paths)

    def _defect(self, column: str, n: int, message: str, kind: str, test: nw.Expr) -> Defect | None:
        """Report rows with a problem, and show some of them; None if there are none."""
        if not n:
            return None
        some = self._cleaned.filter(test).select(*self.named.given).head(MAX_EXAMPLES)
        shown = self._ask(some, "examples of wrong rows")
        rows = [
            " ".join(f"{name}={quote(value)}" for name, value in zip(shown, row, strict=True))
            for row in zip(*shown.values(), strict=True)
        ]
        message = f"{message}; such as {'; '.join(rows)}"
        return Defect(None, column, message, kind, number=n)

    def _by_band(self, by: str) -> Log:
        """Sum per arm, part of the log and band of propensities: folds by a hash, or blocks in the order of time."""
        import narwhals as nw

        c, arms, centre = nw.col, self.summed(), self._centre
        rows, keys, parts, width = self._cleaned.filter(~c("bt_r").is_null()), ["bt_arm"], 1, 0.0
        if by == "blocks":
            _, *cuts, _ = self._cuts(np.arange(1, BLOCKS) / BLOCKS)
            rows = rows.with_columns(bt_part=_count_true([c("bt_time") >= cut for cut in cuts]))
            parts = BLOCKS
        elif (self.named.fold or self.named.time) is not None:
            rows, parts = rows.with_columns(bt_part=c("bt_fold")), FOLDS
        keys += ["bt_part"] if parts > 1 else []
        d, usual = c("bt_r") - centre, arms.unusual[0] if arms.unusual is not None else 0.0
        sums = {"n": nw.lit(1.0), "r": c("bt_r"), "rr": d * d, "rrr": d * d * d, "rrrr": d * d * d * d}
        sums["different"] = (c("bt_r") != usual).cast(nw.Int64)
        ranges = {"low": c("bt_r"), "high": c("bt_r")}
        if self.named.measured is not None:
            assert arms.reach is not None
            u = 1.0 / c("bt_p")
            sums |= {"u": u, "ru": d * u, "uu": u * u, "rru": d * d * u, "ruu": d * u * u, "rruu": d * d * u * u}
            ranges |= dict.fromkeys(("least", "most"), c("bt_p"))
            spread = float(np.log(arms.reach[1] / arms.reach[0]).sum())
            if spread > 0:
                width = max(spread * parts / MAX_GROUPS, MIN_WIDTH) if len(arms) > MAX_GROUPS else MIN_WIDTH
                rows, keys = rows.with_columns(bt_band=(c("bt_p").log() / width).floor()), [*keys, "bt_band"]
        by_what = " and ".join(key.removeprefix("bt_").replace("part", by.removesuffix("s")) for key in keys)
        totals = self._sum(rows, keys, sums, ranges, f"sums by {by_what}")
        codes = _number_arms(totals.pop("bt_arm"), arms.ids)
        log = replace(_log_of(arms.ids, codes, totals, centre), unusual=(usual, totals["different"]))
        if self.estimated:
            shares = np.bincount(codes, log.counted) / log.counted.sum()
            log = log.given(shares[codes])
        folds = totals["bt_part"].astype(np.intp) if parts > 1 else None
        log = replace(log, folds=folds, estimated=self.estimated, notes=arms.notes, paths=arms.paths)
        if self.named.context:
            log.notes = (*log.notes, "the model of rewards ignores the contexts, as rows are known by sums")
        if width > WIDE:
            log.notes = (*log.notes, BANDS.format(width))
        return log

    def _sum(
        self, rows: Frame, keys: list[str], sums: Mapping[str, nw.Expr], ranges: Mapping[str, nw.Expr], what: str
    ) -> dict[str, Any]:
        """Let the engine sum columns by group, and find the least and the largest of others: (groups,) each."""
        import narwhals as nw

        columns = {f"bt_of_{name}": expression for name, expression in (*sums.items(), *ranges.items())}
        ends = [
            getattr(nw.col(f"bt_of_{name}"), "min" if name in ("low", "least") else "max")().alias(name)
            for name in ranges
        ]
        grouped = rows.with_columns(**columns).group_by(*keys)
        summed = grouped.agg(*(nw.col(f"bt_of_{name}").sum().alias(name) for name in sums), *ends)
        table = self._fetch(summed, what)
        wanted = (*keys[1:], *sums, *ranges)
        floats = {name: np.array(table[name].cast(nw.Float64).to_numpy(), np.float64) for name in wanted}
        return {"bt_arm": table["bt_arm"].to_list(), **floats}

    def _cuts(self, shares: Sequence[float] | Floats) -> list[float]:
        """Find the first time, times before which about these shares of the rows lie, and one after all."""
        import narwhals as nw

        if self.named.time is None:
            raise InvalidValue(NO_ORDER)
        n = self.summed().counted.sum()
        time, wanted = nw.col("bt_time"), np.asarray(shares) * n
        rows = self._cleaned.filter(~nw.col("bt_r").is_null()).with_columns(bt_time=time.cast(nw.Float64))

        def look(low: float, high: float) -> list[tuple[float, float, float]]:
            """Return the first and the last time in each part of a span, and the number of rows: (parts,)."""
            part = rows.filter((time >= low) & (time <= high)) if low < high else rows
            step = (high - low) / BINS if low < high else np.inf
            part = part.with_columns(bt_bin=((time - low) / step).floor(), bt_one=nw.lit(1.0))
            sums = part.group_by("bt_bin").agg(low=time.min(), high=time.max(), n=nw.col("bt_one").sum())
            bins = self._ask(sums, "rows by time")
            return [*zip(bins["low"], bins["high"], bins["n"], strict=True)]

        spans = look(0.0, 0.0)
        while True:
            spans.sort()
            reached = np.cumsum([0.0, *(k for *_, k in spans)])  # before each span, and after the last
            at = np.clip(np.searchsorted(reached, wanted) - 1, 0, len(spans) - 1)
            wide = [spans[one] for one in at if spans[one][2] > 4 * n / BINS and spans[one][0] < spans[one][1]]
            if not wide:
                starts = np.array([*(low for low, *_ in spans), np.nextafter(spans[-1][1], np.inf)])
                is_after = np.abs(reached[at + 1] - wanted) <= np.abs(reached[at] - wanted)
                return [float(cut) for cut in (starts[0], *starts[at + is_after], starts[-1])]
            spans.remove(wide[0])
            spans += look(*wide[0][:2])

    def _paths(self, ids: Sequence[Name]) -> dict[Name, tuple[Name, ...]]:
        """Read each arm's path; if it has moved, the latest one."""
        import narwhals as nw

        path = self.named.path
        assert path is not None
        rows = self._cleaned.filter(~nw.col("bt_r").is_null()).group_by("bt_arm", path).agg(nw.col("bt_time").max())
        groups = self._ask(rows, "paths by arm")
        order = np.argsort(np.array(groups["bt_time"], np.float64), kind="stable")
        table = Columns(f"the rows of {self.engine}", {path: [groups[path][at] for at in order]}, range(len(order)))
        codes = _number_arms([groups["bt_arm"][at] for at in order], ids)
        paths = read_paths(table, path, ids, codes)
        table.check(LogError)
        return paths


# ---------------------------------------------------------------- from what the engine found


def _count_true(tests: Sequence[nw.Expr]) -> nw.Expr:
    import narwhals as nw

    first, *rest = [test.cast(nw.Int64) for test in tests]
    return sum(rest, start=first)


def _number_arms(values: Sequence[object], ids: Sequence[object]) -> Places:
    """Return the index of each arm in the ids, -1 for an empty one: (values,)."""
    index = {arm: at for at, arm in enumerate(ids)}
    return np.array([index.get(name, -1) for name in cells.names(values)[0]], np.intp)


def _log_of(ids: Sequence[Name], codes: Places, sums: Mapping[str, Floats], centre: float) -> Log:
    """Make a log of groups of rows from the engine's sums of powers of d = r - centre and u = 1 / propensity."""
    n, mean = sums["n"], sums["r"] / sums["n"]
    d = mean - centre
    bounds = sums["low"], sums["high"]
    varies = np.where(bounds[0] < bounds[1], np.maximum(sums["rr"] - n * d**2, 0.0), 0.0)
    ones, zeros = np.ones_like(mean), np.zeros_like(mean)
    log = Log(tuple(ids), codes, mean, plays=n, bounds=bounds, inside=multiples(varies, ones, zeros, zeros))
    if "rrrr" in sums:
        third = sums["rrr"] - 3 * d * sums["rr"] + 2 * n * d**3
        log.tails = third, sums["rrrr"] - 4 * d * sums["rrr"] + 6 * d**2 * sums["rr"] - 3 * n * d**4
    if "least" not in sums:
        return log
    reach = sums["least"], sums["most"]
    if "u" not in sums:  # only the rewards were summed
        return replace(log, reach=reach)
    u, ru = sums["u"] / n, sums["ru"] / n
    about = np.array(
        [
            [sums["rr"], sums["ru"], sums["rru"]],
            [sums["ru"], sums["uu"], sums["ruu"]],
            [sums["rru"], sums["ruu"], sums["rruu"]],
        ]
    )
    means = np.array([d, u, ru])
    about = np.moveaxis(about - n * means[:, None] * means[None, :], 2, 0)
    back = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, centre, 1.0]])  # r u = d u + centre u
    inside = back @ about @ back.T
    p, is_same = np.where(reach[0] == reach[1], reach[0], 1 / u), bounds[0] == bounds[1]
    inside[is_same] = multiples(inside[:, 1, 1], zeros, ones, mean)[is_same]
    is_same = reach[0] == reach[1]
    inside[is_same] = multiples(varies, ones, zeros, 1 / p)[is_same]
    return replace(log, propensities=p, inside=inside, reach=reach)


def _tables(native: Any, engine: str) -> Iterator[object]:
    """Read the rows of an engine's table in parts."""
    if engine == "DuckDB":
        return iter(map(_table_of_batch, native.to_arrow_reader(CHUNK)))
    if engine == "Ibis":
        return iter(map(_table_of_batch, native.to_pyarrow_batches(chunk_size=CHUNK)))
    if engine == "Polars" and hasattr(native, "collect_batches"):
        return iter(native.collect_batches(chunk_size=CHUNK, maintain_order=False))
    if engine == "Dask":
        return (part.compute() for part in native.partitions)
    raise InvalidType(NO_CHUNKS.format(engine))


def _table_of_batch(batch: object) -> object:
    import pyarrow

    return pyarrow.Table.from_batches([batch])
