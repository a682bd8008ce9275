"""The package itself: what an import loads, what it promises, the engine chosen, extras and versions."""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import banditree as bt
from tests.support.helpers import needs_native
from tools.lowest import PROJECT, declared, lowest

PIPES: Any = {"capture_output": True, "text": True}


def python(code: str, **environment: str) -> str:
    """What a fresh Python prints."""
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, env=environment, **PIPES)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def test_import_loads_numpy_alone() -> None:
    """Of packages outside the standard library; and a policy then runs without loading more."""
    code = """
import sys
before = set(sys.modules)
import banditree as bt
policy = bt.TSC(bt.Tree({"a": 3, "b": 3}), rng=0)
policy.update(policy.choose(), 1)
roots = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(root for root in roots if root not in sys.stdlib_module_names and root[0] != "_" and "cython" not in root))
print(sorted({"banditree.theory", "banditree.problems", "banditree.clustering"} & set(sys.modules)))
"""
    assert python(code).splitlines() == ["['banditree', 'numpy']", "[]"]


def test_import_leaves_to_later_what_is_slow_to_load() -> None:
    """`import banditree` takes at most 1.5 times `import numpy`: each of these would take much of the difference."""
    slow = "{'numpy.random', 'secrets', 'inspect', 'json', 'banditree.base.tables'}"
    code = f"""
import sys, numpy
before = set(sys.modules)
import banditree
print(({slow} & set(sys.modules)) - before)
"""
    assert python(code) == "set()"


def test_the_laws_need_numpy_alone() -> None:
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("scipy", "sklearn", "pytest", "hypothesis", "pandas", "matplotlib", "joblib"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import banditree as bt
bt.testing.check_policy(bt.TSC)
print("kept")
"""
    assert python(code) == "kept"


def test_the_environment_chooses_the_engine() -> None:
    code = "import banditree as bt; print(bt.engine(), bt.TS(bt.Tree(3)).engine)"
    assert python(code, BANDITREE_ENGINE="readable") == "readable readable"
    wrong = "import banditree as bt\ntry: bt.engine()\nexcept ValueError as error: print(error)"
    assert python(wrong, BANDITREE_ENGINE="abacus") == "BANDITREE_ENGINE='abacus' must be 'native' or 'readable'"


@needs_native
def test_the_native_engine_is_the_default() -> None:
    code = "import banditree as bt; print(bt.engine(), bt.TS(bt.Tree(3)).engine)"
    for wanted in ("", "native"):
        assert python(code, BANDITREE_ENGINE=wanted) == "native native"


def test_without_the_native_module_everything_still_works() -> None:
    code = """
import sys
sys.modules["banditree._native"] = None  # an import of it now fails
import banditree as bt
policy = bt.HTS(bt.Tree({"a": 3, "b": 3}), rng=0)
policy.update_many(policy.choose_many(5), [1, 0, 1, 0, 1])
print(bt.engine(), policy.engine)
"""
    assert python(code) == "readable readable"


def test_the_version() -> None:
    assert bt.__version__ == importlib.metadata.version("banditree") == "0.4.0"


def test_types_are_shipped() -> None:
    assert resources.files("banditree").joinpath("py.typed").is_file()


def public() -> list[tuple[str, Any]]:
    return [(name, getattr(bt, name)) for name in bt.__all__]


def test_every_public_name_is_there() -> None:
    assert len(set(bt.__all__)) == len(bt.__all__)
    code = "from banditree import *; import banditree; print(all(name in globals() for name in banditree.__all__))"
    assert python(code) == "True"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = bt.nonsense


@pytest.mark.parametrize(("name", "thing"), public(), ids=bt.__all__)
def test_every_public_name_says_what_it_is(name: str, thing: Any) -> None:
    if isinstance(thing, dict):
        assert thing
        return
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        for attribute, member in vars(thing).items():
            if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                own = getattr(member, "__doc__", None) or getattr(getattr(thing, attribute), "__doc__", None)
                inherited = any(getattr(base, attribute, None) is not None for base in thing.__mro__[1:])
                assert own or inherited, f"{name}.{attribute}"


def test_errors_are_also_pythons() -> None:
    expected = {
        "InvalidValue": ValueError,
        "InvalidType": TypeError,
        "UnknownArm": KeyError,
        "MissingExtra": ImportError,
        "BadFile": ValueError,
    }
    for name, kind in expected.items():
        error = getattr(bt.errors, name)
        assert issubclass(error, kind)
        assert issubclass(error, bt.errors.BanditreeError)


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "banditree", "--help"], check=True, **PIPES)
    assert "reproduce" in done.stdout
    assert "advise" in done.stdout


# ---------------------------------------------------------------- extras


ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "banditree").rglob("*.py"))


def test_every_hint_names_an_extra_that_there_is() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {name for path in SOURCES for name in re.findall(r"missing_extra\(\s*\"(\w+)\"", path.read_text("utf-8"))}
    assert {"cli", "plot", "frames", "cluster"} <= named <= set(extras)


def test_one_place_knows_how_extras_are_installed() -> None:
    knowing = [path.relative_to(ROOT).as_posix() for path in SOURCES if "pip install '" in path.read_text("utf-8")]
    assert knowing == ["src/banditree/errors/__init__.py"]


# ---------------------------------------------------------------- versions of what it needs


PROJECT_FILE = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
LINES = [
    line
    for line in Path(PROJECT.parent, "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def test_constraints_are_names_and_versions_alone() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)] == []


@pytest.mark.parametrize("requirement", sorted({str(one) for one in declared(PROJECT_FILE)}))
def test_what_we_work_with_is_what_we_declare(requirement: str) -> None:
    needs = Requirement(requirement)
    used = {canonicalize_name(name): version for name, version in (line.split("==") for line in LINES)}
    assert needs.specifier.contains(used[canonicalize_name(needs.name)])
    assert lowest(iter([needs]))[needs.name] <= Version(used[canonicalize_name(needs.name)])


def test_the_higher_of_two_lower_ends_counts() -> None:
    found = lowest(Requirement(text) for text in ("a>=1.2", "b[more]>=3,<5", "a>=1.10"))
    assert found == {"a": Version("1.10"), "b": Version("3")}


def test_a_range_without_a_lower_end_is_refused() -> None:
    with pytest.raises(SystemExit, match="b<2 declares no lowest version; write b>="):
        lowest(Requirement(text) for text in ("a>=1", "b<2"))
