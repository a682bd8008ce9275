"""The service from outside: routes, status codes and what is kept."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banditree.errors import BadPath
from banditree.service.events import MAIN
from banditree.service.settings import Plan, Settings
from banditree.service.store import open_log
from banditree.tree import Tree
from tests.support.serving import ARMS, COMMAND, Server, inside, items, serving, start, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("service")) as started:
        yield started


def nodes(server: Server) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(node["path"]): node for node in server.http.get("/v1/tree").json()["nodes"]}


def put(server: Server, id_: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = server.http.put(f"/v1/decisions/{id_}/reward", json=body)
    return answer.status_code, answer.json()


def test_a_decision_says_what_it_chose_and_how_likely_that_was(server: Server) -> None:
    answer = server.http.post("/v1/decisions")
    decision = answer.json()
    assert answer.status_code == 201
    assert list(decision) == ["id", "arm", "arms", "path", "propensity", "steps", "group", "experiment", "at"]
    assert decision["arm"] in ARMS
    assert decision["arms"] == [decision["arm"]]
    assert decision["path"][-1] == decision["arm"]
    assert len(decision["path"]) == 3
    assert 0 < decision["propensity"] <= 1
    assert decision["propensity"] == pytest.approx(math.prod(decision["steps"]))
    assert decision["at"].endswith("Z")
    assert server.http.get(f"/v1/decisions/{decision['id']}").json() == decision | {"reward": None}


def test_the_same_id_gives_the_same_answer_and_another_request_a_409(server: Server) -> None:
    asked = {"id": "mine 1", "exclude": ["s1", "unknown"], "k": 2}
    first = server.http.post("/v1/decisions", json=asked)
    again = server.http.post("/v1/decisions", json=asked)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = server.http.post("/v1/decisions", json=asked | {"k": 3})
    assert other.status_code == 409
    assert "another request: k was 2 and is now 3" in other.json()["error"]


def test_limits_are_kept_and_a_slate_has_different_arms(server: Server) -> None:
    for _ in range(20):
        assert server.http.post("/v1/decisions", json={"only": ["h1", "s2"]}).json()["arm"] in ("h1", "s2")
    slate = server.http.post("/v1/decisions", json={"k": 5, "exclude": ["h2"]}).json()
    assert sorted(slate["arms"]) == sorted(set(ARMS) - {"h2"})
    assert slate["arm"] == slate["arms"][0] == slate["path"][-1]
    wrong: list[dict[str, Any]] = [{"k": 7}, {"only": ["nobody"]}, {"only": []}, {"exclude": ARMS}]
    for bad in wrong:
        assert server.http.post("/v1/decisions", json=bad).status_code == 422


def test_a_reward_counts_once(server: Server) -> None:
    id_ = server.http.post("/v1/decisions", json={"k": 2}).json()["id"]
    before = nodes(server)[()]["plays"]
    assert put(server, id_, reward=1)[0] == 422  # of which of the two positions?
    assert put(server, id_, reward=1, position=0) == (200, {"status": "applied"})
    assert put(server, id_, reward=1, position=0) == (200, {"status": "duplicate"})
    assert put(server, id_, reward=1.0, position=0) == (200, {"status": "duplicate"})
    code, told = put(server, id_, reward=0, position=0)
    assert (code, "reward was 1.0 and is now 0.0" in told["error"]) == (409, True)
    assert put(server, id_, reward=0, position=1) == (200, {"status": "applied"})
    assert put(server, id_, reward=0, position=2)[0] == 422
    assert put(server, "nobody", reward=1)[0] == 404
    assert nodes(server)[()]["plays"] == before + 2
    decision = server.http.get(f"/v1/decisions/{id_}").json()
    assert (decision["reward"], decision["rewards"]) == (1, [1, 0])


def test_a_withdrawn_decision_earns_nothing(server: Server) -> None:
    id_ = server.http.post("/v1/decisions").json()["id"]
    assert server.http.delete(f"/v1/decisions/{id_}").status_code == 200
    assert server.http.delete(f"/v1/decisions/{id_}").status_code == 200
    assert put(server, id_, reward=1)[0] == 409
    assert server.http.delete("/v1/decisions/nobody").status_code == 404
    rewarded = server.http.post("/v1/decisions").json()["id"]
    put(server, rewarded, reward=0)
    assert server.http.delete(f"/v1/decisions/{rewarded}").status_code == 409


WRONG: list[tuple[str, str, bytes | str, int]] = [
    ("POST", "/v1/decisions", "{", 400),
    ("POST", "/v1/decisions", b"\xff\xfe", 400),
    ("POST", "/v1/decisions", "7", 422),
    ("POST", "/v1/decisions", '{"k": "2"}', 422),
    ("POST", "/v1/decisions", '{"k": 2.0}', 422),
    ("POST", "/v1/decisions", '{"k": true}', 422),
    ("POST", "/v1/decisions", '{"k": 0}', 422),
    ("POST", "/v1/decisions", '{"id": ""}', 422),
    ("POST", "/v1/decisions", '{"id": "a/b"}', 422),
    ("POST", "/v1/decisions", '{"id": "a\\u0000b"}', 422),
    ("POST", "/v1/decisions", json.dumps({"id": "x" * 201}), 422),
    ("POST", "/v1/decisions", '{"id": 7}', 422),
    ("POST", "/v1/decisions", '{"onyl": ["s1"]}', 422),
    ("POST", "/v1/decisions", '{"only": "s1"}', 422),
    ("POST", "/v1/decisions", '{"context": [NaN]}', 422),
    ("POST", "/v1/decisions", json.dumps({"id": "x" * 2**20}), 413),
    ("PUT", "/v1/decisions/d/reward", "", 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": true}', 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": "1"}', 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": 1.5}', 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": 1e999}', 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": 1, "position": -1}', 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": 1, "arm": "nobody"}', 422),
    ("POST", "/v1/arms", '{"add": {"n": "hats"}}', 422),
    ("POST", "/v1/arms", '{"add": {"n": ["hats"]}, "remove": ["nobody"]}', 422),
    ("POST", "/v1/arms", '{"add": {"s1": ["hats"]}}', 409),
    ("POST", "/v1/arms", json.dumps({"remove": ARMS}), 422),
    ("GET", "/v1/log?format=xml", "", 422),
    ("GET", "/v1/nothing", "", 404),
    ("GET", "/v1/decisions/nobody", "", 404),
    ("GET", "/v1/decisions/%00", "", 404),
    ("PUT", "/v1/decisions/%00/reward", '{"reward": 1}', 404),
    ("DELETE", "/v1/decisions/" + "x" * 300, "", 404),
    ("POST", "/v1/decisions", '{"id": "\\ud800"}', 400),
    ("POST", "/v1/decisions", '{"k": 1' + "0" * 400 + "}", 422),
    ("PUT", "/v1/decisions/d/reward", '{"reward": 1' + "0" * 400 + "}", 422),
    ("POST", "/v1/decisions", "[" * 5000, 400),
    ("GET", "/v1/tree?depth=x", "", 422),
    ("PATCH", "/v1/decisions", "", 405),
    ("PUT", "/v1/arms", "", 405),
    ("GET", "/v1/tree/", "", 404),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), WRONG)
def test_what_is_wrong_gets_a_sentence(server: Server, method: str, path: str, body: bytes | str, code: int) -> None:
    server.http.post("/v1/decisions", json={"id": "d"})
    before = server.http.get("/readyz").json()["events"]
    answer = server.http.request(method, path, content=body)
    assert answer.status_code == code, answer.text
    assert list(answer.json()) == ["error"]
    assert "Traceback" not in answer.text
    assert server.http.get("/readyz").json()["events"] == before


def test_a_body_without_a_length_is_measured_too(server: Server) -> None:
    answer = server.http.post("/v1/decisions", content=(b"x" * 2**16 for _ in range(20)))
    assert answer.status_code == 413


def test_the_log_has_one_row_per_decision(server: Server) -> None:
    id_ = server.http.post("/v1/decisions", json={"only": ["s1", "s2"], "context": [1, 2.5]}).json()["id"]
    put(server, id_, reward=1)
    rows = [json.loads(line) for line in server.http.get("/v1/log").text.splitlines()]
    [row] = [row for row in rows if row["id"] == id_]
    assert (row["reward"], row["only"], row["context"]) == (1, ["s1", "s2"], [1, 2.5])
    text = server.http.get("/v1/log", params={"format": "csv"}).text
    table = list(csv.DictReader(io.StringIO(text)))
    assert [line["id"] for line in table] == [row["id"] for row in rows]
    assert {line["reward"] for line in table} <= {"", "0.0", "1.0"}
    for line, row in zip(table, rows, strict=True):
        assert (line["arm"], float(line["propensity"])) == (row["arm"], row["propensity"])


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_the_log_is_continued_where_one_left_off(tmp_path: Path, form: str) -> None:
    with serving(tmp_path) as server:
        for place in range(7):
            server.http.post("/v1/decisions", json={"id": f"d{place}"})
        server.http.put("/v1/decisions/d0/reward", json={"reward": 1})
        found, after, sizes = list[str](), "0", list[int]()
        while not sizes or sizes[-1]:
            answer = server.http.get(f"/v1/log?format={form}&after={after}&limit=3")
            after = answer.headers["banditree-next"]
            lines = answer.text.splitlines()[form == "csv" :]
            ids = [line.partition(",")[0] if form == "csv" else json.loads(line)["id"] for line in lines]
            found += ids
            sizes.append(len(ids))
        assert (found, sizes) == ([f"d{place}" for place in range(7)], [3, 3, 1, 0])
        server.http.post("/v1/decisions", json={"id": "later"})
        assert "later" in server.http.get(f"/v1/log?after={after}").text


def test_events_are_told_as_they_happen_and_again_from_where_one_was(server: Server) -> None:
    before = server.http.get("/readyz").json()["events"]
    with server.http.stream("GET", "/v1/events", headers={"last-event-id": str(before)}) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": banditree"
        id_ = server.http.post("/v1/decisions", json={"only": ["<b>h3</b>"]}).json()["id"]
        put(server, id_, reward=0)
        server.http.post("/v1/arms", json={"add": {"e1": ["hats", "low"]}})
        names = []
        while "arms" not in names:
            line = next(lines)
            if line.startswith("event: "):
                names.append(line.removeprefix("event: "))
                data = json.loads(next(lines).removeprefix("data: "))
                if len(names) == 1:
                    assert (data["id"], data["arm"], data["n"]) == (id_, "<b>h3</b>", before + 1)
    assert names == ["decision", "reward", "arms"]
    with server.http.stream("GET", "/v1/events", headers={"last-event-id": str(before)}) as stream:
        assert [
            line[7:] for _, line in zip(range(12), stream.iter_lines(), strict=False) if line.startswith("event: ")
        ] == names
    server.http.post("/v1/arms", json={"remove": ["e1"]})


def test_arms_come_move_and_go(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        done = server.http.post("/v1/arms", json={"add": {"n1": ["hats", "new"]}, "move": {"s1": []}, "remove": ["s2"]})
        assert done.json() == {"added": 1, "moved": 1, "removed": 1, "arms": 6}
        paths = set(nodes(server))
        assert {("hats", "new", "n1"), ("s1",)} < paths
        assert ("shoes", "low") not in paths
        again = server.http.post("/v1/arms", json={"add": {"n1": ["hats", "new"]}, "remove": ["s2"]})
        assert (again.status_code, again.json()["added"], again.json()["removed"]) == (200, 0, 0)
        seen = {server.http.post("/v1/decisions").json()["arm"] for _ in range(60)}
        assert "s2" not in seen

        id_ = server.http.post("/v1/decisions", json={"only": ["h1"]}).json()["id"]
        server.http.post("/v1/arms", json={"remove": ["h1"]})
        assert put(server, id_, reward=1) == (200, {"status": "late"})
        assert put(server, id_, reward=1) == (200, {"status": "duplicate"})
        assert nodes(server)[()]["plays"] == 0
        everything = nodes(server)
    with serving(tmp_path) as server:
        assert nodes(server) == everything


def test_a_change_of_the_arms_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the command and for the fold of its event: among a million arms it takes a tenth of a second."""
    changes, add = list[Any](), Tree.add_arms

    def counted(tree: Tree, arms: Any) -> Tree:
        changes.append(arms)
        return add(tree, arms)

    monkeypatch.setattr(Tree, "add_arms", counted)
    with inside(Plan({"a": ["x"], "b": ["x"]}, Settings()), store=tmp_path / "decisions.db") as (service, http):
        assert http.post("/v1/arms", json={"add": {"c": ["x"]}}).json()["arms"] == 3
        assert service.engine.states[MAIN].policy.tree.arms == ("a", "b", "c")
        assert http.post("/v1/arms", json={"add": {"d": ["x"]}, "move": {"b": ["y"]}}).json()["arms"] == 4
        assert service.engine.states[MAIN].policy.tree.path("b") == ("y", "b")
        assert len(changes) == 2
        refused = http.post("/v1/arms", json={"add": {"e": ["x"]}, "remove": ["nobody"]})
        assert refused.status_code == 422
        assert service.engine.states[MAIN].policy.tree.arms == ("a", "b", "c", "d")


