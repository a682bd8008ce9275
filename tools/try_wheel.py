"""Install a wheel where there is no compiler and no source, and run the README's first example there.

``python -m tools.try_wheel dist/*.whl``; `make dist` calls it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
LAST_LINES = """
assert bt.engine() == "native", bt.engine()
print("banditree", bt.__version__, "with the", bt.engine(), "engine chose", arm)
"""


def first_example() -> str:
    """The first Python block of the README."""
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def main(wheels: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "venv")
        venv.create(home, with_pip=True)
        programs = home / ("Scripts" if sys.platform == "win32" else "bin")
        environment = {"PATH": str(programs), "CC": "no-compiler", "CXX": "no-compiler", "HOME": folder}
        environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SYSTEM"))}
        python = str(programs / "python")
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary=:all:",
            *map(str, map(Path.resolve, map(Path, wheels))),
        ]
        subprocess.run(install, cwd=folder, env=environment, check=True)
        return subprocess.run(
            [python, "-c", first_example() + LAST_LINES], cwd=folder, env=environment, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
