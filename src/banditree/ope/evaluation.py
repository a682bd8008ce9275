"""Evaluate a policy on a log: what it would have earned in place of the logging policy, by several estimators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Self

import numpy as np

from banditree.base import words
from banditree.base.arrays import Floats
from banditree.base.document import Bullets, Columns, Document, Grid, Part, Picture
from banditree.base.intervals import Z95, wilson_interval
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, number
from banditree.data.log import ESTIMATED, Log
from banditree.errors import InvalidType, InvalidValue
from banditree.ope.estimators import DM, IPS, Estimator, estimated_scales, parse_estimators, scales, slope
from banditree.ope.models import fit_model
from banditree.ope.rare import MANY_EVENTS, Events, events_in_groups, rare_events, widen
from banditree.ope.rows import LogRows, find_tree, prepare_rows, propensities_change
from banditree.ope.sums import REWARD, WEIGHT, Form, Groups
from banditree.stream import Seed
from banditree.tree import Tree
from banditree.tree.build import Name

MAX_ARMS_NAMED = 20  # below a picture
MAX_UNSUPPORTED = 0.05  # with more of its probability on arms without rows, a target cannot be judged
MIN_EFFECTIVE_ROWS = 30  # with fewer effective rows, a normal interval cannot be trusted
MIN_EFFECTIVE_CONTRIBUTIONS = 10  # rows that determine the standard error, without which it cannot be trusted either
POWER = NormalDist().inv_cdf(0.8)  # enough rows to detect the estimated difference 4 times in 5
ROUNDING = 1e-12  # of a value: estimates that differ by less are equal
SMALLEST_SHARE = 0.01  # a difference below this share of the logging policy's value is not worth more rows
MAX_NAMED = 5  # arms named in the sentence, at most


@dataclass(frozen=True)
class Estimate:
    """The estimate of one estimator."""

    estimator: Estimator
    value: float  # the expected reward of one decision
    se: float  # standard error; NaN if there is none
    ess: float  # effective sample size: how many rows of equal weight would be as informative
    largest: float  # largest weight of a row
    form: Form = field(repr=False, compare=False)  # the scores
    groups: Groups = field(repr=False, compare=False)  # of the scores
    least: float = 0.0  # lower bound of the standard error, where all rewards that count are equal
    # With rare rewards (`banditree.ope.rare`): how much the value grows with each reward, (groups,), and the rewards.
    multipliers: Floats | None = field(default=None, repr=False, compare=False)
    events: Events | None = field(default=None, repr=False, compare=False)

    @property
    def scores(self) -> Floats:
        """One score per row of a log in memory: (n,)."""
        return self.form.mean

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95% interval: value ± 1.96 se, or wider where only few rows have a reward."""
        return widen(self.value, self.se, 0.95, self.multipliers, self.events)


