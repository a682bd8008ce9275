"""Read files, and write them atomically: all of it or nothing, with no scratch files left behind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from banditree.errors import BadFile, BadPath, InvalidType, MissingFile, NotAFile

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

ROOM = 16  # numbered scratch files per target; if more processes save at the same time, names are random


def place(path: str | os.PathLike[str]) -> Path:
    """Find the file that writing to this path would create or replace, following links, or say why it cannot."""
    _refuse_odd(path, "write")
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


def write_whole(path: str | os.PathLike[str], pieces: Iterable[Any]) -> None:
    """Write bytes to a file, all of them or none: the old content stays until the new one is on the disk.

    If the path is a link, the file that it leads to is replaced. The new file has the permissions of the old one, and
    never wider ones in between.
    """
    target = place(path)
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    with _scratch(target, 0o666 if mode is None else 0o600) as (scratch, descriptor):
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            scratch.chmod(mode)
        scratch.replace(target)


@contextmanager
def _scratch(target: Path, mode: int) -> Iterator[tuple[Path, int]]:
    """Create a file next to the target, with a descriptor that the caller closes. Removed at the end, unless renamed.

    It is locked while it is in use. A lock ends with its process, however that ends, so a scratch file without a lock
    was left by a process that was killed, and the next one that saves to the same target removes it.
    """
    scratch, descriptor, lock = _claimed(target, mode)
    try:
        yield scratch, descriptor
    except BaseException:
        if lock is None or _is_at(lock, scratch):  # once it is renamed, another process may use the name
            scratch.unlink(missing_ok=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _claimed(target: Path, mode: int) -> tuple[Path, int, int | None]:
    """Create a scratch file: its path, a descriptor to write with, and one that holds its lock."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    stem = f".{target.name[:50]}"  # 50 characters are at most 200 bytes, and a name may have 255
    numbered = [target.with_name(f"{stem}.{number}.saving") for number in range(ROOM if LOCKS else 0)]
    for scratch in numbered:
        _remove_abandoned(scratch)
    for scratch in numbered:
        try:
            descriptor = os.open(scratch, flags, mode)
        except FileExistsError:
            continue  # another process is saving
        try:
            if _locked(descriptor) and _is_at(descriptor, scratch):
                return scratch, descriptor, os.dup(descriptor)
        except OSError:  # a file system without locks
            scratch.unlink(missing_ok=True)
            os.close(descriptor)
            break
        os.close(descriptor)  # another process took it for abandoned before it was locked, and removes it
    scratch = target.with_name(f"{stem}.{os.urandom(8).hex()}")
    return scratch, os.open(scratch, flags, mode), None


def _remove_abandoned(scratch: Path) -> None:
    """Remove a scratch file whose lock nobody holds."""
    try:
        descriptor = os.open(scratch, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return  # not there, or another user's
    try:
        # With the lock, and the name still leading to this file, nobody can rename it before it is removed.
        if _locked(descriptor) and _is_at(descriptor, scratch):
            scratch.unlink(missing_ok=True)
    except OSError:
        return  # not ours to remove
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Try to lock an open file without waiting, and return whether that succeeded."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def read_whole(path: str | os.PathLike[str], start: bytes = b"") -> bytes:
    """Read a whole file. If it does not begin with ``start``, return only its first bytes."""
    _refuse_odd(path, "read")
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise NotAFile(f"cannot read {path}: it is a folder; give the name of a file")
        if not stat.S_ISREG(mode):
            raise BadPath(f"cannot read {path}: it is a device or a pipe; give the name of a file")
        with Path(path).open("rb") as file:
            found = file.read(len(start))
            if found != start:
                return found
            file.seek(0)
            return file.read()
    except (BadPath, PermissionError):
        raise
    except OSError as error:
        kind = MissingFile if isinstance(error, FileNotFoundError) else BadPath
        raise kind(f"cannot read {path}: {error.strerror}") from None
    except MemoryError:
        raise BadFile(f"{path} is larger than the memory of this machine") from None


def _refuse_odd(path: str | os.PathLike[str], what: str) -> None:
    """Refuse what no file can be named."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidType(f"cannot {what} {path!r}: it is of type {type(path).__name__}; give the name of a file")
    if "\0" in str(path):
        raise BadPath(f"cannot {what} {str(path)!r}: a path cannot have a NUL character in it; leave it out")
