"""Define `Policy`: a tree, a belief and a rule. It walks down the tree to choose an arm, and learns from rewards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Never

import numpy as np

from banditree.base.arrays import Array, Floats
from banditree.beliefs import Belief, Rows
from banditree.beliefs.priors import OwnPriors, Prior, by_node, parts, resolve
from banditree.data.features import Features
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import real, whole
from banditree.policy import answers, engines, inputs, limits
from banditree.policy.answers import Decision, Remaining
from banditree.policy.limits import AnyLimits
from banditree.policy.state import State, hold, policies, priors_of_new, transfer_evidence
from banditree.rules import UCB, Rule
from banditree.stream import Rng, Seed, Stream, generator, native_stream
from banditree.tree import Tree
from banditree.tree.build import Name, to_list

if TYPE_CHECKING:
    from banditree.base.tables import Row, Table
    from banditree.data.log import Log


@dataclass(frozen=True)
class About:
    """What an algorithm is: its parts, and all that commands, advice, the service and plots need to know about it."""

    summary: str  # what it does, in words; {depth} stands for the depth it was given
    family: str  # policies of one family that walk through the same clusters are the same policy
    belief: Callable[..., Prior] | None = None  # returns the prior; it gets ``of_belief`` and the features by name
    of_belief: tuple[str, ...] = ()  # parameters of the policy that the belief is made from
    rule: Callable[..., Rule] | None = None
    of_rule: tuple[str, ...] = ()
    levels: int | None = None  # levels of clusters that it uses; None: as many as its depth says, or all
    takes_depth: bool = False
    adapts: bool = False  # learns how far to trust the clusters; the others trust those that they use
    cost: int = 1  # time of a simulated decision, about, in those of TSC
    color: str = "grey"  # in plots: a name in `plots.style.PALETTE`
    marker: str = "."
    papers: tuple[str, ...] = ()  # keys of ``papers.bib``, the one that it comes from first

    @property
    def takes_contexts(self) -> bool:
        return "dim" in self.of_belief

    @property
    def takes_prior(self) -> bool:
        return "prior" in self.of_belief

    @property
    def parameters(self) -> tuple[str, ...]:
        """Its own parameters, beyond those of every policy."""
        return (*self.of_belief, *self.of_rule, *(("depth",) if self.takes_depth else ()))


class Policy:
    """Chooses arms of ``tree`` by walking down it, and learns from rewards.

    A policy works without any data. ``choose`` never changes a belief, and rewards may arrive at any later time, in any
    order. Calls from several threads take turns: each is completed before the next, and no reward is lost.

    Parameters
    ----------
    tree
        The arms and their clusters.
    belief
        The prior of every node, or a mapping that gives some nodes their own: keys are arms, names of clusters, paths
        such as ("clothes", "hats"), and None for all other nodes. The algorithms call it ``prior``.
    rule
        Scores the children of a node.
    depth
        How many levels of clusters are walked; None for all of them.
    explore
        The share of decisions made at random, all allowed arms equally likely.
    half_life
        Evidence counts half after this many more rewards; None for evidence that does not fade.
    features
        Contexts by name, for policies that take contexts.
    rng
        An int, a SeedSequence or a Generator; without it every policy has a different random stream.

    >>> import banditree as bt
    >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    >>> policy = bt.Policy(tree, belief=bt.Beta(1, 1), rule=bt.Thompson(), depth=1, rng=7)
    >>> arm = policy.choose()
    >>> policy.update(arm, reward=1)
    >>> policy.table()[0].plays
    1
    """

    about: ClassVar[About] = About("a walk down the tree with parts of your own", "own")

    # A policy's own attributes; `vars` has those that users and derived classes add.
    __slots__ = (
        "__dict__", "__weakref__", "_contexts", "_engine", "_lock", "_state", "_stream",
        "belief", "depth", "explore", "features", "half_life", "rule",
    )  # fmt: skip

    def __init__(
        self,
        tree: Tree,
        *,
        belief: Prior,
        rule: Rule,
        depth: int | None = None,
        explore: float = 0.0,
        half_life: float | None = None,
        features: Features | None = None,
        rng: Seed = None,
        **unknown: Never,
    ) -> None:
        for option in unknown:
            raise self._unknown_parameter(option)
        _check_tree(tree)
        self.belief, own = parts(belief)
        if not isinstance(rule, Rule):
            raise InvalidType(f"rule {rule!r} must be a rule such as bt.Thompson() or bt.UCB()")
        self.rule = rule
        self.rule.check(self.belief)
        name = type(self).__name__
        self._contexts = inputs.Contexts.of(name, self.belief.dim, features, self.belief.has_intercept)
        self.features = self._contexts.features  # contexts by name, None for plain vectors
        self.depth = None if depth is None else whole("depth", depth, 0, why="0 is flat, 1 the top clusters, ...")
        self.half_life = None if half_life is None else real("half_life", half_life, 1, why="a number of rewards")
        self.explore = real("explore", explore, 0, 1, why="the part of decisions made at random")
        self._engine = engines.current()
        self._lock = RLock()  # of all calls but single native steps, which `hold` keeps out
        own_priors = resolve(tree, own)
        rows = self._new_rows(tree, own_priors)
        is_native = self._engine.name == "native" and engines.runs_natively(rows, rule)
        self._stream: Rng = native_stream(rng) if is_native else generator(rng)
        self._state = self._with_walk(tree, own_priors, rows)
        policies.add(self)

    @classmethod
    def _unknown_parameter(cls, name: str) -> InvalidType:
        own = [*cls.about.parameters, "explore", "half_life", "features", "rng"]
        hint = f"the seed is called rng: {cls.__name__}(tree, rng=7)"
        hint = hint if name in ("seed", "random_state", "random_seed") else f"it takes {', '.join(own)}"
        return InvalidType(f"{cls.__name__} has no parameter {name!r}; {hint}")

    @property
    def tree(self) -> Tree:
        """The current tree, with all its clusters; `depth` says how much of it is walked."""
        return self._state.full_tree

    @property
    def dim(self) -> int | None:
        """Length of the contexts, None if this policy takes none."""
        return self._contexts.dim

    @property
    def engine(self) -> str:
        """The engine that walks: "native" or "readable"."""
        return self._state.walk.engine

    @property
    def support(self) -> tuple[float, float]:
        """The lowest and the highest reward that the beliefs allow."""
        return self._state.rows.support

    @property
    def evaluations(self) -> int:
        """How many children have been scored so far: the paper's computational cost."""
        return self._state.walk.evaluations

    # Choosing

    def choose(self, context: object = None, *, only: object = None, exclude: object = None) -> Name:
        """Choose one arm. Beliefs do not change.

        Parameters
        ----------
        context
            What is known about who asks, for policies that take contexts: numbers, or features by name.
        only, exclude
            Limits: a list of arm ids, or a NumPy array of bools over ``tree.arms``.
        """
        if only is None and exclude is None and self.features is None:
            arm = self._state.walk.choose(context)
            if arm is not None:
                return arm
        vector = self._contexts.one(context)
        with self._lock:
            state = self._state
            return state.walked_tree.arms[self._choose_position(state, self._limits(state, only, exclude), vector)]

    def _choose_position(self, state: State, limited: AnyLimits | None, context: Floats | None) -> int:
        """Choose an arm in exclusive access, and return its position."""
        position = state.walk.choose_within(limited, context)
        if position < 0:
            raise InvalidValue(f"context {context!r} is too large to compute with; scale your contexts")
        return position

    def choose_many(
        self, n: int | None = None, *, contexts: object = None, only: object = None, exclude: object = None
    ) -> Array:
        """Make independent decisions from the present beliefs, and return a NumPy array of ids.

        Parameters
        ----------
        n
            How many decisions, for policies that take no contexts.
        contexts
            One row per decision: an array, a data frame, or a list of mappings.
        only, exclude
            Limits, as for `choose`.
        """
        if n is not None or self.dim is None:
            if n is None:
                raise InvalidType(f"give the number of decisions, for example {type(self).__name__}.choose_many(100)")
            n = whole("n", n, 0, 2**31 - 1, why="how many decisions")
        vectors = self._contexts.many(contexts, n)
        with self._lock:
            state = self._state
            m = len(vectors) if vectors is not None else n or 0
            limited = self._limits(state, only, exclude)
            if limited is None:
                positions = state.walk.choose_many(m, vectors)
            else:
                rows = [None] * m if vectors is None else vectors
                positions = np.array([state.walk.choose_within(limited, x) for x in rows], np.int32)
                positions = None if (positions < 0).any() else positions
            if positions is None:
                raise InvalidValue("some contexts are too large to compute with; scale your contexts")
            return state.walked_tree.ids(positions)

    def slate(self, k: int, context: object = None, *, only: object = None, exclude: object = None) -> list[Name]:
        """Choose k different arms, best first, with one draw per node.

        The best path gives the first arm, which is then left out; the next best path gives the second, and so on. On a
        flat tree these are the k highest draws; with clusters, the best cluster comes first until it is exhausted. When
        ``explore`` applies, the whole slate is random. ``context``, ``only`` and ``exclude`` are as for `choose`.
        """
        vector = self._contexts.one(context)
        with self._lock:
            state = self._state
            limited = self._limits(state, only, exclude)
            n = state.walked_tree.n_arms if limited is None else limited.n_allowed
            k = whole("k", k, 1, n, why=f"different arms, of which {n:,} are allowed")
            positions = state.walk.slate(k, limited, vector)
            if positions is None:
                raise InvalidValue(f"context {context!r} is too large to compute with; scale your contexts")
            return [state.walked_tree.arms[position] for position in positions.tolist()]

    def decide(self, context: object = None, *, only: object = None, exclude: object = None) -> Decision:
        """Choose one arm as `choose` does; return it with the probability that this policy, as it is now, chooses it.

        >>> import banditree as bt
        >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
        >>> bt.TSC(tree, rng=7).decide(exclude=["h2"]).propensity
        0.25
        """
        vector = self._contexts.one(context)
        with hold(self) as state:
            limited = self._limits(state, only, exclude)
            position = self._choose_position(state, limited, vector)
            return answers.decide(state, limited, vector, position, self.explore)

    def propensity(self, arm: object, context: object = None, *, only: object = None, exclude: object = None) -> float:
        """Return how likely one arm is to be chosen now. The context and the limits are as for `choose`.

        >>> import banditree as bt
        >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
        >>> bt.TSC(tree).propensity("s1")
        0.25
        """
        vector = self._contexts.one(context)
        with hold(self) as state:
            limited, position = self._limits(state, only, exclude), state.walked_tree.position(arm)
            if limited is not None and not np.isin(position, limited.arms_allowed()):
                return 0.0
            return answers.decide(state, limited, vector, position, self.explore).propensity

    def propensities(self, context: object = None, *, only: object = None, exclude: object = None) -> Floats:
        """Return how likely each arm is to be chosen now, in the order of ``tree.arms``: (arms,), with sum 1.

        The context and the limits are as for `choose`.
        """
        vector = self._contexts.one(context)
        with hold(self) as state:
            limited = self._limits(state, only, exclude)
            return answers.propensities(state, limited, vector, self.explore)

    def _limits(self, state: State, only: object, exclude: object) -> AnyLimits | None:
        arms = limits.find_arms(state.walked_tree, only, exclude)
        if arms is None:
            return None
        named, only_named = arms
        limited = state.walk.limits(named, only_named) if len(named) or not only_named else None
        if limited is None or not limited.n_allowed:
            raise InvalidValue("only and exclude leave no arm to choose from; allow at least one")
        return limited

    # Learning

    def update(self, arm: object, reward: object, context: object = None) -> None:
        """Learn from one reward.

        Parameters
        ----------
        arm
            The arm that was shown.
        reward
            A number that the belief allows: from 0 to 1, unless the prior is a `Gaussian` or a `Linear`.
        context
            The context of the decision, for policies that take contexts.
        """
        if self.features is None and self._state.walk.update(arm, reward, context):
            return
        vector = self._contexts.one(context)
        with self._lock:
            state = self._state
            position = state.walked_tree.position(arm)
            state.walk.learn_one(position, inputs.reward(reward, state.rows, arm), vector)

    def update_many(self, arms: object, rewards: object, *, plays: object = None, contexts: object = None) -> None:
        """Learn from many rewards: the same as one by one, in any order. If one is invalid, none is applied.

        Parameters
        ----------
        arms, rewards
            One arm and one reward per row.
        plays
            How many rewards of its arm (in its context) each row stands for; ``rewards`` then holds their sums, as a
            group-by over a log gives.
        contexts
            One row per reward, for policies that take contexts.
        """
        quick = plays is None and self.features is None
        if quick and self._state.walk.learn_lists(inputs.short(arms), inputs.short(rewards), contexts):
            return
        with self._lock:
            state = self._state
            positions = state.walked_tree.positions(arms)
            n = len(positions)
            totals = inputs.rewards(rewards, n)
            counts = None if plays is None else inputs.plays(plays, n)
            row = state.walk.learn(positions, totals, counts, self._contexts.many(contexts, n))
            if row >= 0:
                inputs.refuse_row(row, state.walked_tree.arms[positions[row]], totals, counts, state.rows)

    def forget(self, factor: float) -> None:
        """Multiply all evidence by ``factor``, from 0 (forget everything) to 1 (forget nothing). Priors stay."""
        factor = real("factor", factor, 0, 1, why="0 forgets everything, 1 nothing")
        with self._lock:
            self._state.walk.forget(factor)

    def learn(self, log: Log) -> None:
        """Learn from the rows of a log (`bt.read_log`), ignoring contexts if this policy takes none.

        A lazy log is summed by its engine. A policy that takes contexts, or learns how much rewards vary, reads its
        rows in chunks instead; if the engine fails, nothing is learned.
        """
        from banditree.data.log import Log  # not needed by `import banditree`

        if not isinstance(log, Log):
            raise InvalidType(f"{type(log).__name__} is not a log: read one with bt.read_log(frame_or_path, ...)")
        if log.is_lazy and self.half_life is not None:
            raise InvalidValue(
                "half_life= forgets in the order of rows, which a lazy log does not keep; read its rows into memory "
                "first, in the order of time, and give that to read_log"
            )
        sums = log.summed()
        arms = self.tree.ids(sums.places(self.tree))
        if log.is_lazy and (self.dim is not None or self.belief.learns_noise):
            self._learn_chunks(log.chunks(by_name=self.dim is None or self.features is not None))
        elif log.is_lazy:
            assert sums.bounds is not None
            for ends, worst in zip(sums.bounds, (np.argmin, np.argmax), strict=True):  # sums may hide them
                inputs.reward(float(ends[worst(ends)]), self._state.rows, arms[worst(ends)])
            self.update_many(arms, sums.rewards * sums.counted, plays=sums.counted)
        else:
            contexts = (
                None if self.dim is None else log.contexts if self.features is None else log.encode(self.features)
            )
            self.update_many(arms, log.rewards, contexts=contexts)

    def _learn_chunks(self, chunks: Iterable[Log]) -> None:
        """Learn from all of these logs; after an error, from none of them."""
        with hold(self) as old:
            self._change(lambda tree: tree)  # a copy, so that the old state stays as it is
            self._state.walk.is_held = True
            try:
                for log in chunks:
                    self.learn(log)
            except BaseException:
                self._state = old
                raise

    # Changing the tree

    def add_arms(self, arms: Mapping[Any, Sequence[object]], *, prior: Belief | str | None = None) -> None:
        """Add arms, each below the clusters named, such as ``{"h4": ("hats",)}``. They start at the policy's prior.

        With ``prior="cluster"`` they start at an estimate from their sibling arms: the siblings' mean, with a certainty
        that reflects how similar they are; if they were hardly tried, the arms of the cluster above are used.
        ``prior=bt.Beta(2, 8)`` sets the prior directly.
        """
        self._change(lambda tree: tree.add_arms(arms), lambda state: priors_of_new(state, self.belief, arms, prior))

    def move_arms(self, arms: Mapping[Any, Sequence[object]]) -> None:
        """Move arms below other clusters. Their evidence moves with them."""
        self._change(lambda tree: tree.move_arms(arms))

    def remove_arms(self, arms: Iterable[object]) -> None:
        """Take arms out, with their evidence: one that comes back starts at the prior."""
        gone = to_list(arms, "arms to remove")
        self._change(lambda tree: tree.remove_arms(gone))

    def retree(self, tree: Tree) -> None:
        """Replace the tree. Arms in both trees keep their evidence; the others are removed, or start at the prior."""
        self._change(lambda _: tree)

    def _change(self, make: Callable[[Tree], Tree], priors: Callable[[State], OwnPriors] = lambda _: {}) -> None:
        """Replace the tree, and carry the evidence over; ``priors`` are those of new arms."""
        with hold(self) as old:
            tree = _check_tree(make(old.full_tree))
            own_priors = {**old.own_priors, **priors(old)}
            new = self._with_walk(tree, own_priors, self._new_rows(tree, own_priors))
            transfer_evidence(old, new)
            self._state = new  # one step: the whole change, or none of it

    def _new_rows(self, tree: Tree, own: OwnPriors) -> Rows:
        """Return beliefs without evidence about the nodes that are walked."""
        walked = tree if self.depth is None else tree.cut(self.depth)
        rows = self.belief.rows(walked.shape.n_nodes, by_node(tree, walked, own))
        rows.join_evidence()
        rows.attach(walked.shape)
        return rows

    def _with_walk(self, tree: Tree, own: OwnPriors, rows: Rows) -> State:
        walked = tree if self.depth is None else tree.cut(self.depth)
        walk = engines.walk(self._engine, walked, rows, self.rule, self._stream, self.explore, self.half_life)
        return State(tree, own, walk)

    def _fresh_stream(self) -> Rng:
        return native_stream() if isinstance(self._stream, Stream) else generator()

    # Inspecting

    def table(self, context: object = None) -> Table:
        """Return one row per node, the root first: path, plays, mean and a 95% interval of the expected reward.

        With linear beliefs, mean and interval are for ``context``; without one, the mean is that of the rewards seen.
        """
        with hold(self) as state:
            vector = None if context is None else self._contexts.one(context)
            return answers.table(state, vector, self.features)

    def row(self, node: object, context: object = None) -> Row:
        """Return one row of `table`: of an arm, or of the node at a path such as ("clothes", "hats").

        With linear beliefs, mean and interval are for ``context``, as in `table`.
        """
        with hold(self) as state:
            vector = None if context is None else self._contexts.one(context)
            return answers.row(state, node, vector, self.features)

    def __getitem__(self, node: object) -> Row:
        """One row of `table`, as `row` returns it."""
        return self.row(node)

    def best(self, context: object = None) -> Name:
        """The arm with the highest expected reward among those tried."""
        with hold(self) as state:
            return answers.best(state, self._contexts.one(context))

    def chances(self, context: object = None) -> dict[Name, float]:
        """Return, for each arm, the probability that its mean is the highest; they sum to 1.

        It goes by the beliefs about the arms themselves, whatever ``explore`` is and however the tree is walked, and
        takes nothing from the policy's random stream. Policies that take contexts compare the arms in ``context``.

        >>> import banditree as bt
        >>> policy = bt.TS(bt.Tree(["a", "b"]), rng=7)
        >>> policy.update("a", reward=1)
        >>> {arm: round(chance, 3) for arm, chance in policy.chances().items()}
        {'a': 0.667, 'b': 0.333}
        """
        self._check_posterior("chances")
        with hold(self) as state:
            return answers.chances(state, self._contexts.one(context))

    def remaining(self, context: object = None) -> Remaining:
        """Return the remaining value, the reward per decision that knowing the best arm would add: ``mean``, ``high``.

        In each of many draws from the beliefs about all arms, this is the highest mean minus that of the arm with the
        highest expected mean; ``mean`` is the average, and ``high`` the 95% quantile. ``context`` is as for `chances`.
        """
        self._check_posterior("remaining")
        with hold(self) as state:
            return answers.remaining(state, self._contexts.one(context))

    def _check_posterior(self, method: str) -> None:
        if isinstance(self.rule, UCB) or not self.belief.can_sample:
            raise InvalidType(
                f"{type(self).__name__} has no posterior, which {method}() needs: it goes by upper confidence bounds; "
                f"use a policy that samples, such as {'LinTS' if self.dim else 'ATS or TS'}"
            )

    def __repr__(self) -> str:
        depth = "" if self.depth is None else f", depth={self.depth}"
        features = "" if self.features is None else f"{self.features}, "
        parts = f"{self.tree!r}{depth}, {features}{self.belief}, {self.rule}"
        parts += f", explore={self.explore}" if self.explore else ""
        parts += "" if self.half_life is None else f", half_life={self.half_life}"
        return f"<{type(self).__name__} on {parts}, {self.engine} engine>"

    _repr_html_ = answers.html

    # Keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, atomically. The random stream is not saved: `bt.load` takes a fresh rng."""
        from banditree.policy import saving  # its imports would take a tenth of the time of `import banditree`

        saving.save(self, path)

    def to_bytes(self) -> bytes:
        """Return what `save` writes, as bytes. `bt.from_bytes` turns it back into a policy."""
        from banditree.policy import saving

        return saving.to_bytes(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy through `to_bytes`: the copy has the same beliefs and a fresh random stream."""
        from banditree.policy import saving

        return saving.reduce(self)


def _check_tree(tree: object) -> Tree:
    if not isinstance(tree, Tree):
        raise InvalidType(f"tree {tree!r} is a {type(tree).__name__}; build one with bt.Tree(...)")
    return tree