def test_what_was_answered_is_there_after_a_restart_and_from_the_log_alone(tmp_path: Path) -> None:
    server = start(tmp_path, "--policy", "HTS", "--explore", "0.1")
    answers = [server.http.post("/v1/decisions").json() for _ in range(30)]
    for place, answer in enumerate(answers):
        put(server, answer["id"], reward=place % 3 / 2)
    before = nodes(server)
    server.kill()
    with serving(tmp_path, "--policy", "HTS", "--explore", "0.1", "--update-settings") as server:  # from the log
        assert nodes(server) == before
        assert server.http.get(f"/v1/decisions/{answers[7]['id']}").json() == answers[7] | {"reward": 0.5}
    with serving(
        tmp_path, "--policy", "HTS", "--explore", "0.1", "--update-settings"
    ) as server:  # from the snapshot of the clean end
        assert nodes(server) == before
        started = until(lambda: [json.loads(line) for line in server.errors])[0]
        assert started["from_snapshot"] == 62
    with serving(tmp_path, "--policy", "TS", "--update-settings") as server:  # another policy learns from the same log
        assert nodes(server) == before


def test_windows_defaults_and_late_rewards(tmp_path: Path) -> None:
    with serving(tmp_path, "--reward-window", "0.5", "--default-reward", "0") as server:
        ids = [server.http.post("/v1/decisions").json()["id"] for _ in range(3)]
        assert put(server, ids[0], reward=1) == (200, {"status": "applied"})
        server.http.delete(f"/v1/decisions/{ids[1]}")
        assert nodes(server)[()]["plays"] == 0  # a success is not ahead of the decisions that earn nothing
        assert server.http.get(f"/v1/decisions/{ids[2]}").json()["reward"] is None
        until(lambda: server.http.get(f"/v1/decisions/{ids[2]}").json()["reward"] is not None)
        assert server.http.get(f"/v1/decisions/{ids[2]}").json()["reward"] == 0
        assert server.http.delete(f"/v1/decisions/{ids[2]}").status_code == 409
        until(lambda: nodes(server)[()]["plays"] == 2)  # though nobody asks for anything
        rows = [json.loads(line) for line in server.http.get("/v1/log").text.splitlines()]
        assert [(row["reward"], row["withdrawn"]) for row in rows] == [(1, False), (None, True), (0, False)]
        assert put(server, ids[2], reward=1) == (200, {"status": "late"})
        assert put(server, ids[2], reward=1) == (200, {"status": "duplicate"})
        assert server.http.get(f"/v1/decisions/{ids[2]}").json()["reward"] == 1
        assert (nodes(server)[()]["plays"], nodes(server)[()]["reward"]) == (2, 1)
    with serving(tmp_path, "--reward-window", "0.01", "--learn-late", "--update-settings") as server:
        id_ = server.http.post("/v1/decisions").json()["id"]
        before = nodes(server)[()]["plays"]
        time.sleep(0.05)
        assert put(server, id_, reward=1) == (200, {"status": "late"})
        until(lambda: nodes(server)[()]["plays"] == before + 1)