@dataclass(frozen=True)
class Difference:
    """Target minus logging policy."""

    value: float
    se: float
    confidence: float = 0.95
    contributions: float = math.inf  # effective number of rows that determine the standard error
    multipliers: Floats | None = field(default=None, repr=False, compare=False)  # as those of an estimate
    events: Events | None = field(default=None, repr=False, compare=False)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The interval: value ± reach · se, or wider where only few rows have a reward."""
        return widen(self.value, self.se, self.confidence, self.multipliers, self.events)

    @property
    def n_events(self) -> int | None:
        """The number of rare rewards that the interval is based on; None where they are many."""
        if self.multipliers is None or self.events is None:
            return None
        return self.events.n if self.events.effective(self.multipliers) < MANY_EVENTS else None

    @property
    def reach(self) -> float:
        return Z95 if self.confidence == 0.95 else NormalDist().inv_cdf((1 + self.confidence) / 2)


@dataclass(frozen=True)
class Judgement:
    """A verdict, as a word for programs and as a sentence for people."""

    answer: str
    sentence: str
    difference: Difference | None


class Hint(str):
    """A note that says what to do, in words for Python; ``command`` says it with the options of the command."""

    __slots__ = ("command",)
    command: str

    def __new__(cls, text: str, command: str) -> Self:
        hint = super().__new__(cls, text)
        hint.command = command
        return hint


NEEDS_BEHAVIOUR = Hint(
    "the logging policy's probabilities of all arms: behaviour=, a policy or (n, arms) probabilities",
    "the logging policy's probabilities of all arms",
)
NEEDS_FOLDS = Hint(
    "folds of the rows, which the engine cuts by a column: read_log(..., fold=), whole numbers such as a visitor's id, "
    "or read_log(..., time=)",
    "folds of the rows, which the engine cuts by a column: --fold, whole numbers such as a visitor's id, or --time",
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """The result of `evaluate`. ``result["dr"]`` is one estimate; ``result.table()`` has all of them."""

    estimates: tuple[Estimate, ...]
    logging: Estimate  # the policy that wrote the log: the mean of its rewards
    unsupported: float  # share of the target's probability on arms without rows
    missing: tuple[Name, ...]  # those arms, the most likely first
    rows: int
    adaptive: bool  # whether rows are weighted because a learning policy wrote the log
    estimated: bool  # whether the propensities were estimated from the log itself
    notes: tuple[str, ...]
    inputs: LogRows = field(repr=False)

    def __getitem__(self, name: object) -> Estimate:
        label = name.label if isinstance(name, Estimator) else name
        matches = [one for one in self.estimates if label in (one.estimator.label, one.estimator.name)]
        if len(matches) != 1:
            labels = ", ".join(repr(estimate.estimator.label) for estimate in self.estimates)
            raise InvalidValue(f"{'several' if matches else 'no'} estimates of {label!r}; give one of {labels}")
        return matches[0]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __contains__(self, name: object) -> bool:
        return any(name in (one.estimator, one.estimator.label, one.estimator.name) for one in self.estimates)

    @property
    def trusted(self) -> Estimate:
        """The estimate that the verdict is based on: dr if available, else the next best."""
        return min(self.estimates, key=lambda estimate: estimate.estimator.rank)

    @cached_property
    def _judgement(self) -> Judgement:
        return judge(self)

    @property
    def verdict(self) -> str:
        """One sentence: better than the logging policy, worse, or what it would take to tell."""
        return self._judgement.sentence

    @property
    def answer(self) -> str:
        """The verdict in a word: "better", "worse", "same" or "cannot tell"."""
        return self._judgement.answer

    @property
    def difference(self) -> Difference | None:
        """Target minus logging policy, by the trusted estimate; None if that has no standard error."""
        return self._judgement.difference

    @property
    def caveat(self) -> tuple[str, ...]:
        """A warning about intervals that ignore a bias, if there are any."""
        estimates = [one for one in self.estimates if not math.isnan(one.se)]
        names = [one.estimator.name for one in estimates if not one.estimator.valid_interval]
        if not names:
            return ()
        biases = "the model's error, or differences between the arms of a cluster"
        return (f"the intervals of {', '.join(dict.fromkeys(names))} ignore their bias ({biases})",)

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row: target over logging policy."""
        return float(self.inputs.weights.max())

    def table(self) -> Table:
        """Tabulate value, standard error, interval, effective sample size and setting, one row per estimator."""
        columns = ("estimator", "value", "se", "interval", "ess", "setting")
        return Table(
            columns,
            [
                (e.estimator.name, e.value, e.se, e.interval, round(e.ess, 1), e.estimator.setting)
                for e in self.estimates
            ],
        )

    def facts(self) -> dict[str, object]:
        names = [estimate.estimator.name for estimate in self]
        estimates = {
            estimate.estimator.name if names.count(estimate.estimator.name) == 1 else estimate.estimator.label: {
                **_numbers(estimate),
                "ess": estimate.ess,
                "setting": estimate.estimator.setting,
            }
            for estimate in self
        }
        rest = ("verdict", "answer", "rows", "unsupported", "missing", "largest_weight", "adaptive", "notes")
        facts: dict[str, object] = {"estimates": estimates, "logging": _numbers(self.logging)}
        return facts | {name: getattr(self, name) for name in rest}

    def document(self) -> Document:
        logging = (
            f"The logging policy earned {number(self.logging.value, 4)} per decision "
            f"({words.interval(self.logging.interval)}) on {count(self.rows, 'row')}. Largest weight "
            f"{number(self.largest_weight, 4)}; {100 * self.unsupported:.3g}% of the target is on arms without rows."
        )
        notes = Bullets([*self.notes, *self.caveat])
        about = f"Evaluation · {count(self.rows, 'row')}"
        return Document(self.verdict, (*self.parts("the target"), logging, notes), name="Evaluation", about=about)

    def parts(self, name: str) -> list[Part]:
        """Show all estimates of this target, its weights and its support."""
        columns: Columns = {
            "estimator": lambda estimate: estimate.estimator.name,
            "setting": lambda estimate: estimate.estimator.setting,
            "value": lambda estimate: number(estimate.value, 4),
            "standard error": lambda estimate: number(estimate.se),
            "95% interval": lambda estimate: words.interval(estimate.interval),
            "effective rows": lambda estimate: number(estimate.ess),
        }
        return [Grid.of(self, columns, names=(0, 1), label=f"estimates for {name}"), *self._pictures(name)]

    def _pictures(self, name: str) -> list[Picture]:
        from banditree import plots

        tree, inputs = self.inputs.tree, self.inputs
        labels = [estimate.estimator.label for estimate in self]
        is_faint = [not estimate.estimator.valid_interval for estimate in self]
        shown = inputs.shown / self.rows
        worth = f"the rows are worth {number(self.trusted.ess)} of equal weight"
        never = f"{100 * self.unsupported:.3g}% of the target is on arms that the log never shows"
        if self.missing:
            named = ", ".join(map(str, self.missing[:MAX_ARMS_NAMED]))
            never += f": {named}" + (", ..." if len(self.missing) > MAX_ARMS_NAMED else "")
        circles = "".join(f" Open circles: {caveat}." for caveat in self.caveat)
        return [
            draw_intervals(
                labels,
                self.estimates,
                self.logging,
                f"All estimates of its reward per decision.{circles}",
                f"Intervals of the estimates for {name}",
                is_faint,
            ),
            Picture(
                lambda: plots.svg(plots.weights(inputs.weights, inputs.groups.counts, ax=plots.sheet())),
                f"Largest weight {number(self.largest_weight)}; {worth}.",
                f"How the weights of {name} add up",
            ),
            Picture(
                lambda: plots.svg(plots.support([*map(str, tree.arms)], inputs.target_mean, shown, ax=plots.sheet())),
                f"{never}.",
                f"Support of {name}",
            ),
        ]


