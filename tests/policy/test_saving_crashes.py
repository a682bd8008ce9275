"""What a crash, a full disk or a limit in the middle of saving leaves behind: the old file, and nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import banditree as bt
from banditree.base import files
from tests.support.helpers import SHOP


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


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are a Unix thing")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_the_new_file_is_never_open_to_more_people(mode: int, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step its permissions are among those of the old file, or its owner's alone."""
    small.chmod(mode)
    seen = []

    def watched(step: Any) -> Any:
        def watch(*arguments: Any) -> Any:
            new = [path.stat().st_mode & 0o777 for path in small.parent.iterdir() if path != small]
            seen.extend(new)
            return step(*arguments)

        return watch

    for name in ("fdopen", "fsync", "replace"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    mask = os.umask(0)
    try:
        bt.TS(SHOP).save(small)
    finally:
        os.umask(mask)
    assert seen == [0o600, 0o600, mode]
    assert small.stat().st_mode & 0o777 == mode


KILLED = """
import os, signal, sys
import banditree as bt

step, target = sys.argv[1:]
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, step, kill)
bt.TS(bt.Tree(1000)).save(target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_what_a_killed_process_leaves_is_removed_by_the_next_to_save(small: Path) -> None:
    """However often: there is one scratch file at most, and none after a save that ends."""
    old = small.read_bytes()
    for step in ("fdopen", "fsync", "chmod", "replace"):
        done = subprocess.run([sys.executable, "-c", KILLED, step, str(small)], check=False)
        assert done.returncode == -9
        assert small.read_bytes() == old
        assert len(names(small.parent)) == 2
    for number in (3, 7):  # of processes that were killed together
        small.with_name(f".small.{number}.saving").write_bytes(b"")
    bt.TS(SHOP).save(small)
    assert names(small.parent) == ["small"]
    assert bt.load(small).tree == SHOP


def test_savers_of_one_file_do_not_disturb_each_other(small: Path) -> None:
    """Each starts while others are in the middle: their scratch files stay, and the last to end is found."""
    depth = 20  # more than there are numbers for

    def pieces(level: int) -> Iterator[bytes]:
        yield b"start "
        assert len(names(small.parent)) == level + 2
        if level < depth:
            files.write_whole(small, pieces(level + 1))
            assert small.read_bytes() == b"start %d" % (level + 1)
        yield b"%d" % level

    files.write_whole(small, pieces(0))
    assert small.read_bytes() == b"start 0"
    assert names(small.parent) == ["small"]


def test_many_threads_save_to_one_file(small: Path) -> None:
    """Whoever loads meanwhile finds one of the policies, whole; none of the savers fails."""
    policies = [bt.TS(bt.Tree(n + 2)) for n in range(4)]
    failed: list[BaseException] = []

    def save(policy: bt.Policy) -> None:
        try:
            for _ in range(50):
                policy.save(small)
        except BaseException as error:
            failed.append(error)

    savers = [Thread(target=save, args=[policy]) for policy in policies]
    for saver in savers:
        saver.start()
    while any(saver.is_alive() for saver in savers):
        assert bt.load(small).tree.n_arms in range(2, 6)
    for saver in savers:
        saver.join()
    assert failed == []
    assert names(small.parent) == ["small"]


def test_others_files_are_left_alone(small: Path) -> None:
    """A folder or a link under the name of a scratch file is not ours, and does not stop a save."""
    scratch = small.with_name(".small.0.saving")
    scratch.mkdir()
    small.with_name(".small.1.saving").symlink_to(small)
    before = sorted(names(small.parent))
    bt.TS(SHOP).save(small)
    assert sorted(names(small.parent)) == before
    assert bt.load(small).tree == SHOP
