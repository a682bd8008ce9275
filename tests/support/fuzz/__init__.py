"""Random calls of every policy, good and bad, against a plain oracle: `make fuzz SECONDS=60`."""

from tests.support.fuzz.world import World, Wrong, fuzz

__all__ = ["World", "Wrong", "fuzz"]
