"""Read what to serve, from options or a TOML file, and run the service: one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
import json
import signal
import socket
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from banditree.base.arrays import Array
from banditree.base.files import Json, reason
from banditree.catalogue.read import read_catalogue
from banditree.data.items import read_tree
from banditree.data.log import CATEGORY
from banditree.errors import BadPath, BanditreeError, InvalidValue, missing_extra
from banditree.errors.checks import positive, split_names
from banditree.ope import read_log
from banditree.service.events import log_as_json
from banditree.service.settings import Plan, Settings, Source, check_experiment_name, check_reward, read_settings
from banditree.service.store import open_log
from banditree.tree import Tree

try:
    import jinja2  # noqa: F401 (for the pages)
    import uvicorn

    from banditree.service.app import Service
    from banditree.service.engine import Engine
    from banditree.service.guard import LOOPBACK, REQUEST_SECONDS, Access
    from banditree.service.schema import MAX_ARM_NAME, SettingsRequest, read, storable
except ImportError:
    raise missing_extra("serve", "the service needs FastAPI, uvicorn and Jinja2") from None

__all__ = ["Access", "make_plan", "plan_of", "read_config", "serve"]

SWITCH_SECONDS = 0.0005  # until the engine's thread gets its turn; Python's default of 5 ms would delay every answer
GRACE_SECONDS = 10  # that unfinished requests get when the service stops
MAX_CONNECTIONS = 2_000  # fewer where the process may open fewer files
BACKLOG = 1_024  # connections that wait to be accepted; fewer likewise
SPARE_FILES = 64  # file descriptors that are not for connections
OF_SOURCE = {part.name for part in fields(Source)}
OPTIONS = OF_SOURCE | set(SettingsRequest.model_fields)

# What to serve


def read_config(file: Path, catalogue: str, *, updates_settings: bool = False) -> list[Plan]:
    """Read a TOML file with a table [experiments.NAME] for each experiment; options as on the command line."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"cannot read {file}: {reason(error)}") from None
    tables = content.pop("experiments", None)
    if content or not isinstance(tables, Mapping) or not tables:
        raise InvalidValue(f"{file} must have a table [experiments.NAME] for each experiment, and nothing else")
    plans = []
    for name, table in tables.items():
        try:
            plans.append(make_plan(str(name), table, file.parent, catalogue, updates_settings=updates_settings))
        except BanditreeError as error:
            raise InvalidValue(f"{file}, [experiments.{name}]: {error}") from None
    return plans


