"""What a crash, a full disk or a limit in the middle of saving leaves behind: the old file, and nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import banditree as bt
from tests.helpers import SHOP


@pytest.fixture
def small(tmp_path: Path) -> Path:
    bt.TSC(bt.Tree({"a": [1], "b": [2]}), rng=0).save(tmp_path / "small")
    return tmp_path / "small"


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class Broken:
    """Files whose disk is full after some bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def fdopen(self, descriptor: int, mode: str) -> Any:
        file = open(descriptor, mode)  # noqa: SIM115
        write = file.write

        class Full:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def write(this, data: Any) -> int:  # noqa: N805
                if len(data) > self.room:
                    write(bytes(data)[: self.room])
                    raise OSError(errno.ENOSPC, "No space left on device")
                self.room -= len(data)
                return int(write(data))

        return Full()


@pytest.mark.parametrize("room", [0, 10, 200, 500])
def test_a_full_disk_leaves_the_old_file(room: int, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = small.read_bytes()
    policy = bt.TSC(SHOP, rng=0)
    monkeypatch.setattr(os, "fdopen", Broken(room).fdopen)
    with pytest.raises(OSError, match="No space left"):
        policy.save(small)
    monkeypatch.undo()
    assert small.read_bytes() == old
    assert names(small.parent) == ["small"]
    policy.update("h1", 1)  # the policy goes on
    policy.save(small)
    assert bt.load(small).tree == SHOP


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_crash_at_any_step_leaves_the_old_file(
    step: str, error: BaseException, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    old = small.read_bytes()
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        bt.TSC(SHOP, rng=0).save(small)
    monkeypatch.undo()
    assert small.read_bytes() == old
    assert names(small.parent) == ["small"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file size are a Unix thing")
def test_a_real_limit_on_file_size(small: Path) -> None:
    """A process that may write 4 kB saves 1,000 arms over the small file."""
    old = small.read_bytes()
    code = f"""
import resource, signal
import banditree as bt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    bt.TS(bt.Tree(1000)).save({str(small)!r})
except OSError as error:
    print(error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == errno.EFBIG
    assert small.read_bytes() == old
    assert names(small.parent) == ["small"]
