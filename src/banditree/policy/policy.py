"""A policy: a tree, a belief and a rule. It walks down the tree to choose an arm, and learns from the reward."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import BELIEFS, Belief, Rows
from banditree.beliefs.base import Batch
from banditree.beliefs.priors import Prior, by_node, parts, resolved
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.output.tables import Table
from banditree.policy import descent, engines
from banditree.policy import inputs as _inputs
from banditree.rules import RULES, Rule
from banditree.tree.build import Name
from banditree.tree.tree import Tree


class State(NamedTuple):
    """All that changes together when the tree does, so that a thread sees either the old or the new."""

    tree: Tree  # the tree that is walked: the given one, cut
    places: dict[Name, int]  # arm -> its place
    arms: tuple[Name, ...]
    rows: Rows
    summary: NDArray[np.int32] | None  # (nodes,) what the rule keeps
    walk: engines.Walk


class Policy:
    """Chooses arms of ``tree`` by walking down it, and learns from rewards.

    ``belief`` is what is believed of each node beforehand, or a mapping that gives some their own: keys are arms, names
    of clusters, paths such as ("clothes", "hats"), and None for all other nodes. ``rule`` scores the children of a
    node, ``depth`` is how much of the tree is walked (None: all of it). ``rng`` is an int, a SeedSequence or a
    Generator; without it every policy draws afresh.

    Works cold. ``choose`` never changes a belief, and rewards may come at any later time, in any order. Calls from
    several threads take turns: each is done whole, and no reward is lost.

    >>> import banditree as bt
    >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    >>> policy = bt.Policy(tree, belief=bt.Beta(1, 1), rule=bt.Thompson(), depth=1, rng=7)
    >>> arm = policy.choose()
    >>> policy.update(arm, reward=1)
    >>> policy.table()[0].plays
    1
    """

    def __init__(self, tree: Tree, *, belief: Prior, rule: Rule, depth: int | None = None, rng: Any = None) -> None:
        self._start(tree, belief, rule, depth, rng, strict=True)

    def _start(self, tree: Tree, belief: Prior, rule: Rule, depth: int | None, rng: Any, *, strict: bool) -> None:
        """All of __init__; not ``strict`` when loading, for then a prior's arm or cluster may have left the tree."""
        self._name = type(self).__name__
        _check_tree(tree)
        self.belief, own = parts(belief)
        self._own = resolved(tree, own) if strict else own
        if not isinstance(rule, Rule):
            raise InvalidType(f"rule {rule!r} must be a rule such as bt.Thompson() or bt.UCB()")
        self.rule = rule
        self.rule.check(self.belief)
        self.depth = None if depth is None else whole("depth", depth, 0, why="0 is flat, 1 the top clusters, ...")
        self._lock = RLock()
        self._holds = 0  # how many `held` are open, one inside another
        self._engine = engines.engine()  # a change of the tree keeps to it
        self._stream: Any = None
        self.tree, self._state = tree, self._grown(tree, rng)

    @property
    def dim(self) -> int | None:
        """Length of the contexts, None where this policy takes none."""
        return self.belief.dim

    @property
    def engine(self) -> str:
        """The engine that walks: "native" or "readable"."""
        return "readable" if isinstance(self._state.walk, descent.Walk) else "native"

    @property
    def walk(self) -> engines.Walk:
        """The engine's side of this policy, for the simulator."""
        return self._state.walk

    @property
    def support(self) -> tuple[float, float]:
        """The rewards that the belief allows."""
        return self._state.rows.support

    @property
    def support_hint(self) -> str:
        """What to do about rewards outside the support."""
        return self._state.rows.hint

    # Choosing

    def choose(self, context: Any = None) -> Name:
        """An arm for now, from today's beliefs."""
        state = self._state
        place = state.walk.choose(context)
        return state.arms[place] if place >= 0 else self._choose_carefully(context)

    def _choose_carefully(self, context: Any) -> Name:
        """The walk said no: the context is not ready to use, or the tree is being changed."""
        with self._lock:
            ready = _inputs.context(context, self.dim, self._name)
            place = self._state.walk.choose(ready)
            if place < 0:
                self._refuse_while_held()
                raise InvalidValue(f"context {context!r} is too large to compute with; scale your contexts")
            return self._state.arms[place]

    def choose_many(self, n: int | None = None, *, contexts: Any = None) -> NDArray[Any]:
        """Independent decisions from today's beliefs: n of them, or one for each row of ``contexts``."""
        if n is not None or self.dim is None:
            if n is None:
                raise InvalidType(f"say how many decisions, for example {self._name}.choose_many(100)")
            n = whole("n", n, 0, 2**31 - 1, why="how many decisions")
        with self._lock:
            ready = _inputs.contexts(contexts, n, self.dim, self._name)
            found = self._state.walk.choose_many(len(ready) if ready is not None else n or 0, ready)
            if found is None:
                self._refuse_while_held()
                raise InvalidValue("some contexts are too large to compute with; scale your contexts")
            return self._state.tree.ids(found)

    # Learning

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        """Learn from one reward."""
        state = self._state
        try:
            place = state.places[arm]
        except (KeyError, TypeError):
            place = state.tree.position(arm)  # says what is wrong
        if not state.walk.update(place, reward, context):
            self._update_carefully(arm, reward, context)

    def _update_carefully(self, arm: Any, reward: Any, context: Any) -> None:
        """The walk said no: something is not ready to use, or the tree is being changed."""
        with self._lock:
            state = self._state
            place = state.tree.position(arm)
            ready = _inputs.reward(reward, state.rows, arm), _inputs.context(context, self.dim, self._name)
            if not state.walk.update(place, *ready):
                self._refuse_while_held()
                raise InvalidValue(f"the {self.engine} engine refused reward {reward!r} for arm {arm!r}")

    def update_many(self, arms: Any, rewards: Any, *, contexts: Any = None) -> None:
        """Learn from many rewards: the same as one by one, in any order. Where one is bad, none is applied."""
        with self._lock:
            state = self._state
            places = state.tree.positions(arms)
            numbers = _inputs.rewards(rewards, len(places))
            ready = _inputs.contexts(contexts, len(places), self.dim, self._name)
            if state.walk.update_few(places, numbers, ready):
                return
            grouped = engines.group(places, numbers, state.rows.support, state.tree.n_arms, self._engine)
            if isinstance(grouped, int):
                _inputs.reward(float(numbers[grouped]), state.rows, state.arms[places[grouped]])
            with self.held():
                batch = Batch(places, numbers, ready, *grouped)
                descent.absorb(state.tree.shape, state.rows, self.rule, state.summary, batch)

    def learn(self, log: Any) -> None:
        """Learn from a log (`bt.read_log`): the same as `update_many` of its rows. All of it is learned, or nothing.

        Contexts are left out where this policy takes none.
        """
        arms = self.tree.ids(log.places(self.tree))
        self.update_many(arms, log.rewards, contexts=None if self.dim is None else log.contexts)

    # A living catalogue

    def add_arms(self, arms: Mapping[Any, Sequence[Any]]) -> None:
        """New arms, each below the clusters named, such as ``{"h4": ("hats",)}``. They start at the prior."""
        self._change(lambda tree: tree.add_arms(arms))

    def move_arms(self, arms: Mapping[Any, Sequence[Any]]) -> None:
        """Put arms below other clusters. Their evidence goes with them."""
        self._change(lambda tree: tree.move_arms(arms))

    def remove_arms(self, arms: Iterable[Any]) -> None:
        """Take arms out, with their evidence: one that comes back starts at the prior."""
        self._change(lambda tree: tree.remove_arms(arms))

    def retree(self, tree: Tree) -> None:
        """Go on with another tree. Arms in both keep their evidence, the others leave or start at the prior."""
        self._change(lambda _: tree)

    def _change(self, make: Any) -> None:
        """Swap the tree. An inner node's evidence is the sum of its arms', so everything follows from the arms."""
        with self.held() as old:
            tree = make(self.tree)
            _check_tree(tree)
            new = self._grown(tree)
            new.walk.narrowest = old.walk.narrowest
            stays = [arm for arm in new.arms if arm in old.places]
            here, there = (state.tree.shape.node_of[state.tree.positions(stays)] for state in (new, old))  # their nodes
            new_rows, old_rows = new.rows, old.rows
            for name in old_rows.EVIDENCE:
                new_rows.add_from_arms(new.tree.shape, name, getattr(old_rows, name)[there], here)
            for name in old_rows.DERIVED:
                getattr(new_rows, name)[here] = getattr(old_rows, name)[there]
            inner = new.tree.shape.inner
            new_rows.settle(inner[new_rows.plays(inner) > 0])
            self._refresh(new)
            new.walk.close()  # until nobody holds the policy
            self.tree, self._state = tree, new

    def _grown(self, tree: Tree, rng: Any = None) -> State:
        """Fresh beliefs over a tree; ``rng`` matters the first time."""
        cut = tree if self.depth is None else tree.cut(self.depth)
        rows = self.belief.rows(cut.shape.n_nodes, by_node(cut, self._own))
        if self._stream is None:
            self._stream = engines.stream_for(rows, self.rule, rng, self._engine)
        summary = descent.new_summary(cut.shape, rows, self.rule)
        walk = engines.build(cut.shape, rows, self.rule, summary, self._stream, self._engine)
        return State(cut, cut.index, cut.arms, rows, summary, walk)

    def _refresh(self, state: State) -> None:
        """Bring what the rule keeps up to date with the evidence."""
        fresh = descent.new_summary(state.tree.shape, state.rows, self.rule)
        if state.summary is not None and fresh is not None:
            state.summary[:] = fresh

    @contextmanager
    def held(self, *, changes: bool = True) -> Iterator[State]:
        """Nothing else happens meanwhile: steps of other threads are refused by the walk and wait for the lock.

        ``changes`` says that the evidence may be another afterwards; the engine then forgets what it derived from it.
        """
        with self._lock:
            self._holds += 1
            try:
                self._state.walk.close()
                yield self._state
            finally:
                self._holds -= 1
                if changes:
                    self._state.walk.reset()
                if not self._holds:
                    self._state.walk.close(False)  # the new walk, if there is one; the old one then stays closed

    def _refuse_while_held(self) -> None:
        if self._holds:
            raise InvalidValue(f"this {self._name} is held; choose and update before or after `with policy.held()`")

    # Looking

    def table(self, context: Any = None) -> Table:
        """A row a node, the root first: path, plays, mean and a 95% interval of the expected reward.

        With linear beliefs mean and interval are those in ``context``; without one, the mean of the rewards seen.
        """
        with self.held(changes=False) as state:
            nodes = np.arange(state.tree.shape.n_nodes)
            plays = state.rows.plays(nodes)
            if self.dim is not None and context is None:
                mean = state.rows.rewards(nodes) / np.maximum(plays, 1)
                low = high = np.full(len(nodes), np.nan)
            else:
                ready = _inputs.context(context, self.dim, self._name)
                at = None if ready is None else ready[None]
                mean = state.rows.mean(nodes, at)[:, 0]
                low, high = state.rows.interval(nodes, at)
            paths = state.tree.paths_of_nodes()
        interval = list(zip(low.tolist(), high.tolist(), strict=True))
        columns = (paths, plays.astype(int).tolist(), mean.tolist(), interval)
        return Table(("path", "plays", "mean", "interval"), list(zip(*columns, strict=True)))

    def __repr__(self) -> str:
        depth = "" if self.depth is None else f", depth={self.depth}"
        return f"<{self._name} on {self.tree!r}{depth}, {self.belief}, {self.rule}, {self.engine} engine>"

    # Keeping

    def __reduce__(self) -> Any:
        raise InvalidType(
            f"a {self._name} cannot be copied or pickled; save() it to a file and bt.load() as many as you need"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, atomically. The random stream is not saved: `bt.load` takes a fresh rng."""
        from banditree.output import files as store  # what it needs takes a tenth of the time of `import banditree`

        with self.held(changes=False) as state:
            parent, content, arms, names = self.tree.to_arrays()
            header = {
                "policy": self._name,
                "belief": _described(self.belief),
                "own": [[key, _described(belief)] for key, belief in self._own.items()],
                "rule": _described(self.rule),
                "depth": self.depth,
                "arms": arms,
                "clusters": names,
            }
            rows = {f"rows.{name}": array.copy() for name, array in state.rows.kept().items()}
        store.write(path, "policy", header, {"parent": parent, "content": content, **rows})

    def restore(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Put saved evidence, and what derives from it, in place of the present: {name: (nodes, ...)}."""
        with self.held() as state:
            present = state.rows.kept()
            for name, array in present.items():
                if rows[name].shape != array.shape:
                    raise InvalidValue(f"{name} has shape {rows[name].shape}, the tree needs another")
            state.rows.put_back({name: rows[name] for name in present})
            self._refresh(state)


def _check_tree(tree: Any) -> None:
    if not isinstance(tree, Tree):
        raise InvalidType(f"tree {tree!r} is a {type(tree).__name__}; build one with bt.Tree(...)")


def _described(part: Belief | Rule) -> dict[str, Any]:
    """What a file says of a belief or a rule. One of the user's own is passed again at loading: its name is enough."""
    if type(part) in (*BELIEFS.values(), *RULES.values()):
        return {"kind": type(part).__name__, **part.parameters()}
    return {"kind": f"{type(part).__module__}.{type(part).__qualname__}"}
