"""What a terminal gets to see: whole names, numbers as people write them, and no control characters from a table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import banditree as bt
from banditree.base.document import Outline
from banditree.base.words import UNSEEN, visible
from banditree.catalogue import Catalogue, inspect, write_example
from banditree.cli import main as cli
from banditree.cli import options as cli_options
from banditree.simulation import progress
from banditree.simulation.progress import tasks_bar
from banditree.simulation.runs import Comparison

COUNTS = ["--arm", "item", "--path", "category", "--plays", "plays", "--successes", "clicks"]
COMMANDS = ("inspect", "simulate", "advise", "example", "reproduce")


def call(*arguments: str | Path, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(cli.application(), [str(argument) for argument in arguments])


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_example("items.csv")
    return Path("items.csv")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_flags_are_shown_as_flags(command: list[str]) -> None:
    shown = call(*command, "--help").stdout
    assert "--help" in shown
    assert "<bool>" not in shown
    assert "BOOLEAN" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["inspect", "items.csv", "--arm", "item"], "Missing option '--path'; see"),
        (["inspect"], "Missing argument 'ITEMS'; see"),
        (["simulate", "items.csv", *COUNTS, "--horizon", "x"], "'x' is not a whole number; write 100000 or 1e5; see"),
        (["advise", "items.csv", *COUNTS, "--horizon", "9", "--context", "age"], "No such option: --context"),
        (["evaluate", "log.csv", "--share", "2"], "--share"),
        (["replay", "log.csv", "--orders", "0"], "0 is below 1; give at least 1; see"),
        (["example", "x.csv", "--campaign", "children"], "children"),
        (["reproduce", "2b", "--seeds", "0"], "--seeds"),
        (["serve", "items.csv", "--port", "x"], "--port"),
        (["adviser"], "No such command 'adviser'"),
    ],
)
def test_one_wrong_input_gives_one_sentence(arguments: list[str], said: str, items: Path) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "simulate", "advise", "evaluate", "replay", "serve"])
def test_the_help_keeps_its_boxes(command: str) -> None:
    assert call(command, "--help").stdout.count("╭─") >= 3


def test_every_option_is_written_in_the_source() -> None:
    from typer.main import get_command

    files = Path(cli_options.__file__).parent.glob("*.py")
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    commands = get_command(cli.application()).commands  # type: ignore[attr-defined]
    options = {name for command in commands.values() for option in command.params for name in option.opts}
    assert {name for name in options if name.startswith("--") and name not in source} == set()


def test_serve_has_an_option_for_every_setting() -> None:
    from dataclasses import fields
    from inspect import signature

    from banditree.cli.serve import serve_command
    from banditree.service.settings import Settings, Source

    options = signature(serve_command).parameters
    described = [part for kind in (Source, Settings) for part in fields(kind) if part.metadata]
    assert {part.name for part in described} <= set(options)
    for part in described:
        assert options[part.name].default == (None if part.default == () else part.default)


@pytest.mark.parametrize("text", ["300", "3e2", "3E2", "300.0", "3_00"])
def test_a_horizon_may_be_written_otherwise(text: str, items: Path) -> None:
    result = call("simulate", items, *COUNTS, "--horizon", text, "--seeds", "1e0", "--policy", "TS", "--json")
    assert (json.loads(result.stdout)["horizon"], json.loads(result.stdout)["seeds"]) == (300, 1)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "1e-3", "nan", "inf", "many", "1e400"])
def test_a_horizon_that_is_none(text: str, items: Path) -> None:
    result = call("simulate", items, *COUNTS, f"--horizon={text}", width=200)
    assert (result.exit_code, result.stdout) == (2, "")
    said = re.sub(r"[│\s]+", " ", result.stderr)
    assert "--horizon" in said
    assert (
        f"{text} is below 1; give at least 1" in said or f"'{text}' is not a whole number; write 100000 or 1e5" in said
    )


def test_quiet_prints_a_part_of_the_same(items: Path) -> None:
    options = [str(items), *COUNTS, "--horizon", "200", "--seeds", "3"]
    whole, quiet = (call("simulate", *options, *more, width=100).stdout for more in ([], ["--quiet"]))
    assert quiet in whole
    assert re.match(r"policy +regret +95% interval +5% of worlds above +best in\n", quiet)


def test_two_columns_of_the_command_line(items: Path) -> None:
    options = ["--arm", "item,subcategory", "--path", "category", "--plays", "plays", "--successes", "clicks"]
    assert "0, sub-0" in call("inspect", items, *options).stdout


def test_a_log_and_rewards_of_the_command_line(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("item,kind,click\na,x,1\nb,y,0\na,x,0\nb,y,1\nb,y,0\n", encoding="utf-8")
    shown = call("inspect", log, "--arm", "item", "--path", "kind", "--reward", "click", "-q").stdout
    assert shown.startswith("2 arms in 2 categories, 2 successes in 5 plays")
    table = tmp_path / "table.csv"
    table.write_text("item,kind,n,m,s\na,x,50,12.5,3\nb,x,60,-4,3\nc,y,40,7,2.5\nd,y,9,8,2\n", encoding="utf-8")
    options = [str(table), "--arm", "item", "--path", "kind", "--plays", "n", "--reward-mean", "m", "--reward-sd", "s"]
    assert json.loads(call("inspect", *options, "--json").stdout)["rewards"] == 50 * 12.5 - 240 + 280 + 72
    for command in ("simulate", "advise"):
        result = call(command, *options, "--horizon", "100", "--seeds", "4")
        assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"prior=bt\.Gaussian\(sd=2\.\d+,\s+mean=[\d.]+,\s+prior_sd=[\d.]+\)", result.stdout)


def test_the_limit_of_the_command_line(items: Path) -> None:
    packed = items.with_name("items.csv.gz")
    packed.write_bytes(__import__("gzip").compress(items.read_bytes()))
    assert call("inspect", packed, *COUNTS, "-q").exit_code == 0
    result = call("inspect", packed, *COUNTS, "--max-bytes", "1e3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "items.csv.gz unpacks to more than 1,000 bytes" in result.stderr


# Names

EVIL = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\x9b2Jb", "back\x08space", "\u202etxt.exe", "two\nlines"]


def test_no_control_character_of_a_name_reaches_the_terminal(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    rows = "".join(f'"{name}","{name}",{100 + i},{3 * i}\n' for i, name in enumerate(EVIL))
    table.write_text(f"item,category,plays,clicks\n{rows}", encoding="utf-8")
    more = ["--horizon", "50", "--seeds", "4"]
    for command in ("inspect", "simulate", "advise"):
        for options in ([], ["--quiet"], ["--json"]):
            result = call(command, table, *COUNTS, *(more if command != "inspect" else []), *options)
            assert (result.exit_code, result.stderr) == (0, "")
            assert UNSEEN.findall(result.stdout.replace("\n", "")) == []
        if command != "advise":
            assert (
                r"\x1b[31mred\x1b[0m" in call(command, table, *COUNTS, *(more if command != "inspect" else [])).stdout
            )
    parsed = json.loads(call("inspect", table, *COUNTS, "--json").stdout)
    assert {row["path"][0] for row in parsed["cluster_means"]} == set(EVIL)
    table.write_text(f"item,category,plays,clicks\n{rows}" + "x,y,1,2\n", encoding="utf-8")
    assert UNSEEN.findall(call("inspect", table, *COUNTS).stderr.replace("\n", "")) == []
    evil = tmp_path / "\x1b[31m.csv"
    assert UNSEEN.findall(call("inspect", evil, *COUNTS).stderr.replace("\n", "")) == []


def test_trees_and_tables_show_control_characters() -> None:
    tree = bt.Tree({name: [f"{name} {i}" for i in range(2)] for name in EVIL})
    policy = bt.TSC(tree, rng=0)
    for shown in (str(tree), str(policy.table())):
        assert UNSEEN.findall(shown.replace("\n", "")) == []
        assert r"\x1b[31mred\x1b[0m 1" in shown or "... and" in shown
    assert visible("two\nlines") == "two lines"
    assert visible("two\nlines", lines=True) == "two\nlines"
    assert visible("日本 é") == "日本 é"


# Words


def test_one_of_a_thing_is_one() -> None:
    catalogue = Catalogue(bt.Tree({"x": ["a"], "y": ["b", "c"]}), plays=[1, 0, 0], successes=[1, 0, 0])
    assert repr(catalogue) == "Catalogue(3 arms, 2 clusters, depth 1; 1 success in 1 play)"
    assert catalogue.summary == "3 arms in 2 categories, 1 success in 1 play"
    (part,) = inspect(catalogue, worlds=5).tree_section().parts
    assert isinstance(part, Outline)
    assert [re.split(r"[(,]", line.note)[1] for line in part.lines] == ["1 arm", "2 arms"]


def test_regrets_that_differ_by_rounding_are_the_same() -> None:
    runs = bt.simulate([bt.TS, bt.TSC], bt.problems.bernoulli(bt.Tree(3), [0.1, 0.2, 0.3]), horizon=100, seeds=4)
    regret = np.array(runs.regret["TS"])
    runs.regret["TSC"][:] = np.nextafter(regret, np.inf)
    comparison = runs.compare("TSC", "TS")
    assert comparison.difference == 0
    assert str(comparison) == "TSC has the same regret as TS (4 paired seeds)"
    assert "less regret" in str(Comparison("a", "b", -1.0, 0.1, -10.0, 4))


def test_the_version_names_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{bt.__version__}, {bt.engine()} engine" in call("--version").stdout
    monkeypatch.setattr(cli, "native", None)
    assert "readable engine (the native one was not built; reinstall with a C++ compiler" in call("--version").stdout


@pytest.mark.parametrize(
    ("seconds", "missing", "said"), [(60.0, True, True), (0.01, True, False), (60.0, False, False)]
)
def test_long_work_says_that_the_native_engine_is_missing(
    seconds: float, missing: bool, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "native", None if missing else object())
    with tasks_bar({"figure 1b": seconds}, True):
        pass
    with tasks_bar({"figure 1b": seconds}, False):
        pass
    assert re.sub(r"\s+", " ", capsys.readouterr().err).count("the native one was not built") == said


@pytest.mark.parametrize(("long", "missing", "said"), [(0.0, True, 1), (0.0, False, 0), (1e9, True, 0)])
def test_a_simulation_that_turns_out_long_says_that_the_native_engine_is_missing(
    long: float, missing: bool, said: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a step costs depends on the policy, so how long it takes is measured, not told from the number of steps."""
    monkeypatch.setattr(progress, "native", None if missing else object())
    monkeypatch.setattr(progress, "LONG_SECONDS", long)
    monkeypatch.setattr(progress, "ESTIMATE_SECONDS", 0.0)
    bt.simulate([bt.TS], bt.problems.strong_dominance(), horizon=10, seeds=10, progress=True)
    assert re.sub(r"\s+", " ", capsys.readouterr().err).count("the native one was not built") == said


