"""Old events go to a file, and the store goes on from what they fold to; stores that 0.3 archived open."""

from __future__ import annotations

import gzip
import math
import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyarrow import parquet

from banditree.errors import BadFile, BadPath, InvalidValue
from banditree.service import archive as module
from banditree.service.archive import archive
from banditree.service.events import MAIN, iso, now
from banditree.service.settings import Plan, Settings
from banditree.service.store import open_log
from tests.support.serving import inside, until

ARMS = {f"{kind}{i}": [kind] for kind in ("hats", "caps") for i in range(2)}
OLD = Path(__file__).with_name("archived-by-0.3.sql.gz")


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    """A store that version 0.3 has archived: 63 of its 81 events are gone."""
    store = tmp_path / "old.db"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(gzip.decompress(OLD.read_bytes()).decode())
    return store


@pytest.mark.parametrize("settings", [Settings(policy="TSC", control=0.2), Settings(policy="ATS", explore=0.3)])
def test_a_store_that_03_archived_opens_with_any_options(old_store: Path, settings: Settings) -> None:
    for _ in range(2):
        with inside(Plan(ARMS, settings), store=old_store) as (service, http):
            state = service.engine.states[MAIN]
            assert (state.decisions, state.policy[()].plays) == (22, 17)
            assert http.get("/v1/decisions/d45").json()["reward"] == 1
    with inside(Plan(ARMS, settings), store=old_store) as (_, http):
        assert http.post("/v1/void", json={"ids": ["d45"]}).json() == {"voided": 1}
        assert http.get("/v1/tree").json()["nodes"][0]["plays"] == 16


def test_default_rewards_of_archived_decisions_are_learned(old_store: Path, tmp_path: Path) -> None:
    """Version 0.3 stored them as events, some of which came after what was archived."""
    settings = Settings(policy="TSC", control=0.2, reward_window=1.0, default_reward=0.0)

    def plays(store: Path) -> list[float]:
        with inside(Plan(ARMS, settings), store=store) as (service, _):
            state = service.engine.states[MAIN]
            until(lambda: state.next_default == math.inf, 30)
            return [state.policy["hats0"].plays, state.policy[()].plays]

    before = plays(Path(shutil.copy(old_store, tmp_path / "before.db")))
    with closing(sqlite3.connect(old_store)) as connection, connection:
        names = "n, at, kind, id, position, arm, value, learned, experiment, unit, cohort"
        values = "82, 1795016426708718, 'default', 'd5', 0, 'hats0', 0.0, 1, 'main', 'v5', 'policy'"
        connection.execute(f"INSERT INTO banditree_events ({names}) VALUES ({values})")
        connection.execute("UPDATE banditree_head SET n = 82")
    assert plays(old_store) == [number + 1 for number in before]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM banditree_snapshots WHERE settings LIKE 'base/%'", "missing"),
        ("UPDATE banditree_snapshots SET data = x'00' WHERE settings LIKE 'base/%'", "damaged"),
    ],
)
def test_a_store_without_what_03_archived_is_refused_and_stays_as_it_is(
    old_store: Path, damage: str, told: str
) -> None:
    """It started as if nothing had been learned, or with voids that were accepted and never done."""
    with closing(sqlite3.connect(old_store)) as connection:
        with connection:
            connection.execute(damage)
        before = list(connection.iterdump())
    with pytest.raises(BadFile, match=rf"{told}.*Restore a backup"), inside(Plan(ARMS, Settings()), store=old_store):
        pass
    with closing(sqlite3.connect(old_store)) as connection:
        rows = [line for line in connection.iterdump() if "banditree_events" in line and line.startswith("INSERT")]
        assert rows == [line for line in before if "banditree_events" in line and line.startswith("INSERT")]


def play(http, n: int, start: int = 0) -> None:  # type: ignore[no-untyped-def]
    for i in range(start, start + n):
        http.post("/v1/decisions", json={"id": f"d{i}", "unit": f"v{i % 5}"})
        http.put(f"/v1/decisions/d{i}/reward", json={"reward": i % 2})


