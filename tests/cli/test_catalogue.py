"""The commands of a catalogue, as a new user types them, and the page they write."""

from __future__ import annotations

import errno
import html
import html.parser
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from banditree import plots
from banditree.catalogue import Catalogue, advise, inspect, read_catalogue, simulate
from banditree.cli import main as cli
from banditree.errors import Interrupted, MissingExtra
from banditree.plots.files import svg
from banditree.policy.engines import engine
from banditree.simulation.runs import Runs
from banditree.tree import Tree
from tools.pages import catalogue as make_catalogue

COUNTS = ["--arm", "item", "--path", "category,subcategory", "--plays", "plays", "--successes", "clicks"]
QUICK = [*COUNTS, "--horizon", "300", "--seeds", "4", "--jobs", "2"]


def call(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(cli.application(), [str(argument) for argument in arguments])


@pytest.fixture
def items(tmp_path: Path) -> Path:
    result = call("example", tmp_path / "items.csv")
    assert result.exit_code == 0
    assert "banditree inspect" in result.stdout
    return tmp_path / "items.csv"


def test_inspect_shows_the_tree_and_its_quality(items: Path) -> None:
    result = call("inspect", items, *COUNTS)
    assert result.exit_code == 0
    for words in ("category-0 (19 arms)", "share of variance", "w*", "Strong dominance", "The best arms"):
        assert words in result.stdout
    assert "... 11 more" in result.stdout  # of 21 subcategories


def test_inspect_for_machines_and_for_the_hurried(items: Path) -> None:
    answer = json.loads(call("inspect", items, *COUNTS, "--json").stdout)
    assert (answer["arms"], answer["clusters"], answer["depth"]) == (80, 28, 2)
    assert [level["clusters"] for level in answer["levels"]] == [7, 21]
    assert answer["dominance"] is False
    assert answer["gamma"]["value"] is None  # infinite: dominance fails
    assert len(call("inspect", items, *COUNTS, "--quiet").stdout) < len(call("inspect", items, *COUNTS).stdout) / 2


def test_a_catalogue_of_many_files_is_read_by_duckdb(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        rows = "".join(f"0{at % 4},0{at % 2},{int(at % 3 == 0)}\n" for at in range(200))
        (tmp_path / f"day={day}" / "log.csv").write_text(f"item,kind,click\n{rows}")
    names = ["--arm", "item", "--path", "kind", "--reward", "click"]
    found = json.loads(call("inspect", tmp_path / "day=*" / "*.csv", *names, "--json").stdout)
    assert (found["arms"], found["clusters"], found["plays"], found["successes"]) == (4, 2, 400, 134)
    assert {(row["arm"], *row["path"]) for row in found["top"]} == {(f"0{at}", f"0{at % 2}") for at in range(4)}


def test_simulate_shows_regret_and_traffic_and_writes_files(items: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture, runs = tmp_path / "regret.png", tmp_path / "runs.csv"
    result = call("simulate", items, *QUICK, "--policy", "TS,HTS:1", "--plot", picture, "--save", runs)
    assert result.exit_code == 0
    assert "HTS(depth=1)" in result.stdout
    assert "Traffic by category" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(pd.read_csv(runs).columns[:4]) == ["policy", "seed", "time", "regret"]
    assert "Wrote" in result.stderr
    answer = json.loads(call("simulate", items, *QUICK, "--json").stdout)
    assert {row["policy"] for row in answer["policies"]} == {"TS", "TSC", "HTS(depth=2)", "UCT", "ATS"}
    assert len(call("simulate", items, *QUICK, "--quiet").stdout.splitlines()) == 6
    assert "Curves: add --plot" not in result.stdout
    assert call("simulate", items, *QUICK).stdout.endswith("Curves: add --plot regret.png\n")


@pytest.mark.parametrize(
    ("command", "option", "file", "words"),
    [
        ("simulate", "--plot", "regret.nonsense", ".png, .svg, .pdf"),
        ("simulate", "--plot", "nowhere/regret.png", "there is no folder"),
        ("simulate", "--save", "nowhere/runs.csv", "there is no folder"),
        ("simulate", "--save", ".", "it is a folder"),
        ("advise", "--html", "nowhere/advice.html", "there is no folder"),
        ("simulate", "--html", "nowhere/page.html", "there is no folder"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_the_run(
    command: str, option: str, file: str, words: str, items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"banditree.cli.catalogue.{command}", lambda *_, **__: pytest.fail("it ran"))
    result = call(command, items, *QUICK, option, tmp_path / file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_every_command_writes_its_page(items: Path, tmp_path: Path) -> None:
    for command, options in (("inspect", COUNTS), ("simulate", QUICK), ("advise", QUICK)):
        file = tmp_path / f"{command}.html"
        result = call(command, items, *options, "--html", file)
        assert (result.exit_code, f"Wrote {file}" in result.stderr.replace("\n", "")) == (0, True)
        assert "<title>items.csv: " in file.read_text(encoding="utf-8")
        assert "Curves: add" not in result.stdout


@pytest.mark.parametrize(("extra", "words"), [("jinja2", "'.[pages]'"), ("matplotlib", "'.[plot]'")])
def test_a_page_without_its_extras_is_refused_before_the_run(
    extra: str, words: str, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    monkeypatch.setattr("banditree.cli.catalogue.advise", lambda *_, **__: pytest.fail("it ran"))
    result = call("advise", items, *QUICK, "--html", items.with_name("advice.html"))
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_a_picture_without_matplotlib_is_refused_before_the_run(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("banditree.cli.catalogue.simulate", lambda *_, **__: pytest.fail("it ran"))
    result = call("simulate", items, *QUICK, "--plot", items.with_name("regret.png"))
    assert (result.exit_code, "pip install '.[plot]'" in result.stderr) == (2, True)


def test_results_are_shown_even_if_a_file_fails(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("banditree.cli.options.write_whole", full)
    result = call("advise", items, *QUICK, "--html", items.with_name("advice.html"))
    assert (result.exit_code, "no space left" in result.stderr) == (2, True)
    assert "In Python: bt." in result.stdout
    assert "Wrote" not in result.stderr


def test_advise_answers_in_words_in_json_and_as_a_page(items: Path, tmp_path: Path) -> None:
    target = tmp_path / "advice.html"
    result = call("advise", items, *QUICK, "--html", target)
    assert result.exit_code == 0
    assert "What the categories explain" in result.stdout
    assert "In Python: bt." in result.stdout
    assert "items.csv" in target.read_text(encoding="utf-8")
    answer = json.loads(call("advise", items, *QUICK, "--json").stdout)
    read = read_catalogue(items, arm="item", path=["category", "subcategory"], plays="plays", successes="clicks")
    same = advise(read, horizon=300, seeds=4)
    assert (answer["policy"], answer["verdict"], answer["code"]) == (same.policy, same.verdict, same.code)
    assert call("advise", items, *QUICK, "--quiet").stdout.strip() == same.name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "nowhere.csv", *COUNTS], "does not exist"),
        (["inspect", "{items}", "--arm", "items", *COUNTS[2:]], "did you mean 'item'"),
        (
            ["inspect", "{items}", *COUNTS[:4]],
            "--plays and --successes, or --mean, or --plays with --reward-mean and --reward-sd, or --reward",
        ),
        (
            ["inspect", "{items}", *COUNTS[:6]],
            "--plays and --successes, or --mean, or --plays with --reward-mean and --reward-sd, or --reward",
        ),
        (
            ["inspect", "{items}", *COUNTS, "--mean", "plays"],
            "--plays and --successes, or --mean, or --plays with --reward-mean and --reward-sd, or --reward",
        ),
        (["inspect", "{items}"], "--arm"),
        (["simulate", "{items}", *COUNTS], "--horizon"),
        (["simulate", "{items}", *COUNTS, "--horizon", "0"], "--horizon"),
        (["simulate", "{items}", *QUICK, "--policy", "LinTS"], "LinTS"),
        (["advise", "{items}", *QUICK, "--html", "no/such/folder/advice.html"], "no/such/folder"),
        (["example", "--campaign", "kids"], "kids"),
        (["example", "no/such/folder/items.csv"], "no/such/folder"),
    ],
)
def test_mistakes_are_sentences_and_exit_code_2(arguments: list[str], words: str, items: Path) -> None:
    result = call(*(str(items) if argument == "{items}" else argument for argument in arguments))
    assert result.exit_code == 2
    assert words in re.sub(r"[│\s]+", " ", re.sub(r"\x1b\[[\d;]*m", "", result.stderr))
    assert result.stdout == ""
    assert "Traceback" not in result.output


def test_every_command_has_help() -> None:
    for command in ("inspect", "simulate", "advise", "example"):
        result = call(command, "--help")
        assert result.exit_code == 0
        assert "--quiet" in result.stdout


def test_ctrl_c_is_no_traceback(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Interrupted("Stopped with 0 of 4 seeds finished")

    monkeypatch.setattr("banditree.cli.catalogue.simulate", stopped)
    result = call("simulate", items, *QUICK)
    assert (result.exit_code, "Stopped" in result.stderr) == (130, True)


def test_ctrl_c_saves_the_runs_that_are_finished(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = simulate(shop(), horizon=20, seeds=2).runs

    def stopped(*_: object, **__: object) -> None:
        stop = Interrupted("Stopped with 2 of 4 seeds finished")
        stop.runs = finished
        raise stop

    monkeypatch.setattr("banditree.cli.catalogue.simulate", stopped)
    file = items.with_name("runs.npz")
    result = call("simulate", items, *QUICK, "--save", file)
    assert (result.exit_code, "2 of 4 seeds" in result.stderr) == (130, True)
    assert Runs.load(file).seeds == finished.seeds


def test_a_reader_that_leaves_is_no_mistake(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("banditree.cli.catalogue.inspect", closed)
    result = call("inspect", items, *COUNTS)
    assert (result.exit_code, result.stderr) == (1, "")  # Typer's own answer to a pipe that closes


def test_known_means_say_plainly_where_the_best_arm_is(tmp_path: Path) -> None:
    table = tmp_path / "means.csv"
    table.write_text("item,kind,rate\na,x,0.1\nb,x,0.2\nc,y,0.5\nd,y,0.6\n", encoding="utf-8")
    result = call("inspect", table, "--arm", "item", "--path", "kind", "--mean", "rate")
    ends = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines() if line[:2] in ("x ", "y ")}
    assert ends == {"y": "yes", "x": "no"}
    text = advise(shop(), horizon=50, seeds=4).to_html()
    assert ">yes</td>" in text
    assert "over 99%</td></tr>" not in text


def test_the_script_itself(items: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from banditree.cli.main import main; main()",
        "inspect",
        os.fspath(items),
        *COUNTS,
        "-q",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "80 arms" in done.stdout


# The page


class Reader(html.parser.HTMLParser):
    """Checks that tags close in order, and keeps what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass


def shop() -> Catalogue:
    """Names that a page must not take for markup, a note, and arms in the wrong place."""
    tree = Tree({"<b>x</b>": [f"a{i}" for i in range(20)], "y & z": [f"b{i}" for i in range(20)]})
    means = np.repeat([0.1, 0.5], 20) + np.tile([0.0, 0.01, 0.02, 0.03], 10)
    means[7] = 0.5
    return Catalogue(tree, means=means, notes=["something was mended"])


def stands_alone(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.fetched == []
    assert "<script" not in text
    assert "<b>x</b>" not in text


def test_an_inspection_and_a_simulation_are_pages_too() -> None:
    inspected = inspect(shop()).to_html(title="<shop>")
    stands_alone(inspected)
    for words in ("&lt;shop&gt;", "y &amp; z", "something was mended", "share of variance", "The tree", "a7"):
        assert words in inspected
    simulated = simulate(shop(), horizon=100, seeds=3).to_html(title="<shop>")
    stands_alone(simulated)
    for words in ("&lt;shop&gt;", "100 decisions, 3 seeds", "Traffic by category", "<svg", "runs above"):
        assert words in simulated


def test_advice_in_a_notebook_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    advice = advise(shop(), horizon=50, seeds=4)
    for extra in ("jinja2", "matplotlib", "rich"):
        monkeypatch.setitem(sys.modules, extra, None)
    text = advice._repr_html_()
    stands_alone(text)
    assert advice.code in text
    assert all(html.escape(line) in text for line in advice.sentences)
    with pytest.raises(MissingExtra, match="pages need Jinja2"):
        inspect(shop()).to_html()


def test_names_never_become_markup_in_curves() -> None:
    """Policies have names of ours here, but a picture is put into the page as it is: it must be escaped by itself."""
    runs = simulate(shop(), horizon=20, seeds=2, policies=["TS"]).runs.rename({"TS": "<img src=x onerror=y> $a"})
    drawn = svg(plots.regret(runs, ax=plots.sheet()))
    assert "<img" not in drawn
    assert "&lt;img src=x" in drawn
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", drawn)


def test_the_page_is_whole_and_stands_alone() -> None:
    text = advise(shop(), horizon=200, seeds=4).to_html(title="<shop>")
    stands_alone(text)
    for words in (
        "&lt;shop&gt;",
        "&lt;b&gt;x",
        "y &amp; z",
        "<svg",
        "something was mended",
    ):
        assert words in text


def test_the_curves_of_the_page_look_like_those_of_pictures() -> None:
    advice = advise(shop(), horizon=50, seeds=4, policies=["TS", "TSC", "UCT"])
    text = advice.to_html()
    for look in plots.looks(advice.table["policy"]).values():
        assert f"stroke: {look.color.lower()}" in text  # the line
        assert f"fill: {look.color.lower()}; fill-opacity: 0.13" in text  # its band
    assert "mean ± 1 sd, 4 seeds" in text  # what the band is


def test_a_page_of_a_large_tree_stays_short() -> None:
    tree = Tree.from_paths([(f"c{i % 40}", f"s{i % 400}", i) for i in range(8000)])
    rng = np.random.default_rng(0)
    advice = advise(Catalogue(tree, means=rng.random(8000)), horizon=20, seeds=4, policies=["TSC"])
    text = advice.to_html()
    assert len(text) < 300_000
    assert "more</span></li>" in text
    assert "... 20 more</td>" in text  # of 40 categories


def test_text_shows_notes_and_large_tables() -> None:
    text = inspect(shop()).to_text(width=120)
    for words in ("something was mended.", "<b>x</b>", "a7"):
        assert words in text
    wide = Tree.from_paths([(f"[bold]{i}", i) for i in range(30)])
    assert "more" in str(simulate(Catalogue(wide, means=[0.1] * 30), horizon=10, policies=["TS"], seeds=2))


# The guide


def outputs(text: str) -> list[tuple[list[str], list[str], dict[str, float]]]:
    """Of each console block: its commands, its words with every number as #, and the regret of each policy."""
    sections = []
    for block in make_catalogue.CONSOLE.finditer(text):
        lines = block[1].splitlines()
        words = [re.sub(r"\d[\d.,]*", "#", " ".join(line.split())) for line in lines if not line.startswith("$")]
        rows = re.findall(r"^(TS|TSC|HTS\(depth=2\)|UCT) +([\d.]+) ", block[1], re.MULTILINE)
        sections.append(([line for line in lines if line.startswith("$")], words, {name: float(n) for name, n in rows}))
    return sections


@pytest.mark.skipif(engine() != "native", reason="minutes on the readable engine")
def test_the_guide_shows_what_the_commands_print() -> None:
    """The same words, and regret within noise: another machine or a faster engine may draw otherwise."""
    written, now = outputs(make_catalogue.TARGET.read_text(encoding="utf-8")), outputs(make_catalogue.text())
    assert len(written) == 4
    for (commands, words, regret), (commands_now, words_now, regret_now) in zip(written, now, strict=True):
        stale = "run: python -m tools.pages.catalogue"
        assert (commands, words) == (commands_now, words_now), stale
        assert regret == pytest.approx(regret_now, rel=0.25), stale  # five standard errors of 20 seeds
    assert [len(regret) for _, _, regret in written] == [0, 0, 4, 3]
