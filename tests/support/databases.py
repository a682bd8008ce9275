"""A PostgreSQL server for tests: Debian's package, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"


def programs() -> Path | None:
    """Where initdb and pg_ctl are: Debian keeps them off the path."""
    program = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else Path(program).parent if program else None


class Database:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"postgresql:///postgres?host={folder}&user={USER}"

    def new(self, name: str) -> str:
        """Create another database; returns its address."""
        self.run("createdb", "-h", str(self.folder), "-U", USER, name)
        return f"postgresql:///{name}?host={self.folder}&user={USER}"

    def run(self, *words: str) -> None:
        bin_ = programs()
        assert bin_ is not None
        # PostgreSQL refuses to run as root
        how = {"user": USER, "group": USER} if os.getuid() == 0 else {}
        command = [str(bin_ / words[0]), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **how)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=50"
        self.run("pg_ctl", "-D", "data", "-o", options, "-l", "server.log", "-w", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")


@contextmanager
def postgres() -> Iterator[Database]:
    """A fresh database, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, USER, USER)
        database = Database(folder)
        database.run("initdb", "-D", "data", "-U", USER, "-A", "trust", "--no-sync")
        database.start()
        try:
            yield database
        finally:
            database.stop()
