"""Kill servers under load and compare what is left with what they had answered.

Clients keep a ledger of every request and its answer. A server is killed with SIGKILL at a random moment, the store is
read as it was left, and then: nothing that was answered is missing, nothing is counted twice, and the state that the
next server starts from equals the fold of the whole log, bit for bit.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import httpx

from banditree.service import engine
from banditree.service.choosing import answer
from banditree.service.engine import Waiting
from banditree.service.events import MAIN, Cohort, Event, Kind, iso, now
from banditree.service.replica import first_state, snapshot_key
from banditree.service.serve import serve
from banditree.service.settings import Plan, Settings
from banditree.service.state import State, Voids
from banditree.service.store import EventLog, SqliteLog, open_log

ARMS = {f"{kind}{i}": [kind] for kind in ("shoes", "hats", "gloves") for i in range(4)}
OTHER = "other"  # the second experiment
EVIDENCE = {"arms": ["hats0", "hats1"], "rewards": [3.0, 1.0], "plays": [10.0, 5.0]}
WINDOW = Settings(policy="TSC", control=0.3, control_policy="TS", reward_window=3.0, default_reward=0.0)
PLANS = {
    MAIN: Plan(ARMS, Settings(explore=0.1, control=0.2), source="torture", evidence=EVIDENCE),
    OTHER: Plan(ARMS, WINDOW, OTHER, source="torture"),
}
CLIENTS = 4
PATIENCE_SECONDS = 10.0
MOST_ANSWERS = 120  # a server is killed after up to this many answers
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.torture"])


class Hasty(engine.Engine):
    """A planted bug: it answers, and then writes. The disk takes its time."""

    def _commit(self, part: list[Waiting]) -> None:
        if part:
            self.replica.follow(self.log.begin(alone=True))
            work = self.writer._compute([waiting.command for waiting in part])
            self._answer(part, work.results)
            time.sleep(0.02)
            if work.events:
                self.writer.store(work.events, alone=True)
            self.log.rollback()


def run_server(store: str, address: Any, hasty: bool) -> None:
    """What a server process does: it prints its address into a pipe. Snapshots are frequent, to start from some."""
    engine.SNAPSHOT_EVERY = 150
    if hasty:
        from banditree.service import serve as module

        vars(module)["Engine"] = Hasty
    with (
        os.fdopen(os.dup(address.fileno()), "w") as pipe,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(pipe),
        redirect_stderr(nowhere),
    ):
        serve(list(PLANS.values()), store=store, host="127.0.0.1", port=0)


class Process:
    """A server that can be killed."""

    def __init__(self, store: str, *, hasty: bool = False) -> None:
        receiver, sender = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=run_server, args=(store, sender, hasty), daemon=True)
        with receiver:
            with sender:
                self.process.start()
            with os.fdopen(os.dup(receiver.fileno())) as lines:
                line = lines.readline()
        assert "http://" in line, "the server ended before it had an address"
        self.url = line.split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@dataclass
class Ledger:
    """What one client knows: its decisions as they were answered, and the rewards that were accepted."""

    asked: dict[str, dict[str, Any]] = field(default_factory=dict)  # id -> the request
    answered: dict[str, dict[str, Any]] = field(default_factory=dict)  # id -> the answer
    sent: dict[str, float] = field(default_factory=dict)  # id -> the reward
    accepted: dict[str, float] = field(default_factory=dict)
    voided: set[str] = field(default_factory=set)  # ids of decisions that the service said it has voided
    unshown: set[str] = field(default_factory=set)  # ids of decisions that it was asked to withdraw
    withdrawn: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def size(self) -> int:
        return len(self.answered) + len(self.accepted)


def at(id_: str) -> str:
    """The routes of the experiment of a decision, which its id tells."""
    return f"/v1/experiments/{OTHER}" if id_.endswith("-other") else "/v1"


class ClientThread(threading.Thread):
    """Decides, rewards, withdraws, repeats itself, voids, pauses and resumes, until nobody answers any more."""

    def __init__(self, url: str, ledger: Ledger, name: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.url, self.ledger, self.prefix, self.rng = url, ledger, name, random.Random(seed)
        self.stopped = False

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=120, trust_env=False) as http:
            try:
                while not self.stopped:
                    self.step(http)
            except httpx.TransportError:
                pass

    def step(self, http: httpx.Client) -> None:
        ledger, rng = self.ledger, self.rng
        open_ = [id_ for id_ in list(ledger.answered)[-20:] if id_ not in ledger.sent and id_ not in ledger.unshown]
        if open_ and rng.random() < 0.03:
            self.withdraw(http, rng.choice(open_))
        elif open_ and rng.random() < 0.5:
            self.reward(http, rng.choice(open_))
        elif ledger.sent and rng.random() < 0.1:
            self.reward(http, rng.choice(list(ledger.sent)))  # again
        elif ledger.asked and rng.random() < 0.1:
            self.decide(http, rng.choice(list(ledger.asked)))  # again
        elif ledger.answered and rng.random() < 0.03:
            self.void(http, rng.sample(list(ledger.answered), min(3, len(ledger.answered))))
        elif rng.random() < 0.05:
            self.change(http)
        else:
            self.decide(http, f"{self.prefix}-{len(ledger.asked)}{rng.choice(['', '-other'])}")

    def decide(self, http: httpx.Client, id_: str) -> None:
        ledger = self.ledger
        new: dict[str, Any] = {"id": id_} | ({"k": 2} if self.rng.random() < 0.2 else {})
        new |= {"unit": f"visitor-{self.rng.randrange(50)}"} if self.rng.random() < 0.8 else {}
        request = ledger.asked.setdefault(id_, new)
        got = http.post(f"{at(id_)}/decisions", json=request)
        if got.status_code == 503:
            return
        if got.status_code not in (200, 201):
            ledger.faults.append(f"decision {id_}: {got.status_code} {got.text}")
        elif ledger.answered.setdefault(id_, got.json()) != got.json():
            ledger.faults.append(f"decision {id_} was answered in two ways")

    def reward(self, http: httpx.Client, id_: str) -> None:
        ledger = self.ledger
        value = ledger.sent.setdefault(id_, float(self.rng.random() < 0.3))
        got = http.put(f"{at(id_)}/decisions/{id_}/reward", json={"reward": value, "position": 0})
        if got.status_code == 503:
            return
        if got.status_code != 200:
            ledger.faults.append(f"reward of {id_}: {got.status_code} {got.text}")
        elif id_ in ledger.accepted and got.json()["status"] != "duplicate":
            ledger.faults.append(f"the reward of {id_} was applied twice")
        else:
            ledger.accepted[id_] = value

    def withdraw(self, http: httpx.Client, id_: str) -> None:
        self.ledger.unshown.add(id_)
        got = http.delete(f"{at(id_)}/decisions/{id_}")
        if got.status_code == 200:
            self.ledger.withdrawn.add(id_)
        elif got.status_code not in (409, 503):  # 409: it has got its default reward
            self.ledger.faults.append(f"withdrawal of {id_}: {got.status_code} {got.text}")

    def change(self, http: httpx.Client) -> None:
        """Change a whole experiment: pause it, go on, move an arm, or void a visitor or a moment."""
        rng, moment = self.rng, now()
        where = rng.choice(["/v1", f"/v1/experiments/{OTHER}"])
        changes: list[tuple[str, Any]] = [
            ("pause", {}),
            ("resume", {}),
            ("resume", {}),
            ("arms", {"move": {"hats0": [rng.choice(["hats", "shoes"])]}}),
            ("void", {"unit": f"visitor-{rng.randrange(50)}"}),
            ("void", {"from": iso(moment - 20_000), "to": iso(moment - 10_000)}),
        ]
        route, body = rng.choice(changes)
        got = http.post(f"{where}/{route}", json=body)
        if got.status_code not in (200, 503):
            self.ledger.faults.append(f"{route}: {got.status_code} {got.text}")

    def void(self, http: httpx.Client, ids: list[str]) -> None:
        for where in {at(id_) for id_ in ids}:
            some = [id_ for id_ in ids if at(id_) == where]
            got = http.post(f"{where}/void", json={"ids": some})
            if got.status_code == 200:
                self.ledger.voided |= set(some)
            elif got.status_code != 503:
                self.ledger.faults.append(f"void: {got.status_code} {got.text}")


def load(processes: Sequence[Process], ledgers: Sequence[Ledger], name: str, seed: int) -> list[ClientThread]:
    """Start a client per ledger, spread over the servers."""
    threads = [
        ClientThread(processes[place % len(processes)].url, ledger, f"{name}-{place}", seed + place)
        for place, ledger in enumerate(ledgers)
    ]
    for thread in threads:
        thread.start()
    return threads


def compare(log: EventLog, ledgers: Sequence[Ledger]) -> list[str]:
    """All that a store has lost, counted twice or made up, against the ledgers."""
    faults = [fault for ledger in ledgers for fault in ledger.faults]
    last = 0
    for event in chain.from_iterable(log.pages(last)):
        if event.n <= last or (event.n != last + 1 and not log.is_shared):
            faults.append(f"event {event.n} follows event {last}")
        last = event.n
    for name in PLANS:
        faults += compare_states(log, name)
    for ledger in ledgers:
        known = find(log, ledger.asked)
        for id_, said in ledger.answered.items():
            kept = [event for event in known.get(id_, ()) if event.kind == Kind.DECISION]
            if [answer(event) for event in kept] != [said]:
                faults.append(f"decision {id_} was answered, and is not in the log as it was answered")
        for id_, value in ledger.accepted.items():
            kept = [event for event in known.get(id_, ()) if event.kind == Kind.REWARD]
            if [event.value for event in kept] != [value]:
                faults.append(f"the reward of {id_} was accepted, and is in the log {len(kept)} times")
        for id_, events in known.items():
            if any(event.kind == Kind.REWARD and event.value != ledger.sent.get(id_) for event in events):
                faults.append(f"the reward of {id_} was never sent")
            is_out = any(event.kind == Kind.WITHDRAWAL for event in events)
            if id_ not in ledger.unshown if is_out else id_ in ledger.withdrawn:
                faults.append(
                    f"{id_} is withdrawn: {is_out}; that it was never shown was said: {id_ in ledger.unshown}"
                )
    voids = Voids(log.of_kinds(Kind.VOID))
    for ledger in ledgers:
        kept = [event for events in find(log, ledger.voided).values() for event in events[:1]]
        faults += [f"{event.id} was voided, and is not" for event in kept if not voids.cover(event)]
    return faults


def compare_states(log: EventLog, name: str) -> list[str]:
    """Fold an experiment from its log, without what was voided, and compare it with its snapshot and its counts.

    Other servers may go on, so the log is read once, after the snapshot.
    """
    settings = PLANS[name].settings
    saved = log.load_snapshot(snapshot_key(name, settings))
    whole = first_state(log, name, settings)
    events = list(chain.from_iterable(log.pages(whole.n, whole=True, experiment=name)))
    for event in events:
        whole.apply([event])
    if whole.is_empty:
        return []
    plays = expected_plays(events, whole)
    faults = []
    if saved is not None:
        restored = State.from_bytes(saved[1], name, settings, whole.settings_version)
        for event in events:
            if event.n > saved[0]:
                restored.apply([event])
        if not restored.is_stale and restored.to_bytes() != whole.to_bytes():
            faults.append(f"{name}: the snapshot and the events after it are not the fold of the log")
    if whole.policy[()].plays != plays:
        faults.append(f"{name}: {plays} rewards are in the log, {whole.policy[()].plays} in the policy")
    return faults


def expected_plays(events: Sequence[Event], whole: State) -> float:
    """Count what the policy should have learned, by the rules of the documentation."""
    plays, is_paused, decided, earned = 0.0, False, dict[str, Event](), dict[str, int]()
    settings, waiting = whole.settings, list[tuple[int, str]]()
    has_default = settings.default_reward is not None
    length = round((settings.reward_window or 0.0) * 1e6)
    for event in events:
        while waiting and waiting[0][0] + 2 * length < event.at:  # three seconds, and as many of grace
            _, id_ = heapq.heappop(waiting)
            if id_ in decided and decided[id_].cohort == Cohort.POLICY and not is_paused:
                plays += decided[id_].value or 1
        if event.kind == Kind.DECISION and not whole.voids.cover(event):
            decided[event.id or ""] = event
            if has_default:
                heapq.heappush(waiting, (event.at, event.id or ""))
        elif event.kind == Kind.WITHDRAWAL:
            decided.pop(event.id or "", None)
        elif event.kind == Kind.EVIDENCE:
            plays += sum((event.body or {})["plays"])
        elif event.kind in (Kind.PAUSE, Kind.RESUME):
            is_paused = event.kind == Kind.PAUSE
        elif event.kind == Kind.REWARD and not has_default and event.id in decided:
            earned[event.id] = earned.get(event.id, 0) + 1
            plays += event.learned and event.cohort == Cohort.POLICY
    return plays


def find(log: EventLog, ids: Iterable[str]) -> dict[str, list[Event]]:
    """The events of decisions of both experiments."""
    ids = list(ids)
    return {id_: events for name in PLANS for id_, events in log.find(name, ids).items()}


def finish(url: str, ledgers: Sequence[Ledger]) -> None:
    """Send again what was left without an answer: it is accepted, whether it had been kept or not.

    A 503, as from a process that lost its turn while others had the machine, is for a moment.
    """
    for place, ledger in enumerate(ledgers):
        client = ClientThread(url, ledger, "finish", place)
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as http:
            end = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end and (left := [id_ for id_ in ledger.asked if id_ not in ledger.answered]):
                for id_ in left:
                    client.decide(http, id_)
            for id_ in [id_ for id_ in ledger.sent if id_ not in ledger.accepted]:
                client.reward(http, id_)
            for id_ in ledger.unshown - ledger.withdrawn:
                client.withdraw(http, id_)


def torture(
    store: str,
    rounds: int,
    *,
    seed: int = 0,
    hasty: bool = False,
    servers: int = 1,
    say: Callable[[str], object] = len,
) -> list[str]:
    """Kill one of the servers in every round. Gives the faults found, at the end of the first round that has some."""
    rng = random.Random(seed)
    processes = [Process(store, hasty=hasty) for _ in range(servers)]
    total = [0, 0]
    try:
        for number in range(rounds):
            ledgers = [Ledger() for _ in range(CLIENTS)]
            threads = load(processes, ledgers, f"r{seed}-{number}", number * CLIENTS)
            wanted = rng.randrange(1, MOST_ANSWERS)
            while any(thread.is_alive() for thread in threads) and sum(map(Ledger.size, ledgers)) < wanted:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.01))
            victim = rng.randrange(servers)
            processes[victim].kill()
            for thread in threads:
                thread.stopped = True
            for thread in threads:
                thread.join(60)
            with closing(open_log(store)) as log:  # takes the lock: the killed server must have lost it
                _begin_to_read(log)
                faults = compare(log, ledgers)
            if faults:
                return faults
            processes[victim] = Process(store, hasty=hasty)
            finish(processes[victim].url, ledgers)
            total[0] += sum(len(ledger.answered) for ledger in ledgers)
            total[1] += sum(len(ledger.accepted) for ledger in ledgers)
            missing = sum(len(ledger.asked) - len(ledger.answered) for ledger in ledgers)
            faults = [fault for ledger in ledgers for fault in ledger.faults]
            with closing(_beside(store)) as log:
                stored = {id_: events for ledger in ledgers for id_, events in find(log, ledger.asked).items()}
            for id_, events in stored.items():
                if len({(event.kind, event.position) for event in events}) < len(events):
                    faults.append(f"{id_} is in the log twice")
            if faults or missing:
                return [*faults, *([f"{missing} decisions were not answered after all"] if missing else [])]
            if (number + 1) % 50 == 0:
                answered = f"{total[0]:,} decisions and {total[1]:,} rewards answered"
                say(f"{number + 1} rounds, {answered}, nothing lost")
    finally:
        for process in processes:
            process.kill()
    return []


def _begin_to_read(log: EventLog) -> None:
    """Let a log show one moment, whatever the servers do that were not killed."""
    if not isinstance(log, SqliteLog):
        log.run("SET idle_in_transaction_session_timeout = 0")
        log.run("BEGIN ISOLATION LEVEL REPEATABLE READ")


def _beside(store: str) -> EventLog:
    """The store of a server that is running, to read from."""
    if store.startswith("postgres"):
        return open_log(store)
    return SqliteLog(Path(store), reads_only=True)