@pytest.mark.parametrize("command", ["simulate", "advise"])
def test_long_work_in_a_pipe_says_how_long_it_takes_and_how_far_it_is(
    command: str, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_options, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    arguments = [str(items), *COUNTS, "--horizon", "300", "--seeds", "4", "--policy", "TS,TSC"]
    said = call(command, *arguments).stderr
    assert re.search(r"^A few seconds: 4 worlds x [24] policies, 300 decisions each\.", said, re.MULTILINE)
    assert "--quick" not in said  # the number of worlds is given
    assert re.search(r"^\d+% done, a few seconds left$", said, re.MULTILINE)
    assert call(command, *arguments, "--quiet").stderr == ""


@pytest.mark.parametrize("command", ["simulate", "advise"])
def test_quick_is_named_to_those_who_have_not_asked_for_it(
    command: str, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_options, "LONG_SECONDS", 0.0)
    arguments = [str(items), *COUNTS, "--horizon", "300", "--policy", "TS,TSC"]
    assert "--quick" in call(command, *arguments).stderr
    assert "--quick" not in call(command, *arguments, "--quick").stderr


def test_quick_is_quicker(items: Path) -> None:
    arguments = ["simulate", str(items), *COUNTS, "--horizon", "2e4", "--policy", "TS", "--json"]
    seeds = [json.loads(call(*arguments, *more).stdout)["seeds"] for more in (["--quick"], [])]
    assert 4 <= seeds[0] <= seeds[1] <= 200


def test_a_reproduction_in_a_pipe_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    caplog.set_level("INFO", "banditree")
    for shown, lines in ((None, ["About 2 minutes: figure 1b, figure 2a", "25% done", "50% done"]), (False, [])):
        with tasks_bar({"figure 1b": 60.0, "figure 2a": 60.0}, shown) as show:
            with show("figure 1b") as update:
                if update is not None:
                    update(0.5)
            with show("figure 2a") as update:
                if update is not None:
                    update(0.0)
        said = caplog.messages
        caplog.clear()
        assert len(said) == len(lines)
        assert all(line.startswith(start) for line, start in zip(said, lines, strict=True))
