"""Decide in the application's own process, by the service's policy, and report to the service in the background."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from banditree.base import files
from banditree.base.files import Json
from banditree.base.words import count
from banditree.client.remote import NOT_MODIFIED, RETRIED, Caller, ServiceError, pause, plain
from banditree.client.spool import Spool
from banditree.data.features import Features
from banditree.errors import BanditreeError, InvalidType, InvalidValue
from banditree.errors.checks import real
from banditree.policy import Policy, answers
from banditree.policy.answers import Decision
from banditree.policy.saving import from_bytes
from banditree.policy.state import hold
from banditree.service import choosing
from banditree.service.events import Event, iso, now
from banditree.service.settings import Settings
from banditree.tree.build import Name

FOLLOW_SECONDS = 0.5  # between two looks whether the policy has changed
REST = 20  # times as long as it took to load the policy, before it is loaded again
REPORT_SECONDS = 0.25  # between two reports, if little is to be reported
ADOPT_SECONDS = 30.0  # between two looks for what dead processes have left
KEEP_SECONDS = 10.0  # between two copies of the policy on the disk, for a start without the service
MAX_AT_ONCE = 1_024  # decisions drawn at once
MAX_LINE = 2**19  # bytes of a decision and its request
MAX_K, MAX_UNIT = 100, 200  # as the service has them
BAD_BATCH = {400, 413, 422}  # statuses of a batch that cannot be read, and will not be
DECISION, REWARD, EXPOSURE = b"d", b"r", b"e"  # what a line of the spool begins with
LISTS = {DECISION: "decisions", REWARD: "rewards", EXPOSURE: "exposures"}
COPY, REFUSED = "policy", "refused.ndjson"  # files in the folder

logger = logging.getLogger("banditree.client")
_write = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain).encode


class Draws:
    """A policy from which decisions are drawn many at once, and each arm's probability is computed once."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.tree, self.dim = policy, policy.tree, policy.dim
        self.forget()

    def forget(self) -> None:
        """Draw again: a forked process must not use what its parent will."""
        self._drawn: list[Name] = []
        self._n = 1  # to be drawn next
        self._known: dict[object, Decision] = {}

    def decide(self, context: object = None, *, only: object = None, exclude: object = None) -> Decision:
        if context is not None or only is not None or exclude is not None or self.dim is not None:
            return self.policy.decide(context, only=only, exclude=exclude)
        if not self._drawn:
            self._drawn = self.policy.choose_many(self._n).tolist()
            self._n = min(2 * self._n, MAX_AT_ONCE)
        arm = self._drawn.pop()
        known = self._known.get(arm)
        if known is None:
            with hold(self.policy) as state:
                position = state.walked_tree.position(arm)
                known = self._known[arm] = answers.decide(state, None, None, position, self.policy.explore)
        return known

    def propensity(self, arm: object, context: object = None, *, only: object = None, exclude: object = None) -> float:
        if context is None and only is None and exclude is None and arm in self._known:
            return self._known[arm].propensity
        return self.policy.propensity(arm, context, only=only, exclude=exclude)


@dataclass(frozen=True)
class Standing:
    """What decisions depend on, as it was after an event of the service's log."""

    name: str
    event: int
    salt: str
    settings: Settings
    is_paused: bool
    features: Features | None
    policy: Draws
    control: Draws | None