def draw_intervals(
    labels: Sequence[str],
    estimates: Sequence[Estimate],
    logging: Estimate,
    caption: str,
    alt: str,
    is_faint: Sequence[bool] | None = None,
) -> Picture:
    """Draw intervals below each other, with the logging policy's reward as a band."""

    def draw() -> str:
        from banditree import plots

        values, errors = [estimate.value for estimate in estimates], [estimate.se for estimate in estimates]
        ax = plots.sheet(height=1.2 + 0.3 * len(labels))
        reference = (logging.value, logging.se)
        spans = [estimate.interval for estimate in estimates]
        drawn = plots.intervals(labels, values, errors, reference=reference, spans=spans, faint=is_faint, ax=ax)
        return plots.svg(drawn)

    return Picture(draw, caption, alt)


def _numbers(estimate: Estimate) -> dict[str, object]:
    return {"value": estimate.value, "se": estimate.se, "interval": estimate.interval}


def evaluate(
    log: Log,
    target: object,
    *,
    tree: Tree | None = None,
    behaviour: object = None,
    estimators: object = None,
    model: object = None,
    adaptive: bool | str = False,
    rng: Seed = 0,
) -> Evaluation:
    """Estimate what ``target`` would have earned per decision in place of the policy that wrote ``log``.

    Parameters
    ----------
    log
        The log, from `read_log`.
    target
        A policy, {arm: probability}, probabilities in the order of ``tree.arms``, (arms,) or (n, arms), "uniform", or
        "item:ID" for always the same arm.
    tree
        The tree of the arms; by default that of the target, or that of the log if its rows have paths.
    behaviour
        The logging policy, in the same forms. Only mips, offcem and ``adaptive=True`` need it; it is deduced if each
        arm's propensity is constant and they sum to 1.
    estimators
        Names in ``bt.ope.ESTIMATORS``, or estimators with a setting such as ``bt.ope.MIPS(depth=1)``; by default all
        that the data allow.
    model
        Predicts rewards: None for what LinATS would expect in each context, or, if the log has none, rates of arms
        shrunk towards their clusters; (n, arms) predictions; or a scikit-learn estimator, which is fitted on the
        context and an indicator of the arm and of each cluster above it. Fits are cross-fitted over folds drawn with
        ``rng``.
    adaptive
        True for a log that a learning policy wrote: rows are weighted so that intervals are valid (`bt.ope.scales`).
        "estimated" takes the weights from the propensities of earlier rows, where ``behaviour`` is not known.
    rng
        The seed of the folds.

    >>> import banditree as bt
    >>> tree = bt.Tree({"x": ["a", "b"], "y": ["c"]})
    >>> table = {"arm": ["a", "b", "c", "a"], "reward": [1, 0, 1, 1], "p": [0.5, 0.25, 0.25, 0.5]}
    >>> log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    >>> result = bt.evaluate(log, {"a": 0.5, "c": 0.5}, tree=tree, estimators=["ips", "snips", bt.ope.MIPS(depth=1)])
    >>> [(row.estimator, row.value) for row in result.table()]
    [('ips', 1.0), ('snips', 1.0), ('mips', 0.8333333333333333)]
    """
    if not isinstance(log, Log):
        how = "read it first with bt.read_log(file, arm=..., reward=..., propensity=...)"
        raise InvalidType(f"log is a {type(log).__name__}; {how}")
    wanted = parse_estimators(estimators)
    log = log.summed("blocks" if adaptive else "folds")
    tree = find_tree(tree, target, log)
    notes = list(log.notes)
    rows = prepare_rows(log, tree, target, behaviour, notes)
    if adaptive not in (True, False, ESTIMATED):
        raise InvalidValue(f'adaptive={adaptive!r} must be True, False or "estimated"')
    if rows.behaviour is None and adaptive is True:
        raise InvalidType(
            "adaptive=True needs the logging policy's probabilities of all arms at every row; give them as "
            "behaviour=, (n, arms) in the order of tree.arms: policy.propensities() at each decision; or use "
            'adaptive="estimated"'
        )
    is_named = estimators is not None
    if rows.behaviour is None or tree.depth == 0:
        flat = Hint("a tree with clusters; this one is flat", "a tree with clusters; this one is flat")
        needs = NEEDS_BEHAVIOUR if rows.behaviour is None else flat
        wanted = _leave_out(wanted, [one for one in wanted if one.needs_clusters], needs, notes, named=is_named)
    if log.plays is not None and log.folds is None:
        wanted = _leave_out(wanted, [one for one in wanted if one.needs_model], NEEDS_FOLDS, notes, named=is_named)
    if any(estimator.needs_model for estimator in wanted):
        rows = replace(rows, model=fit_model(model, log, rows.places, tree, in_order=bool(adaptive), rng=rng))
    if adaptive is True:
        assert rows.behaviour is not None
        rows = replace(rows, scale=scales(rows.target, rows.behaviour, contexts=log.contexts is not None))
    elif adaptive:
        rows = replace(rows, scale=estimated_scales(rows, log.folds if log.plays is not None else None))
    elif log.contexts is None and propensities_change(rows):
        learned = (
            "an arm's propensity changes from row to row: if a learning policy wrote this log, plain intervals are"
        )
        how = 'give its probabilities as behaviour= and set adaptive=True, or use adaptive="estimated"'
        notes.append(Hint(f"{learned} too narrow; {how}", f"{learned} too narrow; use --adaptive"))
    estimates = tuple(_estimate(estimator, rows) for estimator in wanted)
    missing, unsupported = rows.unsupported()
    _check_weights(rows, unsupported, notes)
    return Evaluation(
        estimates=estimates,
        logging=_logging(rows),
        unsupported=unsupported,
        missing=missing,
        rows=len(log),
        adaptive=bool(adaptive),
        estimated=log.estimated,
        notes=tuple(notes),
        inputs=rows,
    )


