"""Write runs and sweeps to files, and read them: plain CSV for other tools, NPZ with all that `load` restores."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.base.arrays import Array
from banditree.base.files import FilePath, Json, read_whole, write_whole
from banditree.errors import BadFile, InvalidValue

if TYPE_CHECKING:
    from banditree.simulation.runs import Runs

Arrays = dict[str, Array]

COLUMNS = ("policy", "seed", "time", "regret")  # of a CSV file and of a frame
HEADER = "header"  # the array of an NPZ file that holds JSON: everything that is not an array of numbers
BY_SEED = ("regret", "evaluations", "plays", "replicates", "traces", "simple_regret")  # {policy: (seeds, ...)}
PLAIN = ("engine", "seconds", "problem", "built", "made")  # what JSON holds as it is
DAMAGES = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError, csv.Error, zipfile.BadZipFile)


def is_csv(path: FilePath) -> bool:
    return os.fspath(path).lower().endswith(".csv")


def write_csv(path: FilePath, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)  # names may hold anything
    writer.writerow(columns)
    writer.writerows(rows)
    write_whole(path, [text.getvalue().encode()])


def write_npz(path: FilePath, header: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    try:
        text = json.dumps(header)
    except TypeError as error:
        raise InvalidValue(f"cannot write {path}: {error}; a file holds numbers and texts, so save as .csv") from None
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **{HEADER: np.frombuffer(text.encode(), np.uint8), **arrays})
    write_whole(path, [content.getvalue()])


def read_npz(path: FilePath, kind: str) -> tuple[Json, Arrays]:
    """Return the header and the arrays of a file of this kind."""
    data = read_whole(path)
    if not data.startswith(b"PK"):
        raise BadFile(f"{path} was not written by save: it is not an .npz file; a .csv file holds the regret alone")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
        if header["kind"] != kind:
            raise BadFile(f"{path} holds {header['kind']!r:.60}, not {kind}")
    except BadFile:
        raise
    except DAMAGES as error:
        raise BadFile(f"{path} is damaged, or was not written by save: {error}") from None
    return header, arrays


def encode_runs(runs: Runs, prefix: str = "") -> tuple[dict[str, object], Arrays]:
    """Return the header and the arrays that hold runs: all but the instance."""
    header: dict[str, object] = {name: getattr(runs, name) for name in PLAIN}
    header |= {
        "policies": list(runs.policies),
        "seeds": list(runs.seeds),
        "clusters": {name: [list(seed.items()) for seed in seeds] for name, seeds in runs.clusters.items()},
        "cluster_traces": {
            name: [[(cluster, plays.tolist()) for cluster, plays in seed.items()] for seed in seeds]
            for name, seeds in runs.cluster_traces.items()
        },
        "arms": list(runs.arms),
    }
    arrays = {f"{prefix}times": runs.times}
    for field in BY_SEED:
        for i, name in enumerate(runs.policies):
            if name in getattr(runs, field):
                arrays[f"{prefix}{field}.{i}"] = getattr(runs, field)[name]
    return header, arrays


def decode_runs(kind: type[Runs], header: Json, arrays: Arrays, prefix: str = "") -> Runs:
    """Rebuild what `encode_runs` returned; raises one of `DAMAGES` where it cannot be."""
    names, n_seeds = header["policies"], len(header["seeds"])
    times = arrays[f"{prefix}times"]
    by_policy: dict[str, Any] = {
        field: {name: arrays[at] for i, name in enumerate(names) if (at := f"{prefix}{field}.{i}") in arrays}
        for field in BY_SEED
    }
    shapes = {"regret": (n_seeds, len(times)), "evaluations": (n_seeds,), "plays": (n_seeds, len(header["arms"]))}
    for field, shape in shapes.items():
        of_field = by_policy[field]
        if list(of_field) != names and (field != "plays" or of_field):
            raise ValueError(f"{field} are not those of {', '.join(names)}")
        if any(array.shape != shape for array in of_field.values()):
            raise ValueError(f"{field} are not of shape {shape}")
    for field in ("engine", "seconds", "clusters"):
        if list(header[field]) != names:
            raise ValueError(f"{field} are not those of {', '.join(names)}")
    if any(len(by_seed) != n_seeds for by_seed in header["clusters"].values()):
        raise ValueError(f"clusters are not those of {n_seeds} seeds")
    return kind(
        times=times,
        seeds=tuple(header["seeds"]),
        clusters={name: [dict(plays) for plays in by_seed] for name, by_seed in header["clusters"].items()},
        cluster_traces={
            name: [{cluster: np.array(plays, np.int64) for cluster, plays in seed} for seed in by_seed]
            for name, by_seed in header.get("cluster_traces", {}).items()  # files of 0.3 have none
        },
        arms=tuple(header["arms"]),
        built={name: (cls, dict(given)) for name, (cls, given) in header["built"].items()},
        **{name: header[name] for name in PLAIN if name != "built"},
        **by_policy,
    )


def read_runs(kind: type[Runs], path: FilePath) -> Runs:
    """Read an NPZ file, or a CSV file of 0.3, which had a column of JSON for everything else than regret."""
    data = read_whole(path)
    try:
        header, arrays = _read_0_3(data, path) if not data.startswith(b"PK") else read_npz(path, "runs")
        return decode_runs(kind, header, arrays)
    except BadFile:
        raise
    except DAMAGES as error:
        raise BadFile(f"{path} is damaged: {error}") from None


def _read_0_3(data: bytes, path: FilePath) -> tuple[Json, Arrays]:
    reader = csv.DictReader(io.StringIO(data.decode("utf-8", "replace"), newline=""))
    columns = tuple(reader.fieldnames or ())
    if columns == COLUMNS:
        raise BadFile(f"{path} holds the regret alone, for other tools; Runs.load reads what was saved as .npz")
    if columns != (*COLUMNS, "details"):
        raise BadFile(f"{path} was not written by Runs.save; give a file that it saved as .npz")
    rows = list(reader)
    header = json.loads("".join(row["details"] for row in rows))
    names = list(header["engine"])
    seeds, times = (list(dict.fromkeys(int(row[column]) for row in rows)) for column in ("seed", "time"))
    keys = [(row["policy"], int(row["seed"]), int(row["time"])) for row in rows]
    if keys != list(product(names, seeds, times)):
        raise ValueError("some rows are missing or out of order")
    regret = np.array([float(row["regret"]) for row in rows]).reshape(len(names), len(seeds), len(times))
    arrays: Arrays = {"times": np.array(times, np.int64)}
    for i, name in enumerate(names):
        arrays[f"regret.{i}"] = regret[i]
        arrays[f"evaluations.{i}"] = np.array(header["evaluations"][name], float)
        if header["plays"]:
            arrays[f"plays.{i}"] = np.array(header["plays"][name], np.int64)
    return {"built": {}, **header, "policies": names, "seeds": seeds, "made": {}}, arrays
