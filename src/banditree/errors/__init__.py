"""Define every error that banditree raises. Each is also the built-in type that a Python user expects to catch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from banditree.simulation.runs import Runs
    from banditree.simulation.sweeping import Sweep


class BanditreeError(Exception):
    """Base of every error raised on purpose by banditree.

    When it ends a simulation, ``runs`` holds the finished runs, or None if there are none.
    """

    runs: Runs | None = None

    def __str__(self) -> str:
        # KeyError shows its message in quotes; we want the plain sentence.
        return str(self.args[0]) if self.args else ""


class InvalidValue(BanditreeError, ValueError):
    """A value of the right type that makes no sense here: a NaN reward, an empty cluster, a wrong dimension."""


class InvalidType(BanditreeError, TypeError):
    """A value of the wrong type, or a parameter that is missing."""


class UnknownArm(BanditreeError, KeyError):
    """An arm or a cluster that the tree does not have."""


class MissingExtra(BanditreeError, ImportError):
    """A feature needs a package that is not installed; the message names the extra that brings it."""


def missing_extra(extra: str, why: str, otherwise: str = "") -> MissingExtra:
    """Say what is missing and how to install it. Only this function knows where banditree is installed from.

    >>> print(missing_extra("cli", "the command line needs Typer and Rich"))
    the command line needs Typer and Rich: pip install '.[cli]' in the folder of banditree's source
    """
    return MissingExtra(f"{why}: pip install '.[{extra}]' in the folder of banditree's source{otherwise}")


class BadFile(BanditreeError, ValueError):
    """A file that is truncated, corrupt, newer than this version, or of another kind."""


class BadPath(BanditreeError, OSError):
    """A path where nothing can be read or written, such as a device."""


class NotAFile(BadPath, IsADirectoryError):
    """A folder where a file is needed."""


class MissingFile(BadPath, FileNotFoundError):
    """A file, or the folder for one, that is not there."""


class PolicyFailed(BanditreeError, RuntimeError):
    """A policy raised an exception, or returned an arm that does not exist, during a simulation.

    ``runs`` holds the runs of the other policies; ``finished`` the finished seeds of each policy: {policy: its runs}.
    """

    finished: dict[str, Runs] | None = None


class ProblemFailed(BanditreeError, RuntimeError):
    """A user-defined problem raised an exception, or returned an invalid instance, reward or expected value."""


class EngineFailed(BanditreeError, RuntimeError):
    """The engine that keeps the rows of a log raised an error; the message says what was being computed."""


class Interrupted(KeyboardInterrupt):
    """A simulation was stopped by Ctrl-C. ``runs`` holds the finished seeds, or None if there are none."""

    runs: Runs | None = None
    sweep: Sweep | None = None  # of `bt.sweep`: the combinations that were finished
