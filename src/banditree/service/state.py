"""Fold the events of an experiment into its present state: policies, groups, traffic and voids."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from banditree.base.files import Json
from banditree.errors import BadFile, BanditreeError
from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.policy.state import hold
from banditree.service.events import AT_ONCE, Cohort, Event, Kind, say
from banditree.service.lift import Account, Moments, Windows
from banditree.service.settings import Settings
from banditree.tree import Tree

HEAD = struct.Struct("<8s32sQQ")  # a mark, the SHA-256 of the rest, and the sizes of two of its three parts
MARK = b"banditr2"
MAX_SAID = 10  # events that do not fit that are said one by one
BUCKETS = 60  # most pieces of time
CHUNK = 500  # values in one SQL condition
SETTING = (Kind.ARMS, Kind.EXPERIMENT, Kind.SETTINGS, Kind.PAUSE, Kind.RESUME, Kind.FOLD)  # what decisions depend on
SAVED = (  # of a state, in a snapshot, beside its parts
    *("changed_at", "set_at", "tree_version", "policy_version", "decisions", "is_paused", "catalogue", "evidence"),
    "started_with",
)
ABOUT_DECISIONS = frozenset([Kind.DECISION, Kind.REWARD, Kind.DEFAULT, Kind.WITHDRAWAL, Kind.EXPOSURE])


class State:
    """The result of applying an experiment's events in order. The same events give the same state, bit for bit.

    Rewards are learned one by one, because a batch may add numbers in another order, which changes the last digit.
    Decisions that ``voids`` covers are left out. A void that comes as an event, and was not known from the start, makes
    the state stale: it has to be folded again.
    """

    def __init__(self, name: str, settings: Settings, settings_version: int = 0) -> None:
        self.name, self.settings = name, settings
        self.settings_version = settings_version  # the event that they are from; 0 if they are not in the log
        self.started_with: Json | None = None  # the settings that the service was last started with
        self.n = 0  # the last event of the log, of any experiment, that the state takes into account
        self.changed_at = 0  # the last event of this experiment
        self.stored_at = 0  # the last one in its snapshot
        self.set_at = 0  # the last event that changed what decisions depend on, besides beliefs
        self.tree_version = 0  # the last event that changed the tree
        self.policy_version = 0  # the last event that the policy learned from
        self.decisions = 0
        self.left: set[str] = set()  # arms that were removed
        self.is_paused = False
        self.catalogue = ""  # digest of the file that the catalogue was last taken from
        self.evidence = ""  # digest of the evidence it was started from, if any
        self.is_stale = False
        self.left_out = 0  # events that did not fit, since the process began to fold
        self.voids = Voids()
        self.traffic = Traffic()
        window, only_exposed = settings.reward_window, settings.exposure
        self.account = Account(only_exposed=only_exposed)
        self.windows = None if window is None else Windows(window, only_exposed=only_exposed)
        self.features = settings.named
        self._policy: Policy | None = None
        self.control: Policy | None = None  # the control policy, if it is one that learns
        self._changed: tuple[Tree | None, Json | None, Tree | None] = (None, None, None)  # of `tree_after`
        self._category: dict[str, str] = {}
        self._skipped: set[str] = set()  # ids of voided decisions, while folding

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            raise BadFile(f"the log of {self.name!r} does not begin with a catalogue; banditree serve did not write it")
        return self._policy

    @property
    def is_empty(self) -> bool:
        return self._policy is None

    @property
    def needs_bodies(self) -> bool:
        """Whether it folds decisions with all that is known about them."""
        return self.settings.default_reward is not None

    @property
    def next_default(self) -> float:
        """The time at which the next decision may earn a default reward, in microseconds."""
        if self.windows is None or self.settings.default_reward is None:
            return math.inf
        return self.windows.next_close

    @property
    def version(self) -> tuple[int, ...]:
        """What changes whenever the policy does, or its tree."""
        return self.policy_version, self.tree_version, len(self.voids), self.is_stale

    def apply(self, events: Sequence[Event]) -> None:
        """Apply events in order; long lists are faster than short ones, with the same result, bit for bit.

        An event that does not fit is left out, in every process and after every start.
        """
        run: list[Event] = []
        for event in events:
            if event.kind not in ABOUT_DECISIONS:
                self._apply_run(run)
                run = []
                self._close(event)
                self._try(self._apply_to_all, event)
            elif not self._is_void(event):
                run.append(event)
            elif self.windows is not None:
                self._apply_run(run)
                run = []
                self._close(event)
        self._apply_run(run)
        if events:
            self.n = self.changed_at = events[-1].n

    def _try(self, learn: Callable[[Event], None], event: Event) -> None:
        try:
            learn(event)
        except BanditreeError as error:
            if self._policy is None:
                raise BadFile(f"event {event.n} of the log does not fit {self.settings.policy}: {error}") from error
            self.left_out += 1
            if self.left_out <= MAX_SAID:
                policy = self.settings.policy
                say("event left out", level="error", n=event.n, kind=event.kind, policy=policy, why=str(error))

    def _is_void(self, event: Event) -> bool:
        """Whether a decision was voided, or the one that an event is about."""
        if event.kind != Kind.DECISION:
            return event.cohort == Cohort.VOIDED or event.id in self._skipped
        if not self.voids or not self.voids.cover(event):
            return False
        assert event.id is not None
        self._skipped.add(event.id)
        return True

    def _apply_run(self, run: Sequence[Event]) -> None:
        """Apply events about decisions: those up to the next piece of time together, and so on."""
        start = 0
        while start < len(run):
            first = run[start]
            self._close(first)
            if _is_traffic(first):
                self.traffic.reach(first.at, self.account if first.kind == Kind.DECISION else None)
            end = self.traffic.end
            later = (i for i, event in enumerate(run[start + 1 :], start + 1) if event.at >= end)
            stop = next((i for i in later if _is_traffic(run[i])), len(run))
            self._apply_together(run[start:stop])
            start = stop

    def _apply_together(self, run: Sequence[Event]) -> None:
        """Apply events about decisions that begin no new piece of time."""
        decisions = [event for event in run if event.kind == Kind.DECISION]
        rewards = [event for event in run if event.kind in (Kind.REWARD, Kind.DEFAULT)]
        self.decisions += len(decisions)
        self.traffic.add(decisions, [event for event in rewards if event.cohort != Cohort.PAUSED], self.category)
        if self.windows is not None:
            for event in run:
                self._close(event)
                self._wait(self.windows, event)
            return
        self.account.add(run)
        tree = self.policy.tree
        for event in rewards:
            if event.learned and event.arm in tree:
                self._try(self._learn, event)

    def _wait(self, windows: Windows, event: Event) -> None:
        """Let a decision, and what happens to it, wait for its window to close.

        With a default reward, all rewards of a decision are learned at that moment: if rewards were
        learned as they come in, successes would be ahead of the missing ones. Without one, they are.
        """
        is_open = windows.add(event)
        at_once = self.settings.default_reward is None or event.learned == AT_ONCE
        is_reward = event.kind == Kind.REWARD or (event.kind == Kind.DEFAULT and at_once)
        waits = not at_once and (is_open or not self.settings.learn_late)
        if is_reward and event.learned and not waits and event.arm in self.policy.tree:
            self._try(self._learn, event)

    def _close(self, event: Event) -> None:
        """Settle the decisions whose windows have closed by the time of an event."""
        if self.windows is None:
            return
        default = self.settings.default_reward
        for id_, decision in self.windows.close(event.at):
            outcomes = list(decision.outcomes(default))
            self.account.settle(decision.cohort, decision.unit, outcomes)
            for arm, reward, learned in outcomes if default is not None and not self.is_paused else ():
                if learned and arm in self.policy.tree:
                    body = None if decision.context is None else {"context": decision.context}
                    settled = event._replace(id=id_, arm=arm, value=reward, cohort=decision.cohort, body=body)
                    self._try(self._learn, settled)

    def moments_at(self, at: int) -> dict[str, Moments]:
        """Return the sums of the groups at a time, with the windows that have closed since the last event."""
        default = self.settings.default_reward
        closed = () if self.windows is None else self.windows.closed(at)
        return self.account.moments_with((its.cohort, its.unit, list(its.outcomes(default))) for _, its in closed)

    def _apply_to_all(self, event: Event) -> None:
        """Apply an event about the whole experiment."""
        kind = event.kind
        body = event.body or {}
        if "settings" in body and event.n > self.settings_version:
            self._change_settings(Settings(**body["settings"]), event.n)
        if kind in (Kind.ARMS, Kind.EXPERIMENT):
            self._change(body)
            self.tree_version = event.n
        elif kind == Kind.FOLD:
            self._start_from_fold(base64.b64decode(body["state"]))
        elif kind == Kind.SETTINGS and body.get("is_start"):
            self.started_with = body["settings"]
        elif kind == Kind.EVIDENCE:
            self._start_from(event.body or {})
            self.policy_version = event.n
        elif kind in (Kind.PAUSE, Kind.RESUME):
            self.is_paused = kind == Kind.PAUSE
        elif kind == Kind.VOID and event not in self.voids:
            self.voids.add(event)
            self.is_stale = True
        if kind in SETTING and kind != Kind.FOLD:
            self.set_at = event.n

    def _change_settings(self, settings: Settings, n: int) -> None:
        """Replace the settings; if the fold depends on what changes, everything has to be folded again."""
        if self._policy is None:
            vars(self).update(vars(State(self.name, settings)) | {"voids": self.voids})
        self.is_stale = self.is_stale or settings.key != self.settings.key
        self.settings, self.settings_version = settings, n

    def _start_from_fold(self, data: bytes) -> None:
        """Take over what archived events folded to, with the settings of now."""
        restored = State.from_fold(data, self.name, self.settings)
        restored.voids = Voids.from_list([*restored.voids.to_list(), *self.voids.to_list()])
        kept = ("settings_version", "left_out", "is_stale")
        vars(self).update(vars(restored) | {name: getattr(self, name) for name in kept})

    def _learn(self, event: Event) -> None:
        """Learn from a reward, in the policy or in the control policy."""
        cohort = event.cohort
        context = (event.body or {}).get("context")
        if cohort == Cohort.CONTROL and self.control is not None:
            _learn(self.control, event, context)
        is_for_policy = cohort not in (Cohort.CONTROL, Cohort.PAUSED) or self.settings.learn_control
        if is_for_policy and _learn(self.policy, event, context):
            self.policy_version = event.n

    def category(self, arm: str) -> str:
        """Return the top cluster of an arm, by which traffic is counted, or the arm itself if it is in none."""
        category = self._category.get(arm)
        if category is None:
            category = str(self.policy.tree.path(arm)[0]) if arm in self.policy.tree else arm
            self._category[arm] = category
        return category

    def tree_after(self, body: Json) -> Tree:
        """Return the tree after a change. A command asks for it, and the fold of its event once more."""
        tree = None if self._policy is None else self._policy.tree
        before, known, after = self._changed
        if after is None or before is not tree or known is not body:
            after = change_tree(tree, body)
            self._changed = tree, body, after
        return after

    def _change(self, body: Json) -> None:
        tree = self.tree_after(body)
        self._changed = None, None, None
        if self._policy is None:
            self._policy, self.control = self.settings.build(tree), self.settings.build_control(tree)
            self.catalogue = digest(body["add"])
        else:
            self._policy.retree(tree)
            if self.control is not None:
                self.control.retree(tree)
        self.catalogue = body.get("catalogue", self.catalogue)
        self.left |= set(body.get("remove", ()))
        self.left -= set(body.get("add", ()))
        self._category.clear()

    def _start_from(self, body: Json) -> None:
        """Learn from evidence from before the first decision; arms that were removed since are skipped."""
        kept = [place for place, arm in enumerate(body["arms"]) if arm in self.policy.tree]
        rows = {name: [values[place] for place in kept] for name, values in body.items() if isinstance(values, list)}
        for policy in filter(None, (self._policy, self.control)):
            contexts = None if policy.dim is None else rows.get("contexts")
            if rows["arms"] and (policy.dim is None or contexts is not None):
                policy.update_many(rows["arms"], rows["rewards"], plays=rows.get("plays"), contexts=contexts)
        self.evidence = body.get("digest", "")

    # Snapshots

    def to_bytes(self) -> bytes:
        """Convert to bytes for a snapshot."""
        rest: Json = {name: getattr(self, name) for name in SAVED}
        rest |= {"name": self.name, "settings": self.settings.key, "left": sorted(self.left)}
        rest |= {"traffic": self.traffic.to_dict(), "account": self.account.to_dict(), "voids": self.voids.to_list()}
        rest |= {"windows": [] if self.windows is None else self.windows.to_list()}
        if self.voids.last > self.changed_at:  # until then, rewards of voided decisions are not marked as such
            rest["skipped"] = sorted(self._skipped)
        text, policy = json.dumps(rest, sort_keys=True).encode(), self.policy.to_bytes()
        payload = text + policy + (b"" if self.control is None else self.control.to_bytes())
        return HEAD.pack(MARK, hashlib.sha256(payload).digest(), len(text), len(policy)) + payload

    @classmethod
    def from_bytes(cls, data: bytes, name: str, settings: Settings, settings_version: int = 0) -> State:
        """Restore a snapshot, or raise `BadFile` where it is damaged or that of something else."""
        rest, policy, control = _split(data)
        if (rest["name"], rest["settings"]) != (name, settings.key):
            raise BadFile("it is that of other settings")
        state = cls(name, settings, settings_version)
        state._restore(rest, policy, control)
        if not _is_same_kind(settings.build(policy.tree), policy):
            raise BadFile(f"it holds a {type(policy).__name__} of other settings")
        return state

    @classmethod
    def from_fold(cls, data: bytes, name: str, settings: Settings) -> State:
        """Restore what archived events folded to, whatever the settings were: where they differ, a warm start."""
        rest, policy, control = _split(data)
        state = cls(name, settings)
        state._restore(rest, _adapt(policy, settings.build(policy.tree), name), None)
        fresh = settings.build_control(policy.tree)
        state.control = fresh if fresh is None or control is None else _adapt(control, fresh, name)
        return state

    def _restore(self, rest: Json, policy: Policy, control: Policy | None) -> None:
        self.left = set(rest["left"])
        self.traffic = Traffic.from_dict(rest["traffic"])
        only_exposed = self.settings.exposure
        self.account = Account.from_dict(rest["account"], only_exposed=only_exposed)
        if self.settings.reward_window is not None:
            window = self.settings.reward_window
            self.windows = Windows.from_list(rest.get("windows", []), window, only_exposed=only_exposed)
        self.voids = Voids.from_list(rest["voids"])
        self._skipped = set(rest.get("skipped", ()))
        rest = {"set_at": rest["changed_at"], "started_with": None} | rest  # which version 0.3 did not save
        vars(self).update({name: rest[name] for name in SAVED})
        self._policy, self.control = policy, control


def _split(data: bytes) -> tuple[Json, Policy, Policy | None]:
    """Split a saved state into its parts, or raise `BadFile` if it is damaged."""
    if len(data) < HEAD.size:
        raise BadFile("it is too short")
    mark, sha, text_size, policy_size = HEAD.unpack_from(data)
    payload = data[HEAD.size :]
    if mark != MARK or hashlib.sha256(payload).digest() != sha:
        raise BadFile("it is damaged, or of another version")
    control = payload[text_size + policy_size :]
    policy = from_bytes(payload[text_size : text_size + policy_size])
    return json.loads(payload[:text_size]), policy, from_bytes(control) if control else None


def tree_of_fold(data: bytes) -> Tree:
    """Return the tree of a saved state."""
    return _split(data)[1].tree


def _is_same_kind(fresh: Policy, saved: Policy) -> bool:
    """Whether a saved policy is of the same kind, with the same belief, as a new one."""
    return type(fresh) is type(saved) and repr(fresh.belief) == repr(saved.belief)


def _adapt(saved: Policy, fresh: Policy, name: str) -> Policy:
    """Return a saved policy if it is that of the settings, or a fresh one that has learned its plays and rewards."""
    is_same = (fresh.explore, fresh.half_life) == (saved.explore, saved.half_life)
    if _is_same_kind(fresh, saved) and (is_same or fresh.dim is not None):
        return saved  # what was learned from contexts cannot be learned again from sums
    if fresh.dim is not None:
        say("cold start", level="warning", experiment=name, why="what was archived has no contexts to learn from")
        return fresh
    return learn_sums(fresh, saved)


def learn_sums(fresh: Policy, saved: Policy) -> Policy:
    """Let a fresh policy learn the plays and rewards of each arm of another one, and return it."""
    with hold(saved) as state:
        leaves = state.walked_tree.shape.node_of
        plays, rewards = state.rows.plays(leaves), state.rows.rewards(leaves)
        tried = (plays > 0).nonzero()[0]
        arms = [state.walked_tree.arms[place] for place in tried.tolist()]
    if arms:
        fresh.update_many(arms, rewards[tried], plays=plays[tried])
    return fresh


def fold(states: Mapping[str, State], events: Iterable[Event]) -> None:
    """Apply events to the states of their experiments, except those that a state holds already."""
    parts: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        state = states.get(event.experiment)
        if state is not None and event.n > state.n:
            parts[event.experiment].append(event)
    for name, part in parts.items():
        states[name].apply(part)


def _is_traffic(event: Event) -> bool:
    """Whether an event is a decision, or a reward that counts in a group."""
    is_earned = event.cohort != Cohort.PAUSED and event.kind in (Kind.REWARD, Kind.DEFAULT)
    return event.kind == Kind.DECISION or is_earned


def _learn(policy: Policy, event: Event, context: object) -> bool:
    """Learn from a reward; a policy with contexts cannot learn without one. Returns whether it did."""
    if policy.dim is None:
        context = None
    elif context is None:
        return False
    policy.update(event.arm, event.value, context)
    return True


def change_tree(tree: Tree | None, body: Json) -> Tree:
    """Return the tree after a change: arms are added, moved and removed, in this order."""
    if tree is None:
        return Tree.from_paths([(*path, arm) for arm, path in body["add"].items()])
    if body.get("add"):
        tree = tree.add_arms(body["add"])
    if body.get("move"):
        tree = tree.move_arms(body["move"])
    if body.get("remove"):
        tree = tree.remove_arms(body["remove"])
    return tree


def digest(content: object) -> str:
    """Return a short text that is the same for the same content, such as arms and their paths, in any order."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class Voids:
    """Which decisions no longer count: those in a stretch of time, of a unit, or with certain ids."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._bodies: dict[int, Json] = {}  # n of the void -> its body
        self._spans: list[tuple[int, int, int]] = []  # n of the void, first and last time
        self._units: dict[str, int] = {}  # unit -> n of the last void
        self._ids: dict[str, int] = {}  # the same of ids
        for event in events:
            self.add(event)

    def __len__(self) -> int:
        return len(self._bodies)

    def __contains__(self, event: Event) -> bool:
        return event.n in self._bodies

    @property
    def last(self) -> int:
        """The last void event; 0 if there is none."""
        return max(self._bodies, default=0)

    def add(self, event: Event) -> None:
        """Add the decisions that a void event covers: those before it."""
        body = self._bodies[event.n] = event.body or {}
        if "ids" in body:
            self._ids |= dict.fromkeys(body["ids"], event.n)
        elif "unit" in body:
            self._units[body["unit"]] = event.n
        else:
            self._spans.append((event.n, body["from"], body["to"]))

    def cover(self, decision: Event) -> bool:
        """Whether a decision is voided."""
        if decision.n < self._ids.get(decision.id or "", 0):
            return True
        if decision.unit is not None and decision.n < self._units.get(decision.unit, 0):
            return True
        if not self._spans:
            return False
        return any(decision.n < n and first <= decision.at <= last for n, first, last in self._spans)

    def conditions(self) -> Iterator[tuple[str, Sequence[object]]]:
        """Yield SQL conditions, and their values; every decision that is voided fulfils one of them."""
        for column, names in (("id", sorted(self._ids)), ("unit", list(self._units))):
            for start in range(0, len(names), CHUNK):
                some = names[start : start + CHUNK]
                yield f"{column} IN ({', '.join('?' * len(some))})", some
        for _, first, last in self._spans:
            yield "at BETWEEN ? AND ?", (first, last)

    def to_list(self) -> list[tuple[int, Json]]:
        return list(self._bodies.items())

    @classmethod
    def from_list(cls, saved: Iterable[tuple[int, Json]]) -> Voids:
        return cls(Event(0, Kind.VOID, body=body, n=n) for n, body in saved)


class Traffic:
    """Decisions by category and group over time.

    Time is cut into at most 60 pieces; when there are more, pairs are merged. Each piece also keeps the sums of the
    groups as they were at its end, so that the lift can be shown over time.
    """

    def __init__(self) -> None:
        self.width = 1_000_000  # microseconds of one piece
        self.first = 0  # the number of the first piece: its start over the width
        self.pieces: list[Piece] = []

    @property
    def end(self) -> int:
        """The time at which the last piece ends."""
        return (self.first + len(self.pieces)) * self.width

    def add(self, decisions: Sequence[Event], rewards: Sequence[Event], category: Callable[[str], str]) -> None:
        """Count decisions, and add rewards to the times at which they came in, all before the `end`."""
        for piece, some in self._by_piece(decisions):
            piece.categories.update([category(event.arm or "") for event in some])
            piece.decisions.update([event.cohort or Cohort.ALL for event in some])
        for piece, some in self._by_piece(rewards):
            for event in some:
                cohort = event.cohort or Cohort.ALL
                if event.value or cohort not in piece.rewards:  # adding 0 changes nothing
                    piece.rewards[cohort] = piece.rewards.get(cohort, 0.0) + (event.value or 0.0)

    def _by_piece(self, events: Sequence[Event]) -> Iterable[tuple[Piece, Sequence[Event]]]:
        """Sort events by the pieces they belong to; nearly always, all belong to the last one."""
        if not events or not self.pieces:
            return []
        if min(event.at for event in events) >= self.end - self.width:
            return [(self.pieces[-1], events)]
        places: dict[int, list[Event]] = {}
        for event in events:
            places.setdefault(max(event.at // self.width - self.first, 0), []).append(event)
        return [(self.pieces[place], some) for place, some in places.items()]

    def reach(self, at: int, account: Account | None) -> None:
        """Let the pieces reach a time; ``account`` holds the sums at the end of the piece that is the last so far."""
        if not self.pieces:
            self.first = at // self.width
        while at // self.width - self.first >= BUCKETS:
            self._double()
        n_new = at // self.width - self.first + 1 - len(self.pieces)
        if n_new > 0 and self.pieces and account is not None:
            self.pieces[-1].sums = {
                cohort: list(vars(account.moments(cohort)).values()) for cohort in (Cohort.POLICY, Cohort.CONTROL)
            }
        self.pieces += [Piece() for _ in range(n_new)]

    def _double(self) -> None:
        """Merge pairs of pieces."""
        merged: dict[int, Piece] = {}
        for place, piece in enumerate(self.pieces, self.first):
            merged.setdefault(place // 2, Piece()).add(piece)
        self.pieces, self.first, self.width = list(merged.values()), self.first // 2, self.width * 2

    def to_dict(self) -> Json:
        pieces = [vars(piece) for piece in self.pieces]
        return {"width": self.width, "first": self.first, "pieces": pieces}

    @classmethod
    def from_dict(cls, saved: Json) -> Traffic:
        traffic = cls()
        traffic.width, traffic.first = saved["width"], saved["first"]
        traffic.pieces = [
            Piece(Counter(its["categories"]), Counter(its["decisions"]), its["rewards"], its["sums"])
            for its in saved["pieces"]
        ]
        return traffic


@dataclass
class Piece:
    """What happened in one piece of time."""

    categories: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)  # by cohort
    rewards: dict[str, float] = field(default_factory=dict)  # by cohort
    sums: dict[str, list[float]] = field(default_factory=dict)  # of the groups, at its end, as `Moments` has them

    def add(self, later: Piece) -> None:
        """Add the piece that follows it."""
        self.categories.update(later.categories)
        self.decisions.update(later.decisions)
        for cohort, reward in later.rewards.items():
            self.rewards[cohort] = self.rewards.get(cohort, 0.0) + reward
        self.sums = later.sums or self.sums

    def moments(self, cohort: str) -> Moments:
        return Moments(*self.sums[cohort]) if cohort in self.sums else Moments()  # type: ignore[arg-type]
