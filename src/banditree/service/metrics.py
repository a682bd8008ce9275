"""Counts and times in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from banditree.service.events import DECISION, DEFAULT, REWARD, Event

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
ROUTES = (
    "/v1/decisions",
    "/v1/arms",
    "/v1/tree",
    "/v1/log",
    "/v1/traffic",
    "/metrics",
    "/healthz",
    "/readyz",
    "/docs",
    "/",
)


class Metrics:
    """What the service has done since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.decisions = 0
        self.rewards: Counter[str] = Counter()
        self._latency: Counter[int] = Counter()  # decisions answered, by bound
        self._seconds = 0.0

    def answered(self, method: str, path: str, code: int, seconds: float) -> None:
        """Count a request; the time of those that decide goes into the histogram."""
        route = _route(path)
        self.requests[method, route, code] += 1
        if method == "POST" and path == "/v1/decisions":
            self._latency[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def kept(self, events: Sequence[Event]) -> None:
        """Count what was added to the log, by whichever process."""
        for event in events:
            if event.kind == DECISION:
                self.decisions += 1
            elif event.kind in (REWARD, DEFAULT):
                learned = "learned" if event.learned else "recorded"
                self.rewards["default" if event.kind == DEFAULT else learned] += 1

    def text(self, *, events: int, lag: int, arms: int, ready: bool) -> str:
        """Everything, as Prometheus reads it."""
        lines = [
            *_head("banditree_decisions_total", "counter", "Decisions in the log since the start."),
            f"banditree_decisions_total {self.decisions}",
            *_head("banditree_rewards_total", "counter", "Rewards in the log since the start, by what became of them."),
            *(
                f'banditree_rewards_total{{status="{what}"}} {self.rewards[what]}'
                for what in ("learned", "recorded", "default")
            ),
            *_head("banditree_decision_seconds", "histogram", "Time to answer a request for a decision."),
            *self._histogram(),
            *_head("banditree_http_requests_total", "counter", "Requests by method, route and status."),
            *(
                f'banditree_http_requests_total{{method="{method}",route="{route}",code="{code}"}} {count}'
                for (method, route, code), count in sorted(self.requests.items())
            ),
            *_head("banditree_events", "gauge", "Events in the log that this process has folded."),
            f"banditree_events {events}",
            *_head("banditree_fold_lag_events", "gauge", "Events in the log that this process has not folded yet."),
            f"banditree_fold_lag_events {lag}",
            *_head("banditree_arms", "gauge", "Arms that can be chosen."),
            f"banditree_arms {arms}",
            *_head("banditree_ready", "gauge", "Whether the store can be used."),
            f"banditree_ready {int(ready)}",
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        lines, below = [], 0
        for place, bound in enumerate(BOUNDS):
            below += self._latency[place]
            lines.append(f'banditree_decision_seconds_bucket{{le="{bound}"}} {below}')
        total = self._latency.total()
        lines.append(f'banditree_decision_seconds_bucket{{le="+Inf"}} {total}')
        return [
            *lines,
            f"banditree_decision_seconds_sum {self._seconds:.6f}",
            f"banditree_decision_seconds_count {total}",
        ]


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _route(path: str) -> str:
    """The route of a path, without ids: labels must not grow with the traffic."""
    if path in ROUTES:
        return path
    if path.startswith("/v1/decisions/"):
        return "/v1/decisions/{id}/reward" if path.endswith("/reward") else "/v1/decisions/{id}"
    return "/v1/events" if path == "/v1/events" else "other"