class Local:
    """Decides in this process, and reports decisions and rewards in the background. Threads may share it.

    A decision is in a file before it is returned; it is reported within a second or so, and kept until the service has
    acknowledged it, however long that takes and whatever happens to this process. The policy is that of the service,
    a second or so ago.

    Parameters
    ----------
    url
        The address of the service.
    experiment
        The name of the experiment.
    token
        A token with the role ``decide``, if the service asks for one.
    folder
        Where decisions and rewards wait, on a local disk. Several processes may share it.
    timeout
        Seconds to wait for an answer of the service.

    >>> from banditree.client import Local
    >>> with Local("http://127.0.0.1:8000") as client:                     # doctest: +SKIP
    ...     decision = client.decide(unit="visitor-17", exclude=["h2"])
    ...     client.reward(decision["id"], 1)
    """

    def __init__(
        self,
        url: str,
        *,
        experiment: str = "main",
        token: str | None = None,
        folder: str | os.PathLike[str] = "spool",
        timeout: float = 10.0,
    ) -> None:
        self.experiment = experiment
        self.folder = Path(folder) / quote(experiment, safe="")
        self.refused = 0  # decisions and rewards that the service refused, which are in refused.ndjson in the folder
        self._caller = Caller(url, token, experiment, timeout)
        self._recent: dict[str, Event] = {}  # unit -> its last decision
        self._tags: dict[str, str] = {}  # of the policies, by group
        self._bytes: dict[str, bytes] = {}  # the policies themselves
        self._problems: dict[str, str] = {}  # by what is being done
        self._is_closed = False
        self._spool = Spool(self.folder)
        try:
            self._standing = self._begin()
        except BaseException:
            self._spool.close()
            raise
        self._start()
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _after_fork(this()))

    # What the application calls

    def decide(
        self,
        *,
        unit: str | None = None,
        context: Mapping[str, object] | Sequence[float] | None = None,
        only: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        k: int = 1,
    ) -> dict[str, Any]:
        """Decide. Returns what the service would have answered: id, arm, arms, path, propensity, steps, group, at.

        Parameters
        ----------
        unit
            Whom it is for, such as a visitor, who is then always in the same group.
        context
            What is known about the visitor: features by name, or a list of numbers.
        only, exclude
            Arms to choose from, and arms that must not be chosen; those that do not exist are left out.
        k
            How many different arms.
        """
        request = _request(unit, context, only, exclude, k)
        with self._deciding:
            self._check_open()
            standing, at = self._standing, now()
            kept = None if unit is None else self._recent.get(unit)
            if kept is not None and choosing.keeps(standing, kept, request, at):
                return choosing.answer(kept)
            decision = choosing.decided(standing.name, None, at, *choosing.choose(standing, request, standing.salt))
            answer = choosing.answer(decision)
            self._append(DECISION, _row(answer, request, standing.event))
            if standing.settings.sticky is not None and unit is not None:
                self._remember(unit, decision, standing.settings.sticky)
        return answer

    def reward(self, id: str, reward: float, *, position: int | None = None) -> None:  # noqa: A002
        """Report the reward of a decision; for a slate with its position."""
        given = float(reward) if isinstance(reward, bool) else reward
        value = real(f"the decision {id!r}: reward", given, *self._standing.policy.policy.support)
        row = {"id": id, "reward": value, "at": iso(now())}
        with self._deciding:
            self._append(REWARD, row if position is None else row | {"position": position})

    def expose(self, id: str) -> None:  # noqa: A002
        """Report that somebody saw what was decided, for experiments with ``--exposure``."""
        with self._deciding:
            self._append(EXPOSURE, {"id": id})

    @property
    def backlog(self) -> int:
        """How many decisions and rewards the service has not acknowledged yet."""
        return self._spool.waiting

    @property
    def problem(self) -> str | None:
        """Why the service cannot be reached, or refuses; None if all is well. Decisions go on meanwhile."""
        return next(iter(list(self._problems.values())), None)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was decided so far is acknowledged, at most ``timeout`` seconds; return whether it is."""
        target = self._spool.appended
        self._hurry.set()
        with self._reported:
            return self._reported.wait_for(lambda: self._spool.dropped >= target, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Report what waits, for at most ``timeout`` seconds, and stop. What is left is kept for the next start."""
        if self._is_closed:
            return
        self.flush(timeout)
        with self._deciding:
            self._is_closed = True
        self._hurry.set()
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._keep_copy()
        self._spool.sync()
        self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Deciding

    def _append(self, kind: bytes, row: Mapping[str, object]) -> None:
        self._check_open()
        try:
            line = kind + _write(row).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"this cannot be reported: {error}") from None
        if len(line) > MAX_LINE:
            raise InvalidValue(f"this takes {len(line):,} bytes to report; at most {MAX_LINE:,} are allowed")
        self._spool.append(line)
        if self._spool.is_due and "report" not in self._problems and not self._hurry.is_set():
            self._hurry.set()  # unless it has just failed: then it waits before it tries again

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidValue("this client was closed; make another one")

    def _remember(self, unit: str, decision: Event, sticky: float) -> None:
        self._recent.pop(unit, None)
        self._recent[unit] = decision
        while self._recent[first := next(iter(self._recent))].at < decision.at - sticky * 1e6:
            del self._recent[first]

    # Following the service

    def _begin(self) -> Standing:
        """Fetch the policy, or take the copy of it on the disk if the service is away."""
        try:
            standing = self._fetch()
        except ServiceError as error:
            if error.code is not None and error.code not in RETRIED:
                raise
            standing = self._load_copy()
            if standing is None:
                raise
            self._note("follow", error)
        assert standing is not None
        return standing

    def _fetch(self) -> Standing | None:
        """Ask for the policy; return how it stands if that has changed."""
        changed, headers = self._ask_for("policy")
        about = json.loads(headers["banditree-standing"])
        settings = Settings(**about["settings"])
        if settings.control_learns:
            changed = self._ask_for("control")[0] or changed
        if settings.shadow:
            raise ServiceError(f"{self.experiment} is in shadow mode, in which the service decides: use Client", 409)
        if not changed:
            return None
        self._about = about | {"event": int(headers["banditree-event"])}
        return self._build()

    def _ask_for(self, group: str) -> tuple[bool, Message]:
        """Ask for the policy of a group; return whether it has changed, and the headers."""
        headers = {"if-none-match": self._tags[group]} if group in self._tags else {}
        answer = self._caller.send("GET", "/policy" if group == "policy" else f"/policy?group={group}", None, headers)
        if answer.code == NOT_MODIFIED:
            return False, answer.headers
        self._tags[group], self._bytes[group] = answer.headers["etag"], answer.body
        return True, answer.headers

    def _build(self) -> Standing:
        about = self._about
        try:
            settings = Settings(**about["settings"])
            return Standing(
                name=self.experiment,
                event=about["event"],
                salt=about["salt"],
                settings=settings,
                is_paused=about["paused"],
                features=settings.named,
                policy=Draws(from_bytes(self._bytes["policy"])),
                control=Draws(from_bytes(self._bytes["control"])) if settings.control_learns else None,
            )
        except (BanditreeError, TypeError, KeyError) as error:
            self._tags.clear()
            raise ServiceError(
                f"the policy cannot be read ({error}); is banditree of another version there?", None
            ) from None

    def _follow(self) -> None:
        """Keep the policy up to date until this client is closed."""
        failures, kept_at, rest = 0, time.monotonic(), FOLLOW_SECONDS
        while not self._stopped.wait(rest):
            rest, began = FOLLOW_SECONDS, time.monotonic()
            try:
                standing = self._fetch()
            except Exception as error:  # the thread goes on, whatever a proxy answers
                failures += 1
                rest = max(rest, pause(failures))
                self._note("follow", error)
                continue
            failures = 0
            self._problems.pop("follow", None)
            if standing is None:
                continue
            with self._deciding:
                self._standing = standing
            rest = max(FOLLOW_SECONDS, REST * (time.monotonic() - began))
            if time.monotonic() - kept_at > KEEP_SECONDS:
                self._keep_copy()
                kept_at = time.monotonic()

    def _keep_copy(self) -> None:
        """Write the policy to the disk, for a start while the service is away."""
        head = self._about | {"size": len(self._bytes["policy"])}
        try:
            files.write_whole(self.folder / COPY, [json.dumps(head).encode(), b"\n", *self._bytes.values()])
        except (BanditreeError, OSError) as error:
            logger.warning("cannot keep a copy of the policy: %s", error)

    def _load_copy(self) -> Standing | None:
        try:
            head, _, data = files.read_whole(self.folder / COPY).partition(b"\n")
            self._about = json.loads(head)
            size = self._about.pop("size")
            self._bytes = {"policy": data[:size]} | ({"control": data[size:]} if len(data) > size else {})
            return self._build()
        except (BanditreeError, OSError, ValueError, KeyError):
            return None

    # Reporting to the service

    def _report(self) -> None:
        """Report what was appended, until this client is closed."""
        failures, adopted_at, delay = 0, time.monotonic(), REPORT_SECONDS
        while not self._stopped.is_set():
            self._hurry.wait(delay)
            self._hurry.clear()
            try:
                if time.monotonic() - adopted_at > ADOPT_SECONDS:
                    self._spool.adopt()
                    adopted_at = time.monotonic()
                self._spool.sync()
                while not self._stopped.is_set() and (batch := self._spool.next()):
                    self._send(batch)
                    failures = 0
                    self._problems.pop("report", None)
                delay = REPORT_SECONDS
            except Exception as error:  # the thread goes on, whatever a proxy answers
                failures += 1
                delay = max(REPORT_SECONDS, pause(failures), getattr(error, "wait", 0.0))
                self._note("report", error)

    def _send(self, batch: Path) -> None:
        """Report one batch; delete it when the service has acknowledged it."""
        lines = self._spool.read(batch)
        lists = {name: [line[1:] for line in lines if line[:1] == kind] for kind, name in LISTS.items()}
        parts = (b'"%s":[%s]' % (name.encode(), b",".join(rows)) for name, rows in lists.items() if rows)
        try:
            answer = json.loads(self._caller.send("POST", "/batch", b"{" + b",".join(parts) + b"}").body)
            refused = answer["refused"]
        except ServiceError as error:
            if error.code not in BAD_BATCH:
                raise
            refused = [{"error": str(error), "status": error.code, "line": line.decode()} for line in lines]
        if refused:
            self.refused += len(refused)
            with (self.folder / REFUSED).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in refused)
            first = refused[0]["error"]
            logger.warning("refused: %s (%s), see %s", count(len(refused), "row"), first, self.folder / REFUSED)
        with self._reported:
            self._spool.drop(batch)
            self._reported.notify_all()

    def _note(self, doing: str, error: Exception) -> None:
        """Say once that something is wrong."""
        if doing not in self._problems:
            waits = count(self.backlog, "row waits", "rows wait")
            logger.warning("%s: %s (event %d; %s)", doing, error, self._about["event"], waits)
        self._problems[doing] = str(error)

    # Threads and forks

    def _start(self) -> None:
        self._deciding = threading.Lock()
        self._reported = threading.Condition()
        self._hurry, self._stopped = threading.Event(), threading.Event()
        loops: tuple[Callable[[], None], ...] = self._follow, self._report
        self._threads = [threading.Thread(target=loop, name=f"banditree{loop.__name__}", daemon=True) for loop in loops]
        for thread in self._threads:
            thread.start()

    def _restart(self) -> None:
        """Begin again in a forked child: with files, threads and draws of its own."""
        self._spool.abandon()
        self._spool = Spool(self.folder)
        for draws in filter(None, (self._standing.policy, self._standing.control)):
            draws.forget()
        self._start()