def test_in_shadow_mode_the_caller_chooses(tmp_path: Path) -> None:
    with serving(tmp_path, "--shadow") as server:
        decision = server.http.post("/v1/decisions").json()
        assert decision["shadow"] is True
        assert put(server, decision["id"], reward=1)[0] == 422
        assert put(server, decision["id"], reward=1, arm="nobody")[0] == 422
        assert put(server, decision["id"], reward=1, arm="h2") == (200, {"status": "applied"})
        assert put(server, decision["id"], reward=1, arm="h1")[0] == 409
        assert nodes(server)[("hats", "low", "h2")]["plays"] == 1
        [row] = [json.loads(line) for line in server.http.get("/v1/log").text.splitlines()]
        assert (row["arm"], row["shown"]) == (decision["arm"], "h2")


def test_with_a_half_life_earlier_rewards_fade_also_after_a_restart(tmp_path: Path) -> None:
    """With a half-life of one reward, the last three count 1, 1/2 and 1/4."""
    options = ("--half-life", "1")
    server = start(tmp_path, *options)
    for reward in (1, 0, 1):
        id_ = server.http.post("/v1/decisions", json={"only": ["h1"]}).json()["id"]
        assert put(server, id_, reward=reward) == (200, {"status": "applied"})
    before = nodes(server)
    server.kill()
    for path in ((), ("hats", "low", "h1")):
        assert (before[path]["plays"], before[path]["reward"]) == (pytest.approx(1.75), pytest.approx(1.25))
    for _ in range(2):  # from the log, then from the snapshot
        with serving(tmp_path, *options) as server:
            assert nodes(server) == before
    with serving(tmp_path, "--update-settings") as server:  # without a half-life, the same log counts in full
        assert (nodes(server)[()]["plays"], nodes(server)[()]["reward"]) == (3, 2)


