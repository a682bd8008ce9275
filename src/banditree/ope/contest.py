"""Compare several policies on one log: each learns from its first part and is evaluated on the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from banditree.base import words
from banditree.base.document import Bullets, Document, Grid, Note, Part, Section
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, number
from banditree.data.log import Log
from banditree.ope.evaluation import Evaluation, Hint, Judgement, compare, draw_intervals, evaluate, judge
from banditree.ope.rejection import build_policy
from banditree.ope.rows import find_tree
from banditree.simulation.simulator import name_factories
from banditree.stream import Seed, seed_sequence
from banditree.tree import Tree

LINEAR_ADAPTIVE, ADAPTIVE = "LinATS", "ATS"  # the same policy with and without contexts: compared first


@dataclass(frozen=True, eq=False, repr=False)
class Contest(Result):
    """The result of `contest`: an `Evaluation` of each policy, and one verdict."""

    evaluations: dict[str, Evaluation]
    learned: int  # rows that the policies learned from
    judgements: dict[str, Judgement]
    verdict: str
    in_command: bool = False  # whether notes name options of the command instead of Python's parameters

    @property
    def any(self) -> Evaluation:
        """Any one of the evaluations, for what they all share."""
        return next(iter(self.evaluations.values()))

    def table(self) -> Table:
        """Tabulate value, interval, ess and answer of each policy and of the logging policy, the best first."""
        rows = [
            (name, one.trusted.value, one.trusted.interval, round(one.trusted.ess), self.judgements[name].answer)
            for name, one in self.evaluations.items()
        ]
        logging = self.any.logging
        rows.append(("logging policy", logging.value, logging.interval, self.any.rows, ""))
        rows.sort(key=lambda row: -row[1])
        return Table(("policy", "value", "interval", "ess", "answer"), rows)

    def facts(self) -> dict[str, object]:
        facts_by_name = {name: evaluation.facts() for name, evaluation in self.evaluations.items()}
        return {
            "policies": {name: facts["estimates"] for name, facts in facts_by_name.items()},
            "verdict": self.verdict,
            "contexts": self.contexts_verdict or None,
            "verdicts": {name: judgement.sentence for name, judgement in self.judgements.items()},
            "logging": next(iter(facts_by_name.values()))["logging"],
            "rows": {"learned": self.learned, "evaluated": self.any.rows},
            "unsupported": {name: facts["unsupported"] for name, facts in facts_by_name.items()},
            "largest_weight": {name: facts["largest_weight"] for name, facts in facts_by_name.items()},
            "notes": self.notes,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all evaluations, without repetitions."""
        notes = [note for evaluation in self.evaluations.values() for note in evaluation.notes]
        said = [note.command if self.in_command and isinstance(note, Hint) else note for note in notes]
        return tuple(dict.fromkeys(said))

    @property
    def contexts_verdict(self) -> str:
        """Whether knowing who asks pays, in a sentence; "" unless policies with and without contexts were evaluated."""
        values = {name: evaluation.trusted.value for name, evaluation in self.evaluations.items()}
        by_context = [name for name, evaluation in self.evaluations.items() if evaluation.inputs.by_context]
        others = [name for name in values if name not in by_context]
        if not by_context or not others:
            return ""
        knowing = LINEAR_ADAPTIVE if LINEAR_ADAPTIVE in by_context else max(by_context, key=values.__getitem__)
        blind = ADAPTIVE if ADAPTIVE in others else max(others, key=values.__getitem__)
        one, other = self.evaluations[knowing].trusted, self.evaluations[blind].trusted
        gain = compare(one, other, adaptive=self.any.adaptive)
        low, high = gain.interval
        word = "more" if gain.value >= 0 else "less"
        reach = f"95% interval of the difference {low:+.3g} to {high:+.3g}"
        earned = f"{knowing} would earn {abs(gain.value):.3g} {word} per decision than {blind} ({reach})"
        if low > 0:
            return f"Knowing who asks pays: {earned}."
        if high < 0:
            return f"Knowing who asks does not pay here: {earned}."
        return f"The log cannot tell whether knowing who asks pays: {earned}."

    def document(self) -> Document:
        rows = [
            (row.policy, number(row.value), words.interval(row.interval), f"{row.ess:,}", row.answer)
            for row in self.table()
        ]
        grid = Grid(
            ("policy", "value", "95% interval", "effective rows", "better?"), rows, names=(0, 4), label="policies"
        )
        names = self.table()["policy"]
        trusted = {name: self.evaluations[name].trusted for name in names if name in self.evaluations}
        caption = (
            "What each policy would have earned per decision. The line and its band: what the logging policy earned."
        )
        estimates = [*trusted.values()]
        picture = draw_intervals([*trusted], estimates, self.any.logging, caption, "Intervals of all policies")
        learned = f"Learned from {count(self.learned, 'row')}, evaluated" if self.learned else "Evaluated"
        note = Note(f"{learned} on {count(self.any.rows, 'row')} (by {self.any.trusted.estimator.name}).")
        sections = [
            Section(name, (self.judgements[name].sentence, *evaluation.parts(name)), page_only=True)
            for name, evaluation in self.evaluations.items()
        ]
        about = f"Evaluation · {count(self.any.rows, 'row')}"
        who = [self.contexts_verdict] if self.contexts_verdict else []
        parts: tuple[Part, ...] = (*who, note, grid, picture, Bullets(self.notes), *sections)
        return Document(self.verdict, parts, name="Evaluation", about=about)


