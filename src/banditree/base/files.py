"""Read whole files, and write them atomically: all of it or nothing, with no scratch files left behind."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from banditree.errors import BadFile, BadPath, InvalidType, MissingFile, NotAFile

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows, which has no such locks
    fcntl = None

FilePath = str | os.PathLike[str]
Json = dict[str, Any]  # an object, as `json` reads and writes it
Bytes = bytes | bytearray | memoryview


def find_target(path: FilePath) -> Path:
    """Return the file that writing to this path would create or replace, following links, or say why it cannot."""
    _check_name(path, "write")
    try:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise MissingFile(f"cannot write {path}: there is no folder {target.parent}; make it first")
        if target.is_dir():
            raise NotAFile(f"cannot write {path}: it is a folder; give the name of a file")
        if target.exists() and not target.is_file():
            raise BadPath(f"cannot write {path}: it is a device or a pipe; give the name of a file")
    except (BadPath, PermissionError):
        raise
    except OSError as error:  # a name that is too long, or links in a circle
        raise BadPath(f"cannot write {path}: {error.strerror}") from None
    return target


def write_whole(path: FilePath, pieces: Iterable[Bytes]) -> None:
    """Write bytes to a file, all of them or none: the old content stays until the new one is on the disk.

    If the path is a link, the file that it leads to is replaced. The new file has the permissions of the old one, and
    never wider ones in between.
    """
    target = find_target(path)
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    _remove_abandoned(target)
    with _scratch_file(target, 0o666 if mode is None else 0o600) as (scratch, descriptor):
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(scratch, mode)  # noqa: PTH101
        os.replace(scratch, target)  # noqa: PTH105


@contextmanager
def _scratch_file(target: Path, mode: int) -> Iterator[tuple[Path, int]]:
    """Create a file next to the target, with a descriptor that the caller closes; it is removed after an error.

    It is locked while it is in use. A lock ends with its process, however that ends, so a scratch file without a lock
    was left by a process that was killed, and the next one that saves to the same target removes it.
    """
    while True:
        # 50 characters are at most 200 bytes, and a name may have 255.
        scratch = target.with_name(f".{target.name[:50]}.{os.urandom(4).hex()}.saving")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(scratch, flags, mode)
        if lock(descriptor) is not False and scratch.exists():
            break
        os.close(descriptor)  # another process took it for abandoned before it was locked
    copy = None if fcntl is None else os.dup(descriptor)
    try:
        yield scratch, descriptor
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    finally:
        if copy is not None:
            os.close(copy)


def _remove_abandoned(target: Path) -> None:
    """Remove the scratch files of processes that were killed while they saved to the same target."""
    pattern = re.compile(rf"\.{re.escape(target.name[:50])}\.[0-9a-f]{{1,8}}\.saving")
    names: list[str] = []
    with suppress(OSError):  # a folder that may be written to and not listed
        names = [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]  # noqa: PTH208
    for scratch in map(target.with_name, names if fcntl is not None else ()):
        with suppress(OSError):  # a folder, a link, another user's, or gone meanwhile
            descriptor = os.open(scratch, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                if lock(descriptor):
                    scratch.unlink()
            finally:
                os.close(descriptor)


def lock(descriptor: int) -> bool | None:
    """Lock an open file without waiting: False if another process holds the lock, None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def read_whole(path: FilePath, start: bytes = b"") -> bytes:
    """Read a whole file. If it does not begin with ``start``, return only its first bytes."""
    _check_name(path, "read")
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise NotAFile(f"cannot read {path}: it is a folder; give the name of a file")
        if not stat.S_ISREG(mode):
            raise BadPath(f"cannot read {path}: it is a device or a pipe; give the name of a file")
        with Path(path).open("rb") as file:
            beginning = file.read(len(start))
            if beginning != start:
                return beginning
            file.seek(0)
            return file.read()
    except (BadPath, PermissionError):
        raise
    except OSError as error:
        kind = MissingFile if isinstance(error, FileNotFoundError) else BadPath
        raise kind(f"cannot read {path}: {error.strerror}") from None
    except MemoryError:
        raise BadFile(f"{path} is larger than the memory of this machine") from None


def reason(error: Exception) -> str:
    """Say why a file cannot be read, without the number of the error and the name of the file."""
    return getattr(error, "strerror", None) or str(error)


def _check_name(path: FilePath, action: str) -> None:
    """Refuse a path that cannot name a file."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidType(f"cannot {action} {path!r}: it is of type {type(path).__name__}; give the name of a file")
    if "\0" in str(path):
        raise BadPath(f"cannot {action} {str(path)!r}: a path cannot have a NUL character in it; leave it out")