def test_contexts_and_rewards_of_any_size(tmp_path: Path) -> None:
    with serving(tmp_path, "--policy", "LinTSC", "--dim", "2") as server:
        assert server.http.post("/v1/decisions").status_code == 422
        assert server.http.post("/v1/decisions", json={"context": [1]}).status_code == 422
        id_ = server.http.post("/v1/decisions", json={"context": [1, -0.5]}).json()["id"]
        assert put(server, id_, reward=12.5) == (200, {"status": "applied"})
        assert nodes(server)[()]["plays"] == 1
        before = nodes(server)
        server.kill()
    with serving(tmp_path, "--policy", "LinTSC", "--dim", "2") as server:
        assert nodes(server) == before
    other = tmp_path / "other"
    other.mkdir()
    with serving(other, "--rewards", "real") as server:  # their standard deviation is learned
        id_ = server.http.post("/v1/decisions").json()["id"]
        assert put(server, id_, reward=-12.5) == (200, {"status": "applied"})
        before = nodes(server)
        server.stop()
    with serving(other, "--rewards", "real") as server:
        assert nodes(server) == before
    with serving(other, "--reward-sd", "3", "--update-settings") as server:
        assert nodes(server) != before


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, env={"BANDITREE_TOKEN": "secret"}) as server:
        for path in ("/v1/tree", "/v1/log", "/v1/events", "/metrics", "/v1/decisions/x", "/nowhere"):
            assert server.http.get(path).status_code == 401, path
        assert server.http.get("/v1/tree", headers={"authorization": "Bearer wrong"}).json().keys() == {"error"}
        assert server.http.get("/v1/tree", headers={"authorization": "Bearer secret"}).status_code == 200
        assert [server.http.get(path).status_code for path in ("/", "/healthz", "/readyz", "/docs")] == [200] * 4
        assert "hats" not in server.http.get("/").text


