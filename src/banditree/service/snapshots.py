"""Store what the log folds to, so that a start need not fold it from its beginning."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from banditree.errors import InvalidValue
from banditree.service.events import Event, Kind, say
from banditree.service.settings import Settings
from banditree.service.state import State, change_tree, tree_of_fold
from banditree.service.store import EventLog
from banditree.tree import Tree

MAX_CHECKED = 200_000  # events behind a snapshot that are searched for some that it should hold


class Snapshots:
    """The snapshots in a store: of each experiment one for each key of its settings."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.n = 0  # the event at which they were last stored
        self.stored: dict[str, int] = {}  # experiment -> its last event in its snapshot

    def restore(self, known: Mapping[str, tuple[Settings, int]], names: Sequence[str]) -> tuple[dict[str, State], int]:
        """Return the states of those experiments that have a sound snapshot, and the last event that they may hold."""
        saved = {name: self.log.load_snapshot(snapshot_key(name, known[name][0])) for name in names}
        head = self.log.last()  # read after the snapshots, as the trees are: other processes may just store some
        trees = self.log.of_kinds(Kind.ARMS, Kind.EXPERIMENT, Kind.FOLD)
        states = {}
        for name, data in saved.items():
            if data is None:
                continue
            settings, version = known[name]
            try:
                state = State.from_bytes(data[1], name, settings, version)
                self._check(state, data[0], head, [event for event in trees if event.experiment == name])
            except Exception as error:
                why = f"{error}; the log is folded from its beginning instead"
                say("snapshot ignored", level="warning", experiment=name, why=why)
                self.log.drop_snapshot(snapshot_key(name, settings))
                continue
            state.n = data[0]
            states[name] = state
            self.stored[name] = state.changed_at
        return states, head

    def _check(self, state: State, n: int, head: int, trees: Sequence[Event]) -> None:
        """Raise an error if a snapshot after event ``n`` is not that of this log."""
        if not state.changed_at <= n <= head:
            raise InvalidValue(f"it is said to be that of event {n}, but goes up to event {state.changed_at}")
        last = [event.experiment for event in self.log.events(state.changed_at - 1, 1)]
        if last != [state.name]:
            raise InvalidValue(f"event {state.changed_at} of the log is not its last event")
        where = "n > ? AND n <= ? AND experiment = ?"
        if n - state.changed_at <= MAX_CHECKED and self.log.count(where, (state.changed_at, n, state.name)):
            raise InvalidValue("it lacks events of the log")
        tree: Tree | None = None
        is_archived = False
        for event in trees:
            if event.n <= n:
                body = event.body or {}
                is_archived = is_archived or event.kind == Kind.FOLD
                is_fold = event.kind == Kind.FOLD
                tree = tree_of_fold(base64.b64decode(body["state"])) if is_fold else change_tree(tree, body)
        if tree != state.policy.tree:
            raise InvalidValue("its tree is not that of the log")
        if not state.voids and not is_archived:
            decisions = self.log.count("kind = 'decision' AND experiment = ? AND n <= ?", (state.name, n))
            if decisions != state.decisions:
                raise InvalidValue(f"it has counted {state.decisions} decisions, the log {decisions}")

    def save(self, states: Mapping[str, State], n: int) -> None:
        """Store the state of every experiment that has changed."""
        try:
            self.log.run("BEGIN")
            for name, state in states.items():
                key = snapshot_key(name, state.settings)
                if state.is_stale or state.is_empty:
                    continue
                if state.changed_at > self.stored.get(name, 0):
                    # One that was just folded again may hold events of other processes after the last one here.
                    self.log.save_snapshot(key, max(n, state.n), state.to_bytes())
                else:
                    self.log.move_snapshot(key, n, since=self.stored[name])
            self.log.commit()
        finally:
            self.log.rollback()
        self.stored |= {name: state.changed_at for name, state in states.items() if not state.is_stale}
        self.n = n


def snapshot_key(name: str, settings: Settings) -> str:
    """Return the key of an experiment's snapshot."""
    return f"{name}/{settings.key}"