def _leave_out(
    wanted: list[Estimator], dropped: list[Estimator], needs: Hint, notes: list[str], *, named: bool
) -> list[Estimator]:
    """Return the other estimators, and note what the dropped ones need; an error if they were asked for."""
    *others, last = [estimator.label for estimator in dropped] or [""]
    labels = f"{', '.join(others)} and {last}" if others else last
    if dropped and named:
        raise InvalidValue(f"{labels} {'needs' if len(dropped) == 1 else 'need'} {needs}")
    if dropped:
        notes.append(Hint(f"left out: {labels}, which need {needs}", f"left out: {labels}, which need {needs.command}"))
    return [estimator for estimator in wanted if estimator not in dropped]


def _check_weights(rows: LogRows, unsupported: float, notes: list[str]) -> None:
    """Note if the weights do not average 1, as they do if the propensities are right.

    Arms without rows may have had a propensity of 0, so up to the unsupported share may be missing. A few rows with
    large weights, more or fewer than expected, are luck: the standard error allows for those that are there, and four
    times the largest of them for those that are not.
    """
    mean, error = rows.groups.mean_and_error(rows.form(rows.weights, WEIGHT))
    luck = 4 * (error + float(rows.weights.max()) / rows.groups.n)
    if error > 0 and not 1 - unsupported - luck <= mean <= 1 + luck:
        expected = f"{1 - unsupported:.3g} to 1" if unsupported > 0 else "1"
        notes.append(
            f"the weights average {mean:.3g} ± {error:.2g} where they should average {expected}: the propensities "
            "are not those of the policy that wrote these rows, or the target was chosen by looking at them"
        )