def refused(folder: Path, *options: str) -> str:
    words = [*COMMAND, str(items(folder)), "--arm", "item", "--path", "kind", "--port", "0", *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


REFUSED: dict[str, list[str]] = {
    "give --token": ["--host", "0.0.0.0"],
    "there is no policy 'TSX'": ["--policy", "TSX"],
    "default_reward needs reward_window": ["--default-reward", "0"],
    "is not a time": ["--reward-window", "soon"],
    "outside [0, 1]": ["--default-reward", "2", "--reward-window", "9"],
    "does not take dim; leave it out": ["--dim", "3"],
    "LinTS needs dim": ["--policy", "LinTS"],
    "half_life=0.0 must be at least 1": ["--half-life", "0"],
    "rewards 'money' must be rates": ["--rewards", "money"],
    "sd=0.0 must be above 0": ["--reward-sd", "0"],
    "there is no folder": ["--store", "nowhere/decisions.db"],
    "it is a folder": ["--store", "."],
    "check its address": ["--store", "postgresql://127.0.0.1:1/nothing"],
    "cannot use": ["--store", "broken.db"],
}
_ONE_AFTER_THE_OTHER = """
import json, sys
from typer.testing import CliRunner
from banditree.cli.main import application
done = [CliRunner().invoke(application(), words) for words in json.load(sys.stdin)]
print(json.dumps([[result.exit_code, result.stdout, result.stderr] for result in done]))
"""


def test_a_server_that_cannot_be_says_why(tmp_path: Path) -> None:
    """In one process, because each of them takes a second to start."""
    (tmp_path / "broken.db").write_bytes(b"no database, but long enough to be looked at" * 100)
    words = ["serve", str(items(tmp_path)), "--arm", "item", "--path", "kind", "--port", "0"]
    asked = json.dumps([[*words, *options] for options in REFUSED.values()])
    command = [sys.executable, "-c", _ONE_AFTER_THE_OTHER]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True)
    answers = json.loads(done.stdout)
    assert len(answers) == len(REFUSED)
    for says, (code, shown, error) in zip(REFUSED, answers, strict=True):
        assert (code, shown) == (2, ""), error
        assert says in error
        assert "Traceback" not in error