def contest(
    policies: Mapping[str, Any] | Iterable[Any],
    log: Log,
    *,
    tree: Tree | None = None,
    share: float = 0.5,
    estimators: object = None,
    adaptive: bool | str = False,
    rng: Seed = 0,
    in_command: bool = False,
) -> Contest:
    """Let each policy learn from the first ``share`` of the log, by time, and evaluate it on the rest.

    A policy is evaluated as it is after the first part: it does not learn any further, and no row is used both to learn
    and to evaluate. The verdict accounts for choosing among several policies: each interval gets a higher
    confidence, so that all of them hold together with 95% (Bonferroni).

    Parameters
    ----------
    policies
        {name: policy}: a factory, as for `simulate`, or a target that does not learn, as for `evaluate`. A list of
        classes stands for their names, as there.
    log
        The log, from `read_log`.
    tree
        The tree of the arms; by default that of the log, if its rows have paths.
    share
        The part of the rows that policies learn from; if none learns, all rows are evaluated.
    estimators, adaptive, rng
        As for `evaluate`.
    in_command
        Whether notes name options of ``banditree evaluate`` instead of Python's parameters.
    """
    policies = policies if isinstance(policies, Mapping) else name_factories(policies)
    tree = find_tree(tree, None, log)
    does_learn = any(callable(policy) for policy in policies.values())
    first, rest = log.split(share) if does_learn else (None, log)
    evaluations: dict[str, Evaluation] = {}
    for name, policy in policies.items():
        target = policy
        if callable(policy):
            target = build_policy(policy, tree, log, seed_sequence(rng))
            assert first is not None
            target.learn(first)
        evaluations[name] = evaluate(rest, target, tree=tree, estimators=estimators, adaptive=adaptive, rng=rng)
    confidence = 1 - 0.05 / len(evaluations)
    judgements = {name: judge(one, name=name, confidence=confidence) for name, one in evaluations.items()}
    learned = 0 if first is None else len(first)
    return Contest(evaluations, learned, judgements, _verdict(evaluations, judgements), in_command)


def _verdict(evaluations: Mapping[str, Evaluation], judgements: Mapping[str, Judgement]) -> str:
    """Choose the best of the policies that are better; if none is, the sentence of the highest estimate."""
    better = [name for name in evaluations if judgements[name].answer == "better"]
    best = max(better or evaluations, key=lambda name: evaluations[name].trusted.value)
    if not better and len(evaluations) > 1 and all(one.answer == "worse" for one in judgements.values()):
        return f"None is better. {judgements[best].sentence}"
    return judgements[best].sentence
