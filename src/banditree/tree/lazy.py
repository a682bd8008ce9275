"""Attributes that are computed when they are first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 (used as a decorator)
    """What `functools.cached_property` is from Python 3.12 on: without a lock.

    That of 3.11 holds one lock for all objects of a class while it computes. A process that is forked meanwhile waits
    for it for ever. Here two threads may compute the same at once, and the later one's is kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> Self | T:
        if owner is None:
            return self
        found = self.compute(owner)
        vars(owner)[self.name] = found  # which comes before this from now on
        return found
