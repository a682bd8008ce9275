"""Prepare what clients can look at: the tree with what was learned, the traffic over time, and the log as rows."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.service.commands import earned
from banditree.service.events import DECISION, WITHDRAWAL, Event, iso
from banditree.service.store import EventLog
from banditree.service.traffic import Traffic

ANSWERED = ("id", "at", "arm", "propensity", "reward", "path", "steps", "arms", "rewards", "shown", "withdrawn")
ASKED = ("context", "only", "exclude", "k")
COLUMNS = (*ANSWERED, *ASKED, "policy", "tree")
AT_ONCE = 500  # events read with one query


def nodes(data: bytes, depth: int | None) -> list[dict[str, Any]]:
    """List the nodes of the tree, the root first, from a saved copy of the policy, so that decisions are not delayed.

    Clusters that the policy does not walk through are listed too, with the sum of the evidence of their arms.
    """
    policy = _whole(from_bytes(data))
    with policy.held(changes=False) as state:
        rewards = state.rows.rewards(np.arange(state.tree.shape.n_nodes)).tolist()
    found = []
    for row, reward in zip(policy.table(), rewards, strict=True):
        if depth is None or len(row.path) <= depth:
            interval = list(row.interval) if isinstance(row.interval, tuple) else None
            values = {"plays": row.plays, "reward": reward, "mean": row.mean, "interval": interval}
            found.append({"path": list(row.path)} | values)
    return found


def _whole(policy: Policy) -> Policy:
    """Return a policy with the same evidence on the whole tree."""
    with policy.held(changes=False) as state:
        if state.tree == state.given or policy.dim is not None:
            return policy
        leaves = state.tree.shape.node_of
        plays, rewards = state.rows.plays(leaves), state.rows.rewards(leaves)
        tried = np.flatnonzero(plays > 0)
        arms = [state.arms[position] for position in tried.tolist()]
    whole = Policy(policy.tree, belief=policy.belief, rule=policy.rule, depth=None)
    if arms:
        whole.update_many(arms, rewards[tried], plays=plays[tried])
    return whole


def traffic(counted: Traffic, most: int = 10) -> dict[str, Any]:
    """Count decisions by category over time; the smaller categories are counted together."""
    pieces = [piece.copy() for piece in counted.pieces]
    ranked = [category for category, _ in sum(pieces, Counter()).most_common()]
    shown = ranked if len(ranked) <= most else ranked[: most - 1]
    lines = {category: [piece[category] for piece in pieces] for category in shown}
    if len(shown) < len(ranked):
        rest = [piece.total() - sum(piece[name] for name in shown) for piece in pieces]
        lines[f"{len(ranked) - len(shown)} others"] = rest
    return {"start": iso(counted.first * counted.width), "seconds": counted.width / 1e6, "categories": lines}


def log_rows(log: EventLog) -> Iterator[dict[str, Any]]:
    """Yield one row per decision, in the order of the log, and close it."""
    after = 0
    with closing(log):
        while part := log.events(after, AT_ONCE):
            after = part[-1].n
            decisions = [event for event in part if event.kind == DECISION]
            known = log.find(event.id for event in decisions if event.id is not None)
            for decision in decisions:
                yield _row(known.get(decision.id or "", [decision]))


def _row(known: list[Event]) -> dict[str, Any]:
    decision, body = known[0], known[0].body or {}
    rewards = earned(known)
    row: dict[str, Any] = {"id": decision.id, "at": iso(decision.at), "arm": decision.arm}
    row |= {"propensity": body["propensity"], "reward": rewards.get(0)}
    row |= {"path": body["path"], "steps": body["steps"], "arms": body["arms"]}
    row["rewards"] = [rewards.get(position) for position in range(len(body["arms"]))]
    shown = [event.arm for event in known[1:] if event.arm is not None] if body.get("shadow") else [decision.arm]
    row["shown"] = shown[0] if shown else None
    row["withdrawn"] = any(event.kind == WITHDRAWAL for event in known)
    row |= {what: body["request"].get(what) for what in ASKED}
    return row | {"policy": body["policy"], "tree": body["tree"]}


def as_ndjson(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Write one JSON object per line."""
    for row in rows:
        yield json.dumps(row) + "\n"


def as_csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Write a header and one line per row; lists are JSON, and missing values are empty cells."""
    yield _line(list(COLUMNS))
    for row in rows:
        yield _line([json.dumps(value) if isinstance(value, list | bool) else value for value in row.values()])


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
