"""Nothing that was answered is lost: servers are killed, disks are full, and the ledgers are compared."""

from __future__ import annotations

import resource
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from banditree.service.store import open_log
from tests.support.serving import until
from tests.support.torture import Ledger, Process, compare, finish, load, torture

if sys.platform != "linux":
    pytest.skip("this harness limits file sizes as Linux does it", allow_module_level=True)


def _refused(http: httpx.Client) -> httpx.Response | None:
    answer = http.post("/v1/decisions")
    return answer if answer.status_code == 503 else None


def test_25_kills_lose_nothing(tmp_path: Path) -> None:
    assert torture(str(tmp_path / "decisions.db"), 25) == []


def test_an_answer_before_the_commit_is_caught(tmp_path: Path) -> None:
    faults = torture(str(tmp_path / "decisions.db"), 10, hasty=True)
    assert any("was answered, and is not in the log" in fault or "was accepted" in fault for fault in faults)


def test_a_full_disk_loses_nothing_and_the_service_recovers(tmp_path: Path) -> None:
    store = tmp_path / "decisions.db"
    process = Process(str(store))
    pid = process.process.pid
    assert pid is not None
    try:
        with httpx.Client(base_url=process.url, timeout=120, trust_env=False) as http:
            for number in range(3):
                ledgers = [Ledger() for _ in range(4)]
                size = max(file.stat().st_size for file in tmp_path.iterdir())
                room = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
                threads = load([process], ledgers, f"full-{number}", number)
                until(lambda: http.get("/readyz").status_code == 503)
                refused = until(lambda: _refused(http))  # SQLite may find a little room once more before it is full
                assert list(refused.json()) == ["error"]
                assert http.get("/healthz").status_code == 200
                assert http.get("/v1/tree").status_code == 200
                for thread in threads:
                    thread.stopped = True
                for thread in threads:
                    thread.join(60)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, room)
                until(lambda: http.get("/readyz").status_code == 200)
                finish(process.url, ledgers)
                assert all(ledger.asked.keys() == ledger.answered.keys() for ledger in ledgers)
    finally:
        process.kill()
    with closing(open_log(str(store))) as log:
        assert compare(log, ledgers) == []
