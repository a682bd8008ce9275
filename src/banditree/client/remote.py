"""Ask ``banditree serve`` for every decision, with the standard library alone.

Every request can be repeated safely: the client chooses the id of a decision, and a reward carries the id of its
decision. So the client repeats requests that got no answer, and nothing counts twice.

>>> from banditree.client import Client
>>> client = Client("http://127.0.0.1:8000")
>>> decision = client.decide(exclude=["h2"])          # doctest: +SKIP
>>> client.reward(decision["id"], 1)                  # doctest: +SKIP
'applied'
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener
from uuid import uuid4

from banditree.errors import BanditreeError, InvalidValue

NOT_MODIFIED = 304
RETRIED = {502, 503, 504}  # status codes after which a request is repeated
MAX_WAIT_SECONDS = 10.0


class ServiceError(BanditreeError, RuntimeError):
    """The service refused a request, or did not answer.

    ``code`` is the HTTP status, None without an answer; ``wait`` is how many seconds the service asks to wait.
    """

    def __init__(self, sentence: str, code: int | None, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.code, self.wait = code, wait


class Answer(NamedTuple):
    """An HTTP answer."""

    code: int
    headers: Message
    body: bytes


class Caller:
    """Sends requests about one experiment to a service."""

    def __init__(self, url: str, token: str | None, experiment: str, timeout: float) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidValue(f"url {url!r} must start with http:// or https://, as in http://127.0.0.1:8000")
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self._base = "/v1" if experiment == "main" else f"/v1/experiments/{quote(experiment, safe='')}"
        self._opener = build_opener(ProxyHandler({}))  # the environment's proxies are for the internet, not for this

    def send(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request once; raise `ServiceError` if it was refused, or not answered."""
        headers = {"content-type": "application/json"} | dict(headers or {})
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        request = Request(self.url + self._base + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return Answer(response.status, response.headers, response.read())
        except HTTPError as error:
            with error:
                if error.code == NOT_MODIFIED:
                    return Answer(error.code, error.headers, b"")
                wait = error.headers.get("retry-after", "")
                seconds = min(float(wait), MAX_WAIT_SECONDS) if wait.isdecimal() else 0.0
                raise ServiceError(_sentence(error), error.code, seconds) from None
        except (OSError, HTTPException, ValueError) as error:  # no answer, or an incomplete one
            raise ServiceError(f"{self.url} did not answer: {error}", None) from None


class Client(Caller):
    """Asks a service for decisions and reports their rewards. Threads may share a client.

    A request that gets no answer in time, or a 503, is repeated, with pauses that start at a tenth of a second and
    double; the service may ask for longer ones.

    Parameters
    ----------
    url
        The address of the service.
    token
        The token, if the service asks for one.
    experiment
        The name of the experiment.
    timeout
        Seconds to wait for an answer.
    retries
        How often a request is repeated.
    """

    def __init__(
        self, url: str, *, token: str | None = None, experiment: str = "main", timeout: float = 5.0, retries: int = 5
    ) -> None:
        super().__init__(url, token, experiment, timeout)
        self.retries = retries

    def decide(
        self,
        *,
        unit: str | None = None,
        context: Mapping[str, object] | Sequence[float] | None = None,
        only: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        k: int | None = None,
        id: str | None = None,  # noqa: A002
    ) -> dict[str, Any]:
        """Ask for a decision. Returns the service's answer: id, arm, arms, path, propensity, steps, group, at.

        Parameters
        ----------
        unit
            Whom it is for, such as a visitor, who is then always in the same group.
        context
            What is known about the visitor: features by name, or a list of numbers.
        only, exclude
            Arms to choose from, and arms that must not be chosen.
        k
            How many different arms.
        id
            An id for the decision; a random one by default. A new id is a new decision, also for a unit that would keep
            its arm by ``--sticky``: give the id of the unit's visit then.
        """
        limits = {"only": only, "exclude": exclude, "k": k}
        return self._ask("POST", "/decisions", {"id": id or uuid4().hex, "unit": unit, "context": context, **limits})

    def reward(self, id: str, reward: float, *, position: int | None = None, arm: str | None = None) -> str:  # noqa: A002
        """Report the reward of a decision; for a slate with its position. Returns "applied", "duplicate" or "late"."""
        body = {"reward": float(reward) if isinstance(reward, bool) else reward, "position": position, "arm": arm}
        return str(self._ask("PUT", f"/decisions/{quote(id, safe='')}/reward", body)["status"])

    def expose(self, id: str) -> str:  # noqa: A002
        """Say that somebody saw what was decided, for experiments with ``--exposure``."""
        return str(self._ask("POST", f"/decisions/{quote(id, safe='')}/exposure", {})["status"])

    def look_up(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Look up a decision and its reward."""
        return self._ask("GET", f"/decisions/{quote(id, safe='')}")

    def withdraw(self, id: str) -> None:  # noqa: A002
        """Say that a decision was never shown."""
        self._ask("DELETE", f"/decisions/{quote(id, safe='')}")

    def change_arms(
        self,
        *,
        add: Mapping[str, Sequence[str]] | None = None,
        move: Mapping[str, Sequence[str]] | None = None,
        remove: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Add, move and remove arms: all of them, or none. Repeating a request that was carried out is not an error."""
        return self._ask("POST", "/arms", {"add": add, "move": move, "remove": remove})

    def tree(self) -> list[dict[str, Any]]:
        """Return the nodes of the tree, with what was learned."""
        return list(self._ask("GET", "/tree")["nodes"])

    def report(self) -> dict[str, Any]:
        """Return what the experiment is worth: the groups, the lift with its interval, and what is left to gain."""
        return self._ask("GET", "/report")

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send a request, without what is None in its body, and again if there is no answer; return the answer."""
        given = None if body is None else {what: value for what, value in body.items() if value is not None}
        data = None if given is None else json.dumps(given, default=plain).encode()
        for attempt in range(self.retries + 1):
            try:
                answer: dict[str, Any] = json.loads(self.send(method, path, data).body)
                return answer
            except ValueError:
                failed = ServiceError(f"{self.url} did not answer with JSON", None)
            except ServiceError as error:
                failed = error
                if error.code is not None and error.code not in RETRIED:
                    raise
            if attempt < self.retries:
                time.sleep(max(failed.wait * random.uniform(0.5, 1.0), pause(attempt)))
        raise failed


def pause(attempt: int) -> float:
    """Return how many seconds to wait after a request that failed, and one more each time."""
    return min(MAX_WAIT_SECONDS, 0.1 * 2.0 ** min(attempt, 30)) * random.uniform(0.5, 1.0)


def plain(value: Iterable[object]) -> object:
    """Convert a mapping, a sequence or a number of another kind than JSON knows."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _sentence(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return f"status {error.code}"