def _after_fork(client: Local | None) -> None:
    if client is not None and not client._is_closed:
        client._restart()


def _request(
    unit: object, context: object, only: Iterable[object] | None, exclude: Iterable[object] | None, k: object
) -> Json:
    """Return the fields of a request that are given, as the service takes them."""
    request: Json = {}
    if context is not None:
        request["context"] = dict(context) if isinstance(context, Mapping) else np.asarray(context).tolist()
    for name, arms in (("only", only), ("exclude", exclude)):
        if arms is not None:
            request[name] = list(arms)
            if isinstance(arms, str) or not all(isinstance(arm, str) for arm in request[name]):
                raise InvalidType(f"{name}={arms!r:.60} must be a list of arm ids, each of them text")
    if k != 1:
        if type(k) is not int or not 1 <= k <= MAX_K:
            raise InvalidValue(f"k={k!r} must be a whole number from 1 to {MAX_K:,}")
        request["k"] = k
    if unit is not None:
        if not isinstance(unit, str) or not 0 < len(unit) <= MAX_UNIT or not unit.isprintable():
            raise InvalidValue(f"unit={unit!r:.60} must be text of 1 to {MAX_UNIT} characters that can be printed")
        request["unit"] = unit
    return request


def _row(answer: Json, request: Json, event: int) -> Json:
    """Return what is reported of a decision."""
    names = ("id", "arm", "propensity", "propensity_overall", "steps", "group", "at", "propensities")
    row = {name: answer[name] for name in names if name in answer}
    return row | request | {"event": event} | ({"arms": answer["arms"]} if len(answer["arms"]) > 1 else {})