def _estimate(estimator: Estimator, rows: LogRows) -> Estimate:
    """Compute an estimate; SLOPE chooses the setting if it is not given."""
    groups = rows.groups
    if None in astuple(estimator):
        choices = estimator.choices(rows)
        estimator = choices[slope(groups.mean_and_error(choice.form(rows)) for choice in choices)]
    form, weights = estimator.form(rows), estimator.weights(rows)
    value, se = groups.mean_and_error(form)
    if isinstance(estimator, DM):  # the spread of predictions says nothing about the model's bias
        se = math.nan
    growth = 0.0 if groups.inside is None else estimator.growth(rows)
    ess = groups.effective(rows.form(weights, WEIGHT, growth))
    least = _least_error(rows, weights, ess)
    events = _rare(rows) if estimator.valid_interval else None
    scaled = weights * groups.scales
    total = groups.counts @ (scaled if estimator.self_normalised else groups.scales)
    multipliers = None if events is None or not total > 0 else scaled / total
    return Estimate(
        estimator, value, max(se, least), ess, float(weights.max()), form, groups, least, multipliers, events
    )


def _rare(rows: LogRows) -> Events | None:
    groups, reward = rows.groups, rows.form(rows.rewards, REWARD)
    if rows.unusual is None:
        return rare_events(rows.rewards, groups.counts)
    spread = groups.variation(reward) / groups.counts
    return events_in_groups(rows.rewards, groups.counts, spread, rows.extremes, rows.unusual)


def _least_error(rows: LogRows, weights: Floats, ess: float) -> float:
    """Return a lower bound of the standard error: 0 unless all rewards that count are equal, as if nothing varied.

    The next reward may differ all the same: by as much as rewards differ elsewhere in the log, and as often as Wilson's
    interval allows for 0 events in this number of rows.
    """
    low, high = rows.extremes
    counted = weights != 0
    if not counted.any() or low[counted].min() < high[counted].max():
        return 0.0
    is_binary = np.isin(low, (0, 1)).all() and np.isin(high, (0, 1)).all()
    return (1.0 if is_binary else float(high.max() - low.min())) * wilson_interval(0.0, ess)[1] / Z95


def _logging(rows: LogRows) -> Estimate:
    """Estimate the value of the policy that wrote the log: ips with weights of 1."""
    groups, form, events = replace(rows.groups, scale=None), rows.form(rows.rewards, REWARD), _rare(rows)
    value, se = groups.mean_and_error(form)
    ones = np.ones(len(rows.rewards))
    least = _least_error(rows, ones, groups.n)
    return Estimate(IPS(), value, max(se, least), groups.n, 1.0, form, groups, least, ones / groups.n, events)


# ---------------------------------------------------------------- the verdict


def compare(estimate: Estimate, other: Estimate, *, adaptive: bool, confidence: float = 0.95) -> Difference:
    """Compute one estimate minus another row by row, so that shared noise cancels (not with adaptive weights)."""
    by_row, groups = estimate.form - other.form, replace(estimate.groups, scale=None)
    is_logged = math.isclose(estimate.largest, 1) and math.isclose(other.largest, 1)  # both show what the log shows
    rare = None
    if estimate.multipliers is not None and other.multipliers is not None:
        rare = estimate.multipliers - other.multipliers
    if adaptive or math.isnan(estimate.se):
        value, se = estimate.value - other.value, math.hypot(estimate.se, other.se)
    else:
        value, se = groups.mean_and_error(by_row)
        se = se if is_logged else max(se, estimate.least, other.least)
    se = max(se, ROUNDING * max(abs(estimate.value), abs(other.value)))
    return Difference(value, se, confidence, groups.contributions(by_row), rare, estimate.events)


