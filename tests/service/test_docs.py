"""Every command of docs/service.md runs, in order, as one session of a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.serving import quiet_port

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCKS = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    port = quiet_port()
    commands = "\n".join(BLOCKS.findall(PAGE.read_text(encoding="utf-8")))
    assert commands.count("8000") > 10
    commands = commands.replace("8000", port).replace("--path category,sub", f"--port {port} --path category,sub")
    end = "trap 'kill -9 $server 2>/dev/null || true' EXIT\n"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "no_proxy": "*"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", end + commands],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count('{"status": "applied"}{"status": "duplicate"}') == 1
    kept = json.loads(re.findall(r'\{"id": "visit-1"[^}]*\}', done.stdout)[-1])
    assert kept["reward"] == 1
    first, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert first.startswith("id,at,arm,propensity,propensity_overall,reward")
    assert len(rows) == 21
    assert '"added": 1, "moved": 0, "removed": 1, "arms": 80' in done.stdout
