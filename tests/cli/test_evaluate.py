"""banditree evaluate, as a new user types it: from a log that `decide` wrote to a verdict, and what goes wrong."""

from __future__ import annotations

import csv
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import banditree as bt
from banditree import ope
from banditree.catalogue import write_example
from banditree.cli.main import application

TREE = bt.Tree({"shoes": ["s1", "s2", "s3"], "hats": ["h1", "h2"], "bags": ["b1"]})
MEANS = {"s1": 0.05, "s2": 0.1, "s3": 0.05, "h1": 0.4, "h2": 0.3, "b1": 0.1}
COLUMNS: dict[str, Any] = {"arm": "item", "reward": "click", "propensity": "pscore"}
OPTIONS = ["--arm", "item", "--reward", "click", "--propensity", "pscore", "--path", "kind"]


def call(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(application(), [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A log of decisions with their propensities, the last rewards still to come, and the items."""
    policy = bt.TS(TREE, explore=0.5, rng=1)
    rng = np.random.default_rng(2)
    log, items = tmp_path / "log.csv", tmp_path / "items.csv"
    with log.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at", "item", "pscore", "click"])
        for step in range(2000):
            decision = policy.decide()
            click = "" if step >= 1990 else int(rng.random() < MEANS[str(decision.arm)])
            writer.writerow([step, decision.arm, decision.propensity, click])
    with items.open("w", newline="") as file:
        csv.writer(file).writerows([["item", "kind"], *([arm, TREE.path(arm)[0]] for arm in TREE.arms)])
    return log, items


def test_from_a_log_of_decide_to_a_verdict(files: tuple[Path, Path]) -> None:
    log, items = files
    result = call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TSC,TS", "--time", "at")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^TSC? is better than the logging policy: 0\.\d+ per decision against 0\.\d+", result.stdout)
    assert "Learned from 995 rows, evaluated on 995 rows (by dr)." in result.stdout
    assert "logging policy" in result.stdout
    assert "10 rows without a reward yet: left out" in result.stdout
    quiet = call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TSC,TS", "--time", "at", "--quiet")
    assert " ".join(quiet.stdout.split()).endswith("(dr).")


def test_json_has_every_estimate(files: tuple[Path, Path]) -> None:
    log, items = files
    answer = json.loads(call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TSC,TS", "--json").stdout)
    assert set(answer["policies"]) == {"TSC", "TS"}
    assert set(answer["policies"]["TS"]) == set(ope.ESTIMATORS)
    assert answer["policies"]["TS"]["dm"]["se"] is None
    assert answer["policies"]["TS"]["dr"]["value"] > answer["logging"]["value"]
    assert answer["verdict"] in answer["verdicts"].values()


def test_the_command_says_what_python_says(files: tuple[Path, Path]) -> None:
    log, items = files
    answer = json.loads(call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TSC", "--json").stdout)
    first, rest = bt.read_log(log, arm="item", reward="click", propensity="pscore").split(0.5)
    policy = bt.TSC(TREE, rng=0)
    policy.learn(first)
    result = bt.evaluate(rest, policy)
    assert answer["policies"]["TSC"]["snips"]["value"] == pytest.approx(result["snips"].value)
    assert answer["policies"]["TSC"]["mips"]["se"] == pytest.approx(result["mips"].se)


class Pictures(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.alts: list[str] = []
        self.others: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("role") == "img":
            self.alts.append(given["aria-label"] or "")
        if tag in ("script", "link", "iframe"):
            self.others.append(tag)


def test_the_page_has_intervals_weights_and_support(files: tuple[Path, Path], tmp_path: Path) -> None:
    log, items = files
    page = tmp_path / "page.html"
    result = call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TSC,TS", "--html", page)
    assert result.exit_code == 0, result.stderr
    assert "Wrote" in result.stderr
    seen = Pictures()
    seen.feed(page.read_text(encoding="utf-8"))
    assert seen.others == []
    for name in ("TSC", "TS"):
        for words in (f"estimates for {name}", f"weights of {name}", f"Support of {name}"):
            assert any(words in alt for alt in seen.alts), words
    alone = bt.evaluate(bt.read_log(log, arm="item", reward="click", propensity="pscore"), bt.TS(TREE, rng=0))
    assert alone.verdict.split(":")[0] in alone.to_html(title="<b>")
    assert "<b>" not in alone.to_html(title="<b>")


def test_names_in_a_log_are_text_on_the_page(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    table = {"a": [bad, "b"] * 50, "r": [0, 1] * 50, "p": [0.5] * 100}
    result = bt.evaluate(bt.read_log(table, arm="a", reward="r", propensity="p"), {bad: 0.5, "b": 0.3, "<i>c": 0.2})
    seen = Pictures()
    seen.feed(result.to_html())
    assert seen.others == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--propensity", "score"], "no such column; did you mean 'pscore'?"),
        (["--arm", "product"], "no such column"),
        (["--items", "missing.csv"], "does not exist"),
        (["--policy", "BEST"], "must be one of"),
        (["--policy", "LinTS"], "needs contexts; name their columns as --context"),
        (["--share", "2"], "0.99"),
        (["--html", "LOG"], "it is the input file"),
    ],
)
def test_wrong_inputs_are_a_sentence(files: tuple[Path, Path], change: list[str], words: str) -> None:
    log, items = files
    change = [str(log) if argument == "LOG" else argument for argument in change]
    result = call("evaluate", log, *OPTIONS, "--items", items, *change)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_log_without_propensities_says_what_to_log(files: tuple[Path, Path]) -> None:
    log, items = files
    options = ["--arm", "item", "--reward", "click", "--items", str(items), "--path", "kind", "--policy", "TS"]
    result = call("evaluate", log, *options)
    assert result.exit_code == 2
    assert "policy.decide().propensity" in result.stderr
    estimated = call("evaluate", log, *options, "--propensity", "estimated")
    assert estimated.exit_code == 0, estimated.stderr
    assert "propensities are estimated" in " ".join(estimated.stdout.split())


def test_an_arm_that_is_not_among_the_items(files: tuple[Path, Path]) -> None:
    log, items = files
    items.write_text("item,kind\ns1,shoes\nh1,hats\n")
    result = call("evaluate", log, *OPTIONS, "--items", items, "--policy", "TS")
    assert result.exit_code == 2
    assert "4 arms of the log" in result.stderr


def test_without_items_the_arms_are_flat(files: tuple[Path, Path]) -> None:
    log, _ = files
    options = ["--arm", "item", "--reward", "click", "--propensity", "pscore", "--policy", "TS", "--json"]
    answer = json.loads(call("evaluate", log, *options).stdout)
    assert "mips" not in answer["policies"]["TS"]
    assert any("flat" in note for note in answer["notes"])
    default = call("evaluate", log, *options[:-3])
    assert default.exit_code == 0, default.stderr
    assert "TSC " not in default.stdout  # it would be TS under another name
    assert "left out: TSC; the arms have no categories" in " ".join(default.stdout.split())
    assert "no categories; give them as --items" in " ".join(call("evaluate", log, *options[:-2], "TSC").stderr.split())
    assert "give their file as --items" in call("evaluate", log, *options, "--path", "kind").stderr


def test_rewards_that_are_not_rates_and_contexts(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 1000
    arms, x = rng.integers(3, size=n), rng.random(n)
    rows = zip(arms, 20 + 5 * arms * x + rng.standard_normal(n), [1 / 3] * n, x, strict=True)
    log = tmp_path / "log.csv"
    with log.open("w", newline="") as file:
        csv.writer(file).writerows([["item", "paid", "p", "x"], *rows])
    options = ["--arm", "item", "--reward", "paid", "--propensity", "p", "--context", "x", "--policy", "TS,LinTS"]
    answer = json.loads(call("evaluate", log, *options, "--json").stdout)
    assert answer["policies"]["TS"]["dr"]["value"] > 23  # the last arm earns 25, all of them 22.5
    assert answer["policies"]["LinTS"]["dr"]["value"] > 23
    refused = call("evaluate", log, *options[:-1], "UCB1")
    assert "takes rewards from 0 to 1" in refused.stderr


def test_the_examples_are_real_logs(tmp_path: Path) -> None:
    write_example(tmp_path / "items.csv")
    for policy, name in (("random", "a.csv"), ("thompson", "b.csv.gz")):
        result = call("example", tmp_path / name, "--log", policy)
        assert result.exit_code == 0
        assert "banditree evaluate" in result.stdout
        log = bt.read_log(tmp_path / name, arm="item", reward="click", propensity="propensity", time="timestamp")
        assert (len(log), len(log.ids)) == (10_000, 80)
    assert call("example", tmp_path / "c.txt", "--log", "random").exit_code == 2
    assert "must be one of 'random', 'thompson'" in call("example", tmp_path / "c.csv", "--log", "other").stderr
    (tmp_path / "a.csv").write_text("mine")
    assert "already exists" in call("example", tmp_path / "a.csv", "--log", "random").stderr


def test_a_catalogue_from_a_log() -> None:
    table = {"a": ["s1", "h1", "s1"], "r": [1, 0, 0]}
    catalogue = bt.read_catalogue(bt.read_log(table, arm="a", reward="r"), tree=TREE)
    assert catalogue.plays is not None
    assert catalogue.successes is not None
    assert dict(zip(TREE.arms, catalogue.plays.tolist(), strict=True))["s1"] == 2
    assert catalogue.successes.sum() == 1
    paid = bt.read_log({"a": ["s1", "h1", "s1"], "r": [10, 4, 14]}, arm="a", reward="r")
    catalogue = bt.read_catalogue(paid, tree=TREE)
    assert catalogue.reward_mean is not None
    assert catalogue.reward_sd is not None
    assert (catalogue.reward_mean[0], catalogue.reward_sd[0]) == (12, pytest.approx(np.sqrt(8)))
    with pytest.raises(bt.errors.InvalidType, match="give the tree of its arms"):
        bt.read_catalogue(paid)
    with pytest.raises(bt.errors.InvalidType, match="name the column of the items"):
        bt.read_catalogue(table)


def service_log(path: Path, n: int = 1500) -> None:
    """A log as `banditree serve` writes it: a policy that learns, paths, slates, limits, withdrawn rows."""
    policy, rng = bt.ATS(TREE, explore=0.3, rng=5), np.random.default_rng(6)
    header = ["id", "at", "arm", "propensity", "reward", "path", "steps", "arms", "rewards", "shown", "withdrawn"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*header, "only", "exclude", "policy"])
        for step in range(n):
            decision = policy.decide()
            reward = int(rng.random() < MEANS[str(decision.arm)])
            policy.update(decision.arm, reward)
            at = f"2026-01-01T{step // 60:02d}:{step % 60:02d}:00.000Z"
            row = [step, at, decision.arm, decision.propensity, reward, json.dumps(decision.path), "[]"]
            row += [json.dumps([decision.arm]), json.dumps([reward]), decision.arm, "true" if step == 3 else "false"]
            writer.writerow([*row, '["s1"]' if step == 4 else "", "[]" if step == 5 else "", "ATS"])


def test_what_the_service_wrote_needs_no_column_named(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    service_log(log, 1400)
    result = call("evaluate", log)
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "1 row withdrawn before it was shown: left out" in words
    assert "1 row limited by 'only': left out" in words
    assert "a learning policy wrote this log" in words
    assert "behaviour=" not in words
    answer = json.loads(call("evaluate", log, "--json").stdout)
    assert set(answer["policies"]) == {"ATS", "TSC", "TS"}
    assert answer["policies"]["TSC"] != answer["policies"]["TS"]
    read = bt.read_log(log)
    assert read.tree is not None
    assert {arm: read.tree.path(arm) for arm in read.tree.arms} == {arm: TREE.path(arm) for arm in read.tree.arms}
    assert (len(read), read.learned_online) == (1398, True)
    plain = json.loads(call("evaluate", log, "--not-adaptive", "--json").stdout)
    assert plain["policies"]["TS"]["dr"] != answer["policies"]["TS"]["dr"]
    assert any("use --adaptive" in note for note in plain["notes"])
    with_items = tmp_path / "items.csv"
    with with_items.open("w", newline="") as file:
        csv.writer(file).writerows([["item", "kind"], *([arm, TREE.path(arm)[0]] for arm in TREE.arms)])
    assert call("evaluate", log, "--items", with_items, "--arm", "item", "--path", "kind").exit_code == 0


def test_many_files_are_summed_by_duckdb(files: tuple[Path, Path], tmp_path: Path) -> None:
    log, items = files
    frame = pd.read_csv(log)
    for at, name in enumerate(("a", "b")):
        (tmp_path / "parts" / f"day={at}").mkdir(parents=True)
        frame.iloc[at::2].to_csv(tmp_path / "parts" / f"day={at}" / f"{name}.csv.gz", index=False)
    options: list[str | Path] = [*OPTIONS, "--items", items, "--time", "at", "--policy", "TSC"]
    sources: list[list[str | Path]] = [[tmp_path / "parts" / "*" / "*.csv.gz"], [log, "--engine", "duckdb"]]
    found = [call("evaluate", *source, *options, "--fold", "at", "--json") for source in sources]
    for result in found:
        assert result.exit_code == 0, result.stderr
    first, other = (json.loads(result.stdout) for result in found)
    assert first["rows"] == {"learned": 995, "evaluated": 995}
    value = first["policies"]["TSC"]["dr"]["value"]
    assert other["policies"]["TSC"]["dr"]["value"] == pytest.approx(value, rel=1e-9)
    assert other["verdict"] == first["verdict"]
    known = ope.contest({"TSC": bt.TSC}, bt.read_log(log, **COLUMNS, time="at", fold="at"), tree=TREE)
    assert known.evaluations["TSC"]["dr"].value == pytest.approx(value, abs=0.02)
    page = tmp_path / "page.html"
    result = call("evaluate", tmp_path / "parts", *OPTIONS, "--items", items, "--target", "uniform", "--html", page)
    assert result.exit_code == 0, result.stderr
    assert "left out: dm, dr, sndr, switch-dr, dros and offcem, which need folds" in " ".join(result.stdout.split())
    assert "--fold" in result.stdout
    assert page.stat().st_size > 10_000
    wrong: list[tuple[list[str | Path], str]] = [
        ([tmp_path / "none*.csv", *options], "DuckDB cannot read"),
        ([tmp_path / "parts", *OPTIONS, "--items", items], "no order; name the column of their times"),
        ([log, *options, "--engine", "oracle"], "--engine='oracle' must be one of 'auto', 'duckdb', 'memory'"),
        ([tmp_path / "parts", *options, "--policy", "LinATS", "--context", "day"], "--context looks at single rows"),
    ]
    replayed = call("replay", tmp_path / "parts", *OPTIONS, "--items", items)
    assert (replayed.exit_code, "replay looks at single rows" in replayed.stderr) == (2, True)
    for arguments, words in wrong:
        result = call("evaluate", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_log_that_is_not_the_services_needs_its_columns(files: tuple[Path, Path]) -> None:
    result = call("evaluate", files[0])
    assert result.exit_code == 2
    assert "name the columns: --arm, --reward and --propensity" in " ".join(result.stderr.split())
    with pytest.raises(bt.errors.InvalidType, match=r"arm=.*lacks arm, propensity, reward, path"):
        bt.read_log(files[0])


def test_fixed_targets_are_evaluated_on_all_rows(files: tuple[Path, Path]) -> None:
    log, items = files
    options = [*OPTIONS, "--items", str(items), "--target", "uniform,item:h1"]
    answer = json.loads(call("evaluate", log, *options, "--json").stdout)
    assert set(answer["policies"]) == {"uniform", "always h1"}
    assert answer["rows"] == {"learned": 0, "evaluated": 1990}
    value = answer["policies"]["always h1"]["dr"]
    assert abs(value["value"] - MEANS["h1"]) < 4 * value["se"]
    assert "better" in answer["verdicts"]["always h1"]
    both = json.loads(call("evaluate", log, *options, "--policy", "TS", "--json").stdout)
    assert set(both["policies"]) == {"TS", "uniform", "always h1"}
    assert "'uniform', or 'item:ID'" in " ".join(call("evaluate", log, *options[:-1], "best").stderr.split())
    assert "not an arm" in call("evaluate", log, *options[:-1], "item:nothing").stderr


def test_replay_is_a_command(files: tuple[Path, Path], tmp_path: Path) -> None:
    log, items = files
    options = [*OPTIONS, "--items", str(items), "--policy", "TSC,TS", "--orders", "2"]
    answer = json.loads(call("replay", log, *options, "--json").stdout)
    assert answer["orders"] == 2
    read = bt.read_log(log, arm="item", reward="click", propensity="pscore")
    table = bt.replay([bt.TSC, bt.TS], read, tree=TREE, orders=2)
    assert {name: row["reward"] for name, row in answer["policies"].items()} == {r.policy: r.reward for r in table}
    page = tmp_path / "replay.html"
    shown = call("replay", log, *options, "--html", page)
    assert shown.exit_code == 0, shown.stderr
    assert "per accepted row" in shown.stdout
    assert "Mean reward of each policy" in page.read_text(encoding="utf-8")


def test_contexts_bring_linats_and_a_sentence_on_whether_they_pay(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    n = 3000
    arms, device, age = rng.integers(4, size=n), rng.choice(["phone", "desktop"], n), rng.integers(18, 90, n)
    clicks = (rng.random(n) < 0.1 + 0.4 * ((arms < 2) == (device == "phone"))).astype(int)
    log = tmp_path / "log.csv"
    with log.open("w", newline="") as file:
        rows = zip(arms, clicks, [0.25] * n, device, age, strict=True)
        csv.writer(file).writerows([["item", "click", "p", "device", "age"], *rows])
    options = ["--arm", "item", "--reward", "click", "--propensity", "p", "--context", "device,age"]
    shown = call("evaluate", log, *options)
    assert shown.exit_code == 0, shown.stderr
    assert "Knowing who asks pays: LinATS would earn" in " ".join(shown.stdout.split())
    answer = json.loads(call("evaluate", log, *options, "--json").stdout)
    assert set(answer["policies"]) == {"LinATS", "ATS", "TS"}
    assert answer["policies"]["LinATS"]["dr"]["value"] > answer["policies"]["ATS"]["dr"]["value"]