def test_a_store_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadPath, match="there is no store"):
        archive(str(tmp_path / "nowhere.db"), "2026-01-01", tmp_path / "old")
    assert not list(tmp_path.iterdir())


def test_archived_events_are_in_a_file_and_the_state_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder, plan = tmp_path / "d.db", tmp_path / "old", Plan(ARMS, Settings(policy="TSC", control=0.3))
    with inside(plan, store=store) as (service, http):
        play(http, 20)
        before, n = iso(now()), service.engine.n
        play(http, 5, 20)
        state = service.engine.states[MAIN].to_bytes()
        with pytest.raises(InvalidValue, match="is using"):
            archive(str(store), before, folder)
    with monkeypatch.context() as killed:  # between the file and the commit
        killed.setattr(module, "_replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            archive(str(store), iso(now()), folder)
    assert "42 events" in archive(str(store), before, folder)
    assert "nothing to archive" in archive(str(store), before, folder)
    (file,) = folder.iterdir()
    assert parquet.read_table(file)["n"].to_pylist() == list(range(1, n + 1))
    with closing(open_log(str(store))) as log:
        log.run("DELETE FROM banditree_snapshots")
    with inside(plan, store=store) as (service, http):
        assert service.engine.states[MAIN].to_bytes() == state
        assert http.get("/v1/decisions/d3").status_code == 404
        assert http.get("/v1/decisions/d22").status_code == 200


def test_a_file_and_its_folder_are_on_the_disk_before_the_events_leave_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen = tmp_path / "d.db", Mock()
    with inside(Plan(ARMS, Settings()), store=store) as (_, http):
        play(http, 5)
    seen.sync.side_effect, seen.replace.side_effect = module._sync, module._replace
    monkeypatch.setattr(module, "_sync", seen.sync)
    monkeypatch.setattr(module, "_replace", seen.replace)
    archive(str(store), iso(now() + 60_000_000), tmp_path / "old")
    of_folder = ["sync"] if os.name != "nt" else []
    assert [name for name, *_ in seen.mock_calls] == ["sync", *of_folder, "replace"]


def test_settings_that_differ_are_refused_or_applied_as_an_event(tmp_path: Path) -> None:
    store = tmp_path / "d.db"
    with inside(Plan(ARMS, Settings(control=0.2)), store=store) as (_, http):
        play(http, 10)
    with (
        pytest.raises(InvalidValue, match=r"control from 0.2 to 0.5"),
        inside(Plan(ARMS, Settings(control=0.5)), store=store),
    ):
        pass
    with inside(Plan(ARMS, Settings(control=0.5, policy="TS"), updates_settings=True), store=store) as (service, _):
        assert type(service.engine.states[MAIN].policy).__name__ == "TS"
    with inside(Plan(ARMS, Settings(control=0.5, policy="TS")), store=store) as (service, _):
        assert service.engine.states[MAIN].settings.control == 0.5


def test_a_unit_that_asks_twice_at_once_gets_one_decision(tmp_path: Path) -> None:
    with (
        inside(Plan(ARMS, Settings(sticky=60.0)), store=tmp_path / "d.db") as (_, http),
        ThreadPoolExecutor(8) as pool,
    ):
        units = [f"v{i}" for i in range(40) for _ in range(4)]
        ids = pool.map(lambda unit: (unit, http.post("/v1/decisions", json={"unit": unit}).json()["id"]), units)
        assert len(set(ids)) == 40


def test_a_hard_link_to_a_store_and_a_store_that_is_gone_are_noticed(tmp_path: Path) -> None:
    store = tmp_path / "d.db"
    with inside(Plan(ARMS, Settings()), store=store) as (_, http):
        (tmp_path / "link.db").hardlink_to(store)
        with pytest.raises(InvalidValue, match="hard link"):
            open_log(str(tmp_path / "link.db"))
        assert http.post("/v1/decisions").status_code == 201
        store.unlink()
        assert http.post("/v1/decisions").status_code == 503
