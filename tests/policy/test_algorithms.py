"""What each policy class says about itself is true, and names that users write are understood."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.algorithms import ALGORITHMS, parse_policy, without_contexts
from banditree.policy.policy import Policy
from banditree.rules import UCB

TREE = bt.Tree({"a": {"b": [1, 2], "c": [3, 4]}, "d": {"e": [5, 6]}})


@pytest.mark.parametrize("kind", ALGORITHMS.values())
def test_a_class_says_what_it_is(kind: type[Policy]) -> None:
    about = kind.about
    assert getattr(bt, kind.__name__) is kind
    options: Any = {"dim": 2} if about.takes_contexts else {}
    policy = kind(TREE, **options)
    assert (policy.dim is not None) == about.takes_contexts
    if not about.adapts:
        assert policy.depth == about.levels
    assert ("UCB" in about.family) == isinstance(policy.rule, UCB)


@pytest.mark.parametrize("kind", ALGORITHMS.values())
def test_an_algorithm_takes_its_own_parameters_alone(kind: type[Policy]) -> None:
    build: Any = kind
    prior = None if kind.about.adapts or kind.about.takes_contexts else bt.Beta()
    values: dict[str, Any] = {"prior": prior, "depth": 1, "dim": 2, "v": 0.5, "c": 1.0}
    values |= {"clock": "global", "best": "posterior"}
    least = {"dim": 2} if kind.about.takes_contexts else {}
    for name, value in values.items():
        if name in kind.about.parameters:
            build(TREE, **(least | {name: value}))
        else:
            with pytest.raises(InvalidType, match=f"no parameter '{name}'; it takes"):
                build(TREE, **(least | {name: value}))
    with pytest.raises(InvalidType, match="called rng"):
        build(TREE, **least, seed=7)


def test_policies_as_users_spell_them() -> None:
    assert parse_policy("ts").kind is bt.TS
    assert parse_policy(" HTS ").parameters == {}
    assert {parse_policy(text).label for text in ("HTS:2", "hts(2)", "HTS(depth=2)")} == {"HTS(depth=2)"}
    assert parse_policy(bt.LinHTS).kind is bt.LinHTS
    assert parse_policy("LinHTS:1").factory(TREE, dim=3).depth == 1
    assert [parse_policy(name).kind for name in ALGORITHMS] == list(ALGORITHMS.values())


def test_what_is_not_a_policy_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_policy("TSX")
    assert all(name in str(refused.value) for name in ALGORITHMS)
    for wrong in ("", "HTS:x", "TSC:1", "HTS:-1"):
        with pytest.raises(InvalidValue):
            parse_policy(wrong)
    with pytest.raises(InvalidValue, match="depth 2"):
        parse_policy("HTS:3", tree=TREE)
    with pytest.raises(InvalidValue):
        parse_policy("LinTS", among=without_contexts())
    with pytest.raises(InvalidType):
        parse_policy(3)  # type: ignore[arg-type]


PACKAGE = """
import banditree as bt


class Sure(bt.TS):
    about = bt.TS.about


class Odd:
    pass
"""


def test_a_policy_of_another_package_is_known_by_its_name(tmp_path: Path) -> None:
    """A distribution is a module and its metadata; commands, services and files know the policy by its entry point."""
    (tmp_path / "sure.py").write_text(PACKAGE)
    info = tmp_path / "sure-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sure\nVersion: 1.0\n")
    points = "Sure = sure:Sure\nOdd = sure:Odd\nTSC = sure:Sure\nGone = nowhere:Gone\n"
    (info / "entry_points.txt").write_text(f"[banditree.policies]\n{points}")
    (tmp_path / "items.csv").write_text("item,kind,ctr\na,x,0.1\nb,x,0.2\nc,y,0.3\n")
    code = """
import banditree as bt
from banditree.policy.algorithms import known_policies
from banditree.service.settings import Settings

assert [name for name in known_policies() if name not in bt.ALGORITHMS] == ["Sure"]
policy = Settings(policy="sure").build(bt.Tree({"x": ["a", "b"]}))
policy.update("a", 1)
again = bt.from_bytes(policy.to_bytes())
assert type(policy).__name__ == type(again).__name__ == "Sure"
from banditree.cli.main import main
import sys
options = "--arm item --path kind --mean ctr --horizon 100 --seeds 2 --policy Sure,TS"
sys.argv = f"banditree simulate items.csv {options}".split()
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "Sure" in done.stdout
    for why in ("Odd of sure:Odd is left out", "its name not one of banditree's", "No module named 'nowhere'"):
        assert why in done.stderr
