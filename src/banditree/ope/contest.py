"""Compare several policies on one log: each learns from its first part and is evaluated on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from banditree.ope.evaluation import Evaluation, evaluate
from banditree.ope.log import Log
from banditree.ope.rejection import build_policy
from banditree.ope.verdict import Judgement
from banditree.report.tables import Table
from banditree.stream import seed_sequence
from banditree.tree import Tree


@dataclass(frozen=True, eq=False, repr=False)
class Contest:
    """The result of `contest`: an `Evaluation` of each policy, and one verdict."""

    evaluations: dict[str, Evaluation]
    learned: int  # rows that the policies learned from
    judgements: dict[str, Judgement]
    verdict: str

    @property
    def any(self) -> Evaluation:
        """Any one of the evaluations, for what they all share."""
        return next(iter(self.evaluations.values()))

    def table(self) -> Table:
        """Tabulate value, interval, ess and answer of each policy and of the logging policy, the best first."""
        rows = [
            (name, found.trusted.value, found.trusted.interval, round(found.trusted.ess), self.judgements[name].answer)
            for name, found in self.evaluations.items()
        ]
        logging = self.any.logging
        rows.append(("logging policy", logging.value, logging.interval, self.any.rows, ""))
        rows.sort(key=lambda row: -row[1])
        return Table(("policy", "value", "interval", "ess", "answer"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Convert to lists, numbers and strings for JSON; NaN becomes None."""
        converted = {name: found.to_dict() for name, found in self.evaluations.items()}
        return {
            "policies": {name: found["estimates"] for name, found in converted.items()},
            "verdict": self.verdict,
            "verdicts": {name: judged.sentence for name, judged in self.judgements.items()},
            "logging": next(iter(converted.values()))["logging"],
            "rows": {"learned": self.learned, "evaluated": self.any.rows},
            "unsupported": {name: found["unsupported"] for name, found in converted.items()},
            "largest_weight": {name: found["largest_weight"] for name, found in converted.items()},
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all evaluations, without repetitions."""
        notes = [note for found in self.evaluations.values() for note in found.notes]
        return tuple(dict.fromkeys(notes))

    def to_html(self, *, title: str = "Evaluation") -> str:
        """Return a self-contained web page with pictures of the intervals, the weights and the support."""
        from banditree.ope.page import page

        return page(self.evaluations, self.verdict, title=title, judgements=self.judgements)

    def __str__(self) -> str:
        return "\n".join([self.verdict, "", str(self.table()), *(f"- {note}" for note in self.notes)])

    __repr__ = __str__


def contest(
    policies: Mapping[str, Any], log: Log, *, tree: Tree, share: float = 0.5, estimators: Any = None, rng: Any = 0
) -> Contest:
    """Let each policy learn from the first ``share`` of the log, by time, and evaluate it on the rest.

    A policy is a factory, as for `simulate`. What is evaluated is the policy as it is after the first part: it does not
    learn any further, and no row is used both to learn and to evaluate. The verdict accounts for choosing among several
    policies: each interval gets a higher confidence, so that all of them hold together with 95% (Bonferroni).
    """
    first, rest = log.split(share)
    found: dict[str, Evaluation] = {}
    for name, factory in policies.items():
        policy = build_policy(factory, tree, log, seed_sequence(rng))
        policy.learn(first)
        found[name] = evaluate(rest, policy, tree=tree, estimators=estimators, rng=rng)
    confidence = 1 - 0.05 / len(found)
    judged = {name: each.judge(name, confidence) for name, each in found.items()}
    return Contest(found, len(first), judged, _verdict(found, judged))


def _verdict(found: Mapping[str, Evaluation], judged: Mapping[str, Judgement]) -> str:
    """Choose the best of the policies that are better; if none is, the sentence of the highest estimate."""
    better = [name for name in found if judged[name].answer == "better"]
    best = max(better or found, key=lambda name: found[name].trusted.value)
    if not better and all(each.answer == "worse" for each in judged.values()):
        return judged[best].sentence if len(found) == 1 else f"None is better. {judged[best].sentence}"
    return judged[best].sentence
