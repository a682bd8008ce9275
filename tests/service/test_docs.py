"""Every command of docs/service.md and docs/edge.md runs, in order, as one session of a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.serving import quiet_port

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page: str, folder: Path) -> str:
    """Run the commands of a page on a port of its own; return what they print."""
    port = quiet_port()
    commands = "\n".join(BLOCKS.findall((DOCS / page).read_text(encoding="utf-8")))
    commands = commands.replace("8000", port).replace("--path category,sub", f"--port {port} --path category,sub")
    end = "trap 'kill -9 $server 2>/dev/null || true' EXIT\n"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "no_proxy": "*"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", end + commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_of_the_service_run(tmp_path: Path) -> None:
    said = run("service.md", tmp_path)
    assert said.count('{"status": "applied"}{"status": "duplicate"}') == 1
    kept = json.loads(re.findall(r'\{"id": "visit-1"[^}]*\}', said)[-1])
    assert kept["reward"] == 1
    first, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert first.startswith("id,at,arm,propensity,propensity_overall,reward")
    assert len(rows) == 21
    assert '"added": 1, "moved": 0, "removed": 1, "arms": 80' in said


def test_the_commands_of_decisions_at_the_edge_run(tmp_path: Path) -> None:
    said = run("edge.md", tmp_path)
    assert "reported: True" in said
    groups = json.loads(re.findall(r'\{"experiment".*?\}(?=\{|\n|$)', said)[0])["groups"]
    assert sum(group["decisions"] for group in groups.values()) == 1000
    assert json.loads((tmp_path / "flags.json").read_text())["flags"]["main"]["targeting"]["fractional"]
    assert '{"accepted": 2, "duplicate": 0, "refused": []}' in said
