"""Prepare what clients see: the tree with its beliefs, the traffic, the report, and the log as rows."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256

import numpy as np
from pydantic_core import from_json, to_json

from banditree import __version__
from banditree.base.arrays import Places
from banditree.base.files import Json
from banditree.beliefs import Rows
from banditree.errors import BanditreeError
from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.policy.state import hold
from banditree.report.html import render
from banditree.service.commands import Refused, earns_default
from banditree.service.events import Cohort, Event, Kind, Record, group, iso
from banditree.service.lift import Moments, compare
from banditree.service.state import State, learn_sums
from banditree.service.store import EventLog
from banditree.tree.shape import Shape

ANSWERED = (
    *("id", "at", "arm", "propensity", "propensity_overall", "reward", "path", "steps", "arms", "propensities"),
    *("rewards", "shown", "withdrawn", "group", "unit"),
)
ASKED = ("only", "exclude", "k")
VERSIONS = ("policy", "tree")
AT_ONCE = 500  # decisions read with one query
MAX_NODES = 50_000  # listed in one answer
MAX_BEST = 10  # arms listed in the report
MAX_CATEGORIES = 10
MIN_CHANCE = 0.01  # of being the best, below which naming an item says nothing


# The tree


def on_whole_tree(data: bytes) -> Policy:
    """Return a copy of a saved policy with the same evidence on the whole tree, for looking.

    Clusters that the policy does not walk through are in it too, with the sum of the evidence of their arms.
    """
    policy = from_bytes(data)
    with hold(policy) as state:
        if state.walked_tree == state.full_tree or policy.dim is not None:
            return policy
    return learn_sums(Policy(policy.tree, belief=policy.belief, rule=policy.rule, depth=None), policy)


def nodes(policy: Policy, depth: int | None, under: Sequence[str] = (), search: str = "") -> Json:
    """List the nodes of the tree below ``under``, itself first: level by level, until there are too many.

    ``depth`` is how many levels to list; ``search`` lists only nodes with this text in their names.
    """
    with hold(policy) as state:
        tree, shape = state.walked_tree, state.walked_tree.shape
        start = 0
        for name in under:
            child = tree.nodes.child(start, name)
            if child is None:
                raise Refused(404, f"there is no cluster {' / '.join(under)}")
            start = child
        listed, level, left_out, steps = [start], [start], 0, 0
        while level and (depth is None or steps < depth):
            level = [child for node in level for child in _children(shape, node)]
            steps += 1
            room = MAX_NODES - len(listed)
            listed += level[:room] if not search else level
            left_out += max(0, len(level) - room) if not search else 0
            if left_out:
                break
        if search:
            wanted = search.casefold()
            listed = [node for node in listed if node and wanted in str(tree.nodes.name(node)).casefold()][:1000]
            if not listed:
                return {"nodes": [], "left_out": 0}
        chosen = np.array(listed, np.intp)
        rewards = state.rows.rewards(chosen).tolist()
        plays, means, intervals = _beliefs(state.rows, chosen)
        rows = [
            {
                "path": [str(name) for name in tree.nodes.path(node)],
                "plays": plays[place],
                "reward": rewards[place],
                "mean": means[place],
                "interval": intervals[place],
                "children": len(_children(shape, node)),
            }
            for place, node in enumerate(listed)
        ]
    return {"nodes": rows, "left_out": left_out}


def _beliefs(rows: Rows, chosen: Places) -> tuple[list[float], list[float], list[tuple[float, float] | None]]:
    """Return plays, mean and interval of some nodes; with contexts, the mean is that of the rewards seen."""
    plays = rows.plays(chosen)
    if rows.dim is not None:
        return plays.tolist(), (rows.rewards(chosen) / np.where(plays > 0, plays, 1)).tolist(), [None] * len(chosen)
    low, high = rows.interval(chosen, None)
    ends = zip(low.tolist(), high.tolist(), strict=True)
    intervals = [pair if np.isfinite(pair).all() else None for pair in ends]  # UCB's are infinite before the first play
    return plays.tolist(), rows.mean(chosen, None)[:, 0].tolist(), intervals


def _children(shape: Shape, node: int) -> range:
    return range(0) if shape.content[node] >= 0 else range(int(shape.start[node]), int(shape.start[node + 1]))


# Traffic and report


def traffic(state: State) -> Json:
    """Count decisions by category and group over time; the smaller categories are counted together."""
    counted = state.traffic
    pieces = counted.pieces
    ranked = [category for category, _ in sum((piece.categories for piece in pieces), Counter()).most_common()]
    shown = ranked if len(ranked) <= MAX_CATEGORIES else ranked[: MAX_CATEGORIES - 1]
    lines = {category: [piece.categories[category] for piece in pieces] for category in shown}
    if len(shown) < len(ranked):
        rest = [piece.categories.total() - sum(piece.categories[name] for name in shown) for piece in pieces]
        lines[f"{len(ranked) - len(shown)} others"] = rest
    groups = {
        group(cohort): {
            "decisions": [piece.decisions[cohort] for piece in pieces],
            "rewards": [piece.rewards.get(cohort, 0.0) for piece in pieces],
        }
        for cohort in (Cohort.ALL, Cohort.POLICY, Cohort.CONTROL)
        if any(piece.decisions[cohort] for piece in pieces)
    }
    lifts = [compare(piece.moments(Cohort.POLICY), piece.moments(Cohort.CONTROL)) for piece in pieces]
    return {
        "start": iso(counted.first * counted.width),
        "seconds": counted.width / 1e6,
        "categories": lines,
        "groups": groups,
        "lift": [None if lift.interval is None else lift.to_dict() for lift in lifts],
    }


def report(state: State, at: int) -> Json:
    """Say what the experiment is worth: rewards per decision in each group, and the lift."""
    sums = state.moments_at(at)
    has_control = Cohort.CONTROL in sums or state.settings.control > 0
    names = (Cohort.POLICY, Cohort.CONTROL) if has_control else (Cohort.ALL,)
    groups = {group(name): sums.get(name, Moments()) for name in names}
    sentences, lift = [], None
    if state.is_paused:
        sentences.append("Paused: the control policy decides for everybody, and nothing is learned.")
    if has_control:
        low, high = state.policy.support
        bound = max(high - low, *(its.largest for its in groups.values())) if np.isfinite(high - low) else None
        lift = compare(groups[Cohort.POLICY], groups[Cohort.CONTROL], bound)
        sentences.append(lift.sentence)
    return {
        "experiment": state.name,
        "policy": state.settings.policy,
        "paused": state.is_paused,
        "settings": state.settings.to_dict(),
        "groups": {
            name: {"decisions": round(its.d), "units": its.units, "reward": its.mean if its.d else None}
            for name, its in groups.items()
        },
        "lift": None if lift is None else lift.to_dict(),
        "sentences": sentences,
    }


def outlook(data: bytes, stop_at: float | None) -> Json:
    """Say which arms of a saved policy are probably the best, and how much is still to be gained by knowing."""
    policy = from_bytes(data)
    name = type(policy).__name__
    if policy.dim is not None:
        return _no_outlook("Which item is best depends on the visitor's context.")
    try:
        chances, remaining = policy.chances(), policy.remaining()
    except BanditreeError:
        return _no_outlook(
            f"{name} goes by upper confidence bounds: it cannot say how likely an item is to be the best."
        )
    ranked = sorted(chances.items(), key=lambda pair: -pair[1])[:MAX_BEST]
    done = stop_at is not None and remaining.high < stop_at
    arm, chance = ranked[0]
    best = f"Item {arm} is the most likely to be the best ({_percent(chance)})"
    if chance < MIN_CHANCE:
        best = "No item stands out yet"
    gain = f"no more than {remaining.high:.2g} reward per decision" if remaining.high > 0 else "nothing"
    sentences = [f"{best}; with 95% probability, {gain} is still to be gained."]
    if done:
        sentences.append(f"That is below {stop_at:g}: there is little left to learn. The policy goes on deciding.")
    return {
        "best": [{"arm": str(arm), "chance": float(chance)} for arm, chance in ranked],
        "remaining": {"mean": float(remaining.mean), "high": float(remaining.high)},
        "done": done,
        "sentences": sentences,
    }


def _percent(share: float) -> str:
    return "less than 1%" if 0 < share < 0.01 else "more than 99%" if 0.99 < share < 1 else f"{share:.0%}"


def _no_outlook(why: str) -> Json:
    return {"best": None, "remaining": None, "done": False, "sentences": [why]}


def describe(state: State) -> Json:
    """Describe an experiment in the list of all."""
    return {
        "name": state.name,
        "policy": state.settings.policy,
        "arms": state.policy.tree.n_arms,
        "decisions": state.decisions,
        "paused": state.is_paused,
    }


# The log


class LogReader:
    """Reads the decisions of an experiment that count, as rows of text, page by page."""

    def __init__(self, log: EventLog, state: State, *, until: int) -> None:
        self.log, self.until = log, until
        self._name, self._settings, self._voids = state.name, state.settings, state.voids
        self._now = log.now()
        self._features = [] if state.features is None else list(state.features.spec)
        self._contexts = [_column(name) for name in self._features] or ["context"]

    def limit(self, after: int, rows: int) -> None:
        """Read up to ``rows`` decisions after an event."""
        where = f"kind = '{Kind.DECISION}' AND experiment || '' = ? AND n > ? AND n <= ?"
        statement = f"SELECT n FROM banditree_events WHERE {where} ORDER BY n LIMIT 1 OFFSET {rows - 1:d}"
        for (n,) in self.log.run(statement, (self._name, after, self.until)):
            self.until = int(n)

    def ndjson(self, after: int) -> Iterator[bytes]:
        """Yield one JSON object per line."""
        for rows in self._pages(after):
            yield b"".join([to_json(row) + b"\n" for row in rows])

    def csv(self, after: int) -> Iterator[bytes]:
        """Yield a header and one line per row; lists are JSON, and missing values are empty cells."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*ANSWERED, *self._contexts, *ASKED, *VERSIONS])
        for rows in self._pages(after):
            writer.writerows([map(_cell, row.values()) for row in rows])
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
        yield text.getvalue().encode()

    def _pages(self, after: int) -> Iterator[list[Json]]:
        """Yield rows in the order of the log, and close it."""
        columns = "n, at, id, unit, arm, cohort, body"
        where = f"n > ? AND n <= ? AND experiment || '' = ? AND kind = '{Kind.DECISION}'"
        statement = f"SELECT {columns} FROM banditree_events WHERE {where} ORDER BY n LIMIT {AT_ONCE}"
        with closing(self.log):
            while decisions := self.log.run(statement, (after, self.until, self._name)):
                after = int(decisions[-1][0])
                later = self._later([decision[2] for decision in decisions])
                yield [self._row(row, later.get(row[2], [])) for row in decisions if not self._is_void(*row[:4])]

    def _is_void(self, n: int, at: int, id_: str, unit: str | None) -> bool:
        return len(self._voids) > 0 and self._voids.cover(Event(at, Kind.DECISION, id_, n=n, unit=unit))

    def _later(self, ids: Sequence[str]) -> dict[str, list[Record]]:
        """Look up the later events of decisions: kind, position, arm and value."""
        later: dict[str, list[Record]] = {}
        where = f"experiment = ? AND id IN ({', '.join('?' * len(ids))}) AND kind <> '{Kind.DECISION}' ORDER BY n"
        statement = f"SELECT id, kind, position, arm, value FROM banditree_events WHERE {where}"
        for id_, *rest in self.log.run(statement, (self._name, *ids)):
            later.setdefault(id_, []).append(tuple(rest))
        return later

    def _row(self, decision: Record, later: Sequence[Record]) -> Json:
        _, at, id_, unit, arm, cohort, text = decision
        body = from_json(text)
        request, arms = body["request"], body["arms"]
        kinds = {kind for kind, *_ in later}
        rewards: list[float | None] = [None] * len(arms)
        if earns_default(at, body, kinds, self._settings, self._now):
            rewards = [self._settings.default_reward] * len(arms)
        for wanted in (Kind.DEFAULT, Kind.REWARD):
            for kind, position, _, value in later:
                if kind == wanted:
                    rewards[position] = value
        shown = next((earned for _, _, earned, _ in later if earned), None) if body.get("shadow") else arm
        context = request.get("context")
        if self._features:
            known = context if isinstance(context, dict) else {}
            contexts = [known.get(name) for name in self._features]
        else:
            contexts = [context]
        propensity = body["propensity"]
        overall = body.get("propensity_overall") if cohort in (Cohort.POLICY, Cohort.CONTROL) else propensity
        return {
            "id": id_,
            "at": iso(body.get("at", at)),
            "arm": arm,
            "propensity": propensity,
            "propensity_overall": overall,
            "reward": rewards[0],
            "path": body["path"],
            "steps": body["steps"],
            "arms": arms,
            "propensities": body.get("propensities") or [propensity],
            "rewards": rewards,
            "shown": shown,
            "withdrawn": Kind.WITHDRAWAL in kinds,
            "group": group(cohort),
            "unit": unit,
            **dict(zip(self._contexts, contexts, strict=True)),
            "only": request.get("only"),
            "exclude": request.get("exclude"),
            "k": request.get("k"),
            "policy": body["policy"],
            "tree": body["tree"],
        }


def _column(feature: str) -> str:
    return f"context_{feature}" if feature in (*ANSWERED, *ASKED, *VERSIONS) else feature


def _cell(value: object) -> object:
    return to_json(value).decode() if isinstance(value, list | dict | bool) else value


CONTENT_POLICY = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
CONTENT_POLICY += "frame-ancestors 'none'; "


def page(template: str, **values: object) -> tuple[str, dict[str, str]]:
    """Make a page, and headers that allow only its own script and style."""
    page = render("banditree.service", template, version=__version__, **values)
    sources = {}
    for tag in ("script", "style"):
        content = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].encode()
        sources[tag] = f"'sha256-{b64encode(sha256(content).digest()).decode()}'" if content else "'none'"
    return page, {
        "content-security-policy": f"{CONTENT_POLICY}script-src {sources['script']}; style-src {sources['style']}",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
