"""Count decisions by arm, and by category over time."""

from __future__ import annotations

from collections import Counter
from typing import Any

BUCKETS = 60  # most pieces of time


class Traffic:
    """Counts of decisions. Time is cut into at most 60 pieces; when there are more, pairs are merged."""

    def __init__(self) -> None:
        self.arms: Counter[str] = Counter()
        self.width = 1_000_000  # microseconds of one piece
        self.first = 0  # the number of the first piece: its start over the width
        self.pieces: list[Counter[str]] = []

    def add(self, at: int, arm: str, category: str) -> None:
        """Count a decision."""
        self.arms[arm] += 1
        if not self.pieces:
            self.first = at // self.width
        while max(at // self.width, self.first) - self.first >= BUCKETS:
            self._double()
        place = max(at // self.width - self.first, 0)
        while len(self.pieces) <= place:
            self.pieces.append(Counter())
        self.pieces[place][category] += 1

    def _double(self) -> None:
        merged: list[Counter[str]] = []
        for place, piece in enumerate(self.pieces):
            into = (self.first + place) // 2 - self.first // 2
            while len(merged) <= into:
                merged.append(Counter())
            merged[into] += piece
        self.pieces, self.first, self.width = merged, self.first // 2, self.width * 2

    def to_dict(self) -> dict[str, Any]:
        pieces = [dict(piece) for piece in self.pieces]
        return {"arms": dict(self.arms), "width": self.width, "first": self.first, "pieces": pieces}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Traffic:
        traffic = cls()
        traffic.arms = Counter(saved["arms"])
        traffic.width, traffic.first = saved["width"], saved["first"]
        traffic.pieces = [Counter(piece) for piece in saved["pieces"]]
        return traffic
