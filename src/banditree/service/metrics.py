"""Count requests and events, and write the counts in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from banditree.service.events import Event, Kind

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}


class Metrics:
    """What the service has done since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.decisions: Counter[str] = Counter()  # by experiment
        self.rewards: Counter[tuple[str, str]] = Counter()  # by experiment and what was done
        self._latency: Counter[int] = Counter()  # decisions answered, by bound
        self._seconds = 0.0

    def count_request(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a request by its route, without names and ids: the number of labels must not grow with the traffic.

        The time of requests for a decision goes into the histogram.
        """
        self.requests[method if method in METHODS else "other", route, code] += 1
        if method == "POST" and route == "/v1/decisions":
            self._latency[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def count_events(self, events: Sequence[Event]) -> None:
        """Count events that this process has added to the log, so that the sum over processes is right."""
        for event in events:
            if event.kind == Kind.DECISION:
                self.decisions[event.experiment] += 1
            elif event.kind in (Kind.REWARD, Kind.DEFAULT):
                learned = "learned" if event.learned else "recorded"
                self.rewards[event.experiment, "default" if event.kind == Kind.DEFAULT else learned] += 1

    def text(self, *, events: int, lag: int, arms: Mapping[str, int], ready: bool) -> str:
        """Write all metrics as text; ``arms`` has the number of arms of every experiment."""
        requests = {
            f'{{method="{method}",route="{route}",code="{code}"}}': n
            for (method, route, code), n in sorted(self.requests.items())
        }
        decisions = {_label(name): self.decisions[name] for name in arms}
        statuses = {
            f'{{experiment="{_escape(name)}",status="{what}"}}': self.rewards[name, what]
            for name in arms
            for what in ("learned", "recorded", "default")
        }
        return "".join(
            [
                _family("decisions_total", "counter", "Decisions made by this process.", decisions),
                _family("rewards_total", "counter", "Rewards stored by this process, by what was done.", statuses),
                _family("decision_seconds", "histogram", "Time to answer a request for a decision.", self._histogram()),
                _family("http_requests_total", "counter", "Requests by method, route and status.", requests),
                _family("events", "gauge", "Events in the log that this process has folded.", events),
                _family("fold_lag_events", "gauge", "Events in the log that this process has not folded yet.", lag),
                _family("arms", "gauge", "Arms that can be chosen.", {_label(name): n for name, n in arms.items()}),
                _family("ready", "gauge", "Whether the store can be used.", int(ready)),
            ]
        )

    def _histogram(self) -> dict[str, object]:
        buckets: dict[str, object] = {}
        below = 0
        for place, bound in enumerate(BOUNDS):
            below += self._latency[place]
            buckets[f'_bucket{{le="{bound}"}}'] = below
        total = self._latency.total()
        return buckets | {'_bucket{le="+Inf"}': total, "_sum": f"{self._seconds:.6f}", "_count": total}


def _family(name: str, kind: str, text: str, values: object) -> str:
    """Write one metric: a value, or {what follows the name: value}."""
    name = f"banditree_{name}"
    by_label = values if isinstance(values, Mapping) else {"": values}
    lines = [
        f"# HELP {name} {text}",
        f"# TYPE {name} {kind}",
        *(f"{name}{at} {value}" for at, value in by_label.items()),
    ]
    return "\n".join(lines) + "\n"


def _label(experiment: str) -> str:
    return f'{{experiment="{_escape(experiment)}"}}'


def _escape(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')
