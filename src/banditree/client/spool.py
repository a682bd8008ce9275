"""Keep what the service has not acknowledged yet in files: appended line by line, reported in batches, then deleted.

A batch is a file. The last one is written to until it is large enough or due; then it is *sealed*, and the next begins.
An acknowledged batch is deleted. A process that is killed in between leaves files behind, and the next process that
uses the folder reports them. Reporting a batch twice is safe, because the service counts each row once, so
there is no position to keep, and no state beside the files.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from banditree.base.files import lock
from banditree.errors import BadPath

BATCH_BYTES = 2**18  # a batch is sealed when it has as many; the service takes four times that
SUFFIX, LOCK = ".batch", ".lock"
DIGITS = 9  # of the number of a batch, so that names sort in order


class Spool:
    """Lines that wait in a folder, which several processes may share. Threads may share it.

    A line is with the operating system when `append` returns, and so survives the death of this process; `sync` makes
    it survive that of the machine. Every process has files of its own, under a name that it locks as long as it lives:
    a name without a lock is that of a process that has died.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.appended = 0  # rows, since the start, with those that were found
        self.dropped = 0  # rows that were acknowledged
        self._changing = threading.Lock()
        self._adopted: dict[str, int] = {}  # names of dead processes, with the descriptors of their locks
        self._rows: dict[Path, int] = {}  # sealed batches in order, with their numbers of rows
        self._number = self._open_rows = self._size = 0
        self._is_synced = True
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._name, self._lock = self._take_name()
            self._file = self._open_next()
        except OSError as error:
            raise BadPath(f"cannot keep decisions in {folder}: {error.strerror}; give another folder") from None
        self.adopt(at_start=True)

    @property
    def waiting(self) -> int:
        """Rows that are not acknowledged."""
        return self.appended - self.dropped

    def append(self, line: bytes) -> None:
        """Append one line, with its end; all of it or nothing."""
        with self._changing:
            try:
                if os.write(self._file, line) == len(line):
                    self._size += len(line)
                    self._open_rows += 1
                    self.appended += 1
                    self._is_synced = False
                    if self._size >= BATCH_BYTES:
                        self._seal()
                    return
                why = "the disk is full"
            except OSError as error:
                why = str(error.strerror)
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
        raise BadPath(f"cannot write to {self.folder}: {why}; nothing was recorded")

    @property
    def is_due(self) -> bool:
        """Whether a whole batch waits."""
        return bool(self._rows)

    def next(self) -> Path | None:
        """Return the oldest batch, None if nothing waits. The last one is sealed."""
        with self._changing:
            if not self._rows and self._open_rows:
                self._seal()
            return next(iter(self._rows), None)

    def _seal(self) -> None:
        path = self._path(self._number)
        file, self._file = self._file, self._open_next()
        os.close(file)
        self._rows[path] = self._open_rows
        self._open_rows = self._size = 0

    def drop(self, batch: Path) -> None:
        """Delete a batch that was acknowledged."""
        with self._changing:
            batch.unlink(missing_ok=True)
            self.dropped += self._rows.pop(batch)
            self._release(batch.name.rpartition("-")[0])

    def sync(self) -> None:
        """Make what was appended survive a power cut."""
        if self._is_synced:
            return
        with self._changing:
            self._is_synced, copy = True, os.dup(self._file)
        try:
            os.fsync(copy)  # without the lock: appending goes on
        finally:
            os.close(copy)

    def adopt(self, *, at_start: bool = False) -> int:
        """Take over the batches of processes that have died; return how many rows they have.

        Where files cannot be locked (Windows), every other process counts as dead at the start, and as alive later.
        """
        n = 0
        for held in sorted(self.folder.glob(f"*{LOCK}")):
            if held.stem == self._name or held.stem in self._adopted:
                continue
            try:
                descriptor = os.open(held, os.O_RDWR)
            except OSError:  # another process was quicker
                continue
            is_free = lock(descriptor)
            if is_free is False or (is_free is None and not at_start) or not held.exists():
                os.close(descriptor)
                continue
            with self._changing:
                self._adopted[held.stem] = descriptor
                for batch in sorted(self.folder.glob(f"{held.stem}-*{SUFFIX}")):
                    self._rows[batch] = len(self.read(batch))
                    n += self._rows[batch]
            self._release(held.stem)  # if it has no batch
        self.appended += n
        return n

    def _release(self, name: str) -> None:
        """Give up the name of a dead process once its batches are gone."""
        if name in self._adopted and not any(batch.name.startswith(f"{name}-") for batch in self._rows):
            (self.folder / f"{name}{LOCK}").unlink(missing_ok=True)
            os.close(self._adopted.pop(name))

    def read(self, batch: Path) -> Sequence[bytes]:
        """Return the lines of a batch; of one that was found, those that are whole."""
        *lines, _ = batch.read_bytes().split(b"\n")
        return lines if batch.name.startswith(self._name) else [line for line in lines if _is_whole(line)]

    def close(self) -> None:
        """Close the files; what waits stays for the next process."""
        with self._changing:
            os.close(self._file)
            if not self._size:
                self._path(self._number).unlink(missing_ok=True)
            if not self.waiting:
                (self.folder / f"{self._name}{LOCK}").unlink(missing_ok=True)
        self._let_go()

    def abandon(self) -> None:
        """Close, in a forked child, the files of its parent, which goes on using them."""
        os.close(self._file)
        self._let_go()

    def _let_go(self) -> None:
        for descriptor in (self._lock, *self._adopted.values()):
            os.close(descriptor)

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._name}-{number:0{DIGITS}d}{SUFFIX}"

    def _open_next(self) -> int:
        self._number += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.open(self._path(self._number), flags, 0o600)

    def _take_name(self) -> tuple[str, int]:
        """Choose a name and lock it; it gets its place in the folder when it is locked."""
        name = secrets.token_hex(8)
        scratch = self.folder / f"{name}.new"
        descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        lock(descriptor)
        scratch.rename(scratch.with_suffix(LOCK))
        return name, descriptor


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line[1:]), dict)
    except ValueError:
        return False