def test_a_store_that_cannot_be_used_is_not_left_locked(tmp_path: Path) -> None:
    store = tmp_path / "decisions.db"
    store.write_bytes(b"no database, but long enough to be looked at" * 100)
    with pytest.raises(BadPath, match="cannot use"):
        open_log(str(store))
    store.unlink()
    open_log(str(store)).close()


def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert "another banditree process is using" in refused(tmp_path, "--store", str(tmp_path / "decisions.db"))
        assert server.http.post("/v1/decisions").status_code == 201


def test_sigterm_ends_it_cleanly_while_somebody_listens(tmp_path: Path) -> None:
    server = start(tmp_path)
    with server.http.stream("GET", "/v1/events") as stream:
        next(stream.iter_lines())
        server.process.terminate()
        assert server.process.wait(60) == 0
    server.end()


def test_sigterm_right_after_the_address_ends_it_cleanly(tmp_path: Path) -> None:
    assert start(tmp_path).stop() == 0


def test_metrics_count_what_happened(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        id_ = server.http.post("/v1/decisions").json()["id"]
        put(server, id_, reward=1)
        text = server.http.get("/metrics").text
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert values['banditree_decisions_total{experiment="main"}'] == "1"
        assert values['banditree_rewards_total{experiment="main",status="learned"}'] == "1"
        assert values['banditree_decision_seconds_bucket{le="+Inf"}'] == "1"
        assert values["banditree_fold_lag_events"] == "0"
        assert values["banditree_events"] == "4"  # settings, arms, a decision and its reward
