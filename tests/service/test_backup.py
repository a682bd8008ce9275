"""Every command of docs/backup.md runs, and what is restored is what was saved."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.databases import postgres, programs
from tests.support.serving import serving, until

PAGE = (Path(__file__).parents[2] / "docs" / "backup.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(commands: str, folder: Path, **environment: str) -> str:
    path = f"{programs() or '/usr/bin'}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def play(http: httpx.Client, n: int, start: int = 0) -> None:
    for i in range(start, start + n):
        assert http.post("/v1/decisions", json={"id": f"d{i}"}).status_code == 201
        assert http.put(f"/v1/decisions/d{i}/reward", json={"reward": i % 2}).json() == {"status": "applied"}


def check(folder: Path, save: Callable[[], None], restore: Callable[[], None], **options: Any) -> None:
    """Save while the service runs, go on, restore: the state is that of the moment of saving."""

    def tree(http: httpx.Client) -> Any:
        return http.get("/v1/tree").json()

    with serving(folder, **options) as server:
        play(server.http, 12)
        until(lambda: tree(server.http)["nodes"][0]["plays"] == 12)  # PostgreSQL: learned a moment after it was stored
        saved = tree(server.http)
        save()
        play(server.http, 5, 12)
    restore()
    with serving(folder, **options) as again:
        assert tree(again.http) == saved
        assert again.http.get("/v1/decisions/d11").json()["reward"] == 1
        assert again.http.put("/v1/decisions/d12/reward", json={"reward": 1}).status_code == 404
        play(again.http, 1, 12)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="this machine has no sqlite3")
def test_a_file_is_saved_while_the_service_runs_and_restored(tmp_path: Path) -> None:
    saving, restoring = blocks("bash")

    def save() -> None:
        assert run(saving, tmp_path).split() == ["ok"]

    check(tmp_path, save, lambda: print(run(restoring, tmp_path)))


@pytest.mark.skipif(
    programs() is None or shutil.which("pg_dump") is None, reason="this machine has no PostgreSQL server"
)
def test_a_database_is_saved_while_the_service_runs_and_restored(tmp_path: Path) -> None:
    saving, restoring = blocks("sh")
    with postgres() as database:
        store = database.address
        check(
            tmp_path,
            lambda: print(run(saving, tmp_path, DATABASE=store)),
            lambda: print(run(restoring, tmp_path, DATABASE=store)),
            store=store,
        )