def make_plan(name: str, given: Json, folder: Path, catalogue: str, *, updates_settings: bool = False) -> Plan:
    """Read an experiment's settings and its files, named relative to a folder; options are as on the command line."""
    check_experiment_name(name)
    if not isinstance(given, Mapping):
        raise InvalidValue(f"it must be a table of options, and is {given!r:.60}")
    options = {key.replace("-", "_"): value for key, value in given.items()}
    for key in options:
        if key not in OPTIONS:
            raise InvalidValue(f"there is no option {key!r}; there are {', '.join(sorted(OPTIONS))}")
    for key in ("items", "arm"):
        if not options.get(key):
            raise InvalidValue(f"{key} is missing")
    for key in ("items", "log"):
        if key in options:
            options[key] = folder / str(options[key])
    for key in ("arm", "path", "log_context"):
        names = options.get(key)
        if not (names is None or isinstance(names, str) or _is_list_of_text(names)):
            raise InvalidValue(f'{key} is {names!r:.60}; give names of columns: "a,b" or ["a", "b"]')
        options[key] = split_names(f"--{key.replace('_', '-')}", options.get(key))
    source = Source(**{key: options.pop(key) for key in OF_SOURCE & options.keys()})
    if isinstance(options.get("context"), str) and "=" not in options["context"]:
        options["context"] = _read_features(options["context"], folder)
    settings = read_settings(read(SettingsRequest.model_validate, options).model_dump())
    return replace(plan_of(name, source, settings, catalogue), updates_settings=updates_settings)


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _read_features(file: str, folder: Path) -> Mapping[str, object]:
    """Read features by name from a JSON file."""
    try:
        content = json.loads((folder / file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = f"neither features such as age=18..90 nor a JSON file: {reason(error)}"
        raise InvalidValue(f"--context {file}: {why}") from None
    if not isinstance(content, Mapping):
        raise InvalidValue(f'--context {file} must hold an object such as {{"age": [18, 90]}}')
    return content


def plan_of(name: str, source: Source, settings: Settings, catalogue: str) -> Plan:
    """Read the files of an experiment, and return what to start it from."""
    tree = read_tree(source.items, arm=list(source.arm), path=list(source.path))
    arms = {str(route[-1]): [str(part) for part in route[:-1]] for route in tree.paths()}
    if len(arms) < tree.n_arms:
        raise InvalidValue("two items have the same name once numbers are written as text; rename one of them")
    for text in (*arms, *(part for path in arms.values() for part in path)):
        if not 0 < len(text) <= MAX_ARM_NAME:
            raise InvalidValue(f"the name {text!r:.60} must have 1 to {MAX_ARM_NAME:,} characters")
        try:
            storable(text)
        except ValueError as error:
            raise InvalidValue(f"the name {text!r:.60} cannot be served: {error}") from None
    return Plan(arms, settings, name, source.items.name, catalogue, _evidence(source, tree, settings))


def _evidence(source: Source, tree: Tree, settings: Settings) -> Json | None:
    """Read past counts from columns of the items, or from a log."""
    if (source.plays is None) != (source.successes is None):
        raise InvalidValue("--plays and --successes go together: columns of past plays and of successes")
    if source.plays is not None and source.log is not None:
        raise InvalidValue("start from --plays and --successes, or from --log, not from both")
    if positive("weight", source.weight) > 1:
        raise InvalidValue(f"--weight {source.weight:g} must be above 0 and at most 1")
    if source.plays is not None and source.successes is not None:
        arm, path = list(source.arm), list(source.path)
        known = read_catalogue(source.items, arm=arm, path=path, plays=source.plays, successes=source.successes)
        assert known.plays is not None
        assert known.totals is not None
        return _counts([str(arm) for arm in known.tree.arms], known.plays, known.totals, source.weight)
    if source.log is None:
        if source.weight != 1:
            raise InvalidValue("--weight needs what it weighs: --plays and --successes, or --log")
        return None
    if source.log_arm is None or source.log_reward is None:
        raise InvalidValue("--log needs --log-arm and --log-reward, the columns of what was shown and its reward")
    spec = {} if settings.named is None else settings.named.spec
    kinds = {name: CATEGORY if _has_text_levels(spec.get(name)) else None for name in source.log_context or spec}
    log = read_log(source.log, arm=source.log_arm, reward=source.log_reward, context=kinds)
    ids = [str(arm) for arm in tree.ids(log.places(tree)).tolist()]
    policy = settings.build(tree)
    if policy.dim is not None:
        if source.weight != 1:
            raise InvalidValue("--weight does not go with contexts; leave it out")
        if log.contexts is None:
            raise InvalidValue("the policy learns from contexts; name their columns with --log-context")
        contexts = log.contexts if policy.features is None else log.encode(policy.features)
        return {"arms": ids, "rewards": log.rewards.tolist(), "contexts": contexts.tolist()}
    for row in (int(log.rewards.argmin()), int(log.rewards.argmax())):  # which sums would hide
        check_reward(policy, ids[row], float(log.rewards[row]))
    places = {arm: place for place, arm in enumerate(dict.fromkeys(ids))}
    codes = np.array([places[arm] for arm in ids], np.intp)
    return _counts(list(places), np.bincount(codes), np.bincount(codes, log.rewards), source.weight)


def _has_text_levels(feature: object) -> bool:
    return isinstance(feature, list) and isinstance(feature[0], str)


def _counts(arms: Sequence[str], plays: Array, rewards: Array, weight: float) -> Json:
    tried = np.flatnonzero(np.asarray(plays) > 0).tolist()
    return {
        "arms": [arms[place] for place in tried],
        "rewards": [float(rewards[place]) * weight for place in tried],
        "plays": [float(plays[place]) * weight for place in tried],
    }


# Serving


def serve(plans: Sequence[Plan], *, store: str, host: str, port: int, access: Access | None = None) -> None:
    """Serve decisions of some experiments until SIGTERM or Ctrl-C."""
    access = access or Access()
    if host not in LOOPBACK and not access.tokens:
        raise InvalidValue(f"--host {host} can be reached from outside; give --token, or set BANDITREE_TOKEN")
    access = replace(access, hosts=access.hosts | {host.lower()})
    with ExitStack() as opened:
        listening = opened.enter_context(_listen(host, port))
        log = open_log(store)
        opened.callback(log.close)
        log_as_json()
        engine = Engine(log)
        engine.start(plans)
        service = Service(engine, access)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # loaded objects stay: the garbage collector need not scan them again
        connections, backlog = _connection_limits()
        config = uvicorn.Config(
            service.guarded,
            limit_concurrency=connections,
            timeout_keep_alive=round(REQUEST_SECONDS),
            backlog=backlog,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # nothing depends on where a request comes from
            lifespan="on",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(config, service)
        for wanted in (signal.SIGTERM, signal.SIGINT):  # before the address is known, so that none is missed
            signal.signal(wanted, server.handle_exit)
        listening.listen(config.backlog)  # clients that read the next line may connect at once; they wait for uvicorn
        shown = f"[{host}]" if ":" in host else host
        n_arms = sum(state.policy.tree.n_arms for state in engine.states.values() if not state.is_empty)
        among = "" if len(engine.states) == 1 else f" in {len(engine.states):,} experiments"
        address = f"http://{shown}:{listening.getsockname()[1]}"
        print(f"banditree serves {n_arms:,} arms{among} at {address}", flush=True)
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends the live streams before it shuts down, because they never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.hub.close()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as opened:
            listening = opened.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            opened.pop_all()
    except OSError as error:
        raise BadPath(f"cannot listen on {host}:{port}: {error.strerror}; give another --host or --port") from error
    return listening


def _connection_limits() -> tuple[int, int]:
    """Return how many connections the process may have, and how many may wait to be accepted, by its open files.

    The process may open as many files as it needs, if the system lets it.
    """
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS, BACKLOG
    wanted = MAX_CONNECTIONS + BACKLOG + SPARE_FILES
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= files < wanted:
        files = wanted if most < 0 else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return limits_by_files(files if files >= 0 else wanted)


def limits_by_files(files: int) -> tuple[int, int]:
    """Share open files out between connections and those that wait to be accepted.

    >>> limits_by_files(65_536), limits_by_files(256)
    ((2000, 1024), (128, 64))
    """
    connections = max(1, min(MAX_CONNECTIONS, files // 2))
    return connections, max(1, min(BACKLOG, files - connections - SPARE_FILES))