def judge(evaluation: Evaluation, *, name: str = "The target", confidence: float = 0.95) -> Judgement:
    """Judge the target of an `Evaluation` by the estimate that it trusts most."""
    estimate, logging, n = evaluation.trusted, evaluation.logging, evaluation.rows
    unsupported, missing = evaluation.unsupported, evaluation.missing
    adaptive, estimated = evaluation.adaptive, evaluation.estimated
    apart = compare(estimate, logging, adaptive=adaptive, confidence=confidence)
    low, high = apart.interval
    tail = f" ({estimate.estimator.name}; propensities are estimated)" if estimated else f" ({estimate.estimator.name})"
    against = f"{estimate.value:.4g} per decision against {logging.value:.4g}"
    reach = f"a difference of {apart.value:+.3g}, {100 * confidence:.3g}% interval {low:+.3g} to {high:+.3g}{tail}"
    if unsupported > MAX_UNSUPPORTED:
        arms = ", ".join(map(repr, missing[:MAX_NAMED])) + (", ..." if len(missing) > MAX_NAMED else "")
        why = f"{100 * unsupported:.3g}% of its probability is on {count(len(missing), 'arm')} that the log never shows"
        return _cannot_tell(name, f"{why} ({arms}); show {'it' if len(missing) == 1 else 'them'} occasionally", apart)
    if math.isnan(apart.se):
        return _cannot_tell(
            name, f"{estimate.estimator.name} has no standard error here; ask for dr, snips or ips", None
        )
    if np.allclose(evaluation.inputs.weights, 1, rtol=1e-9, atol=0):
        same = f"{name} earns the same as the logging policy: {logging.value:.4g} per decision."
        return Judgement("same", same, Difference(0.0, 0.0, confidence))
    if estimate.ess < MIN_EFFECTIVE_ROWS:
        why = (
            f"its weights reduce {n:,} rows to the worth of {estimate.ess:.3g} (the largest is {estimate.largest:.3g})"
        )
        return _cannot_tell(name, f"{why}; log with a policy that is more similar to it, or that explores more", apart)
    enough = n * max(MIN_EFFECTIVE_CONTRIBUTIONS / apart.contributions, 1)
    if (low > 0 or high < 0) and enough > n:
        why = f"{against}, but that depends on about {apart.contributions:.2g} rows with large weights or rare rewards"
        return _cannot_tell(
            name, f"{why}; about {_round(enough - n):,} more rows like these would allow a verdict", apart
        )
    if low > 0 or high < 0:
        word = "better" if low > 0 else "worse"
        return Judgement(word, f"{name} is {word} than the logging policy: {against}, {reach}.", apart)
    if abs(apart.value) <= SMALLEST_SHARE * abs(logging.value):
        why = f"{against}, {reach}; if there is a difference, it is too small to detect"
        return _cannot_tell(name, why, apart)
    error = max(apart.value - low, high - apart.value) / apart.reach
    needed = max(n * ((apart.reach + POWER) * error / apart.value) ** 2, enough)
    if apart.n_events is not None:
        more = f"about {_round(max(needed / n * apart.n_events, 2)):,} would show a difference as large as this"
        return _cannot_tell(name, f"{against}, {reach}; too few rewards to tell: {apart.n_events:,}, {more}", apart)
    more = f"about {_round(max(needed - n, 0.1 * n)):,} more rows like these would show a difference as large as this"
    return _cannot_tell(name, f"{against}, {reach}; {more}", apart)


def _cannot_tell(name: str, why: str, apart: Difference | None) -> Judgement:
    return Judgement("cannot tell", f"The log cannot tell whether {_mid_sentence(name)} is better: {why}.", apart)


def _round(rows: float) -> int:
    """Round up to two digits."""
    size = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return int(math.ceil(rows / size) * size)


def _mid_sentence(name: str) -> str:
    """Write a name as it appears inside a sentence."""
    return f"t{name[1:]}" if name.startswith("The ") else name
