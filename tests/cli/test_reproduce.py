"""``banditree reproduce``: what it writes, what it keeps, how it goes on, and what it says when it cannot."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import banditree as bt
from banditree.cli import main as cli
from banditree.errors import BadFile, InvalidValue, MissingExtra
from banditree.paper import reproduce as runner
from banditree.paper.figures import DEFAULT, FIGURES
from banditree.paper.results import COLUMNS, load_results
from banditree.simulation.progress import tasks_bar
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from tests.support.helpers import to_be_stopped

QUICK = ["1b", "sine", "unstructured-regret"]  # one of each kind, none of them slow


def call(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli.application(), [*arguments])


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every (figure, variant) that is run, as it begins; the report is left out."""
    monkeypatch.setattr(runner, "write_report", lambda out, results, jobs: out / "report.html")
    variants: list[tuple[str, str]] = []

    def noted(figure: Any, variant: str, **options: Any) -> dict[str, Runs]:
        variants.append((figure.name, variant))
        return run(figure, variant, **options)

    run = runner.run
    monkeypatch.setattr(runner, "run", noted)
    return variants


def test_it_writes_pictures_results_claims_and_the_report(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = call("reproduce", *QUICK, "--seeds", "3", "--jobs", "1", "--out", str(out), "--variant", "1b:suboptimal")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(out / "report.html")
    for name in (*QUICK, "1b-suboptimal"):
        assert (out / f"{name}.png").stat().st_size > 10_000
        assert (out / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert json.loads((out / "claims.json").read_text(encoding="utf-8"))
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    results = rows(out)
    assert (
        tuple(results[0]) == COLUMNS == ("figure", "variant", "setting", "policy", "time", "seeds", "mean", "sd", "se")
    )
    assert {(row["figure"], row["variant"]) for row in results} == {
        ("1b", DEFAULT),
        ("1b", "suboptimal"),
        ("unstructured-regret", DEFAULT),
    }
    sweep = [row for row in results if row["figure"] == "1b" and row["variant"] == DEFAULT]
    assert [(row["setting"], row["policy"]) for row in sweep[:2]] == [("width=0", "TS"), ("width=0", "TSC")]
    assert len(sweep) == 9 * 3
    assert {row["time"] for row in sweep} == {"3000"}
    curves = [row for row in results if row["figure"] == "unstructured-regret"]
    assert {row["setting"] for row in curves} == {""}
    assert len({row["time"] for row in curves}) == 100
    assert {row["seeds"] for row in results} == {"3"}
    assert all(float(row["se"]) == pytest.approx(float(row["sd"]) / 3**0.5) for row in results)


def test_results_can_be_loaded_as_they_were(tmp_path: Path) -> None:
    runner.reproduce(["1b", "sine"], seeds=2, out=tmp_path, jobs=1)
    results = load_results(tmp_path)
    assert "1b" in results
    assert ("1b", DEFAULT) in results
    assert ("1b", "suboptimal") not in results
    assert results.runs("sine") == {}
    again = runner.run(FIGURES["1b"], seeds=2, jobs=1)
    assert list(results.runs("1b")) == list(again)
    for label, runs in results.runs("1b").items():
        assert runs.regret["TSC"].tolist() == again[label].regret["TSC"].tolist()
        assert runs.clusters["TSC"] == again[label].clusters["TSC"]
        assert runs.times.tolist() == [1500, 3000]
    assert results.rows == [*results.rows]
    assert results.kept["1b", DEFAULT].seconds > 0
    with pytest.raises(InvalidValue, match="figure '2a', variant 'default', is not in"):
        results.runs("2a")


def test_resume_runs_only_what_is_not_finished(tmp_path: Path, began: list[tuple[str, str]]) -> None:
    options = ["--seeds", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert call("reproduce", "1b", "unstructured-regret", *options).exit_code == 0
    before = (tmp_path / "results.csv").read_bytes()
    began.clear()
    assert call("reproduce", "1b", "unstructured-regret", *options, "--resume").exit_code == 0
    assert began == []
    assert (tmp_path / "results.csv").read_bytes() == before
    assert call("reproduce", "1b", "1a", *options, "--resume").exit_code == 0
    assert began == [("1a", DEFAULT)]
    assert {row["figure"] for row in rows(tmp_path)} == {"1a", "1b", "unstructured-regret"}
    began.clear()
    (tmp_path / "1b.svg").unlink()  # not all that a finished figure has
    assert call("reproduce", "1b", *options, "--resume").exit_code == 0
    assert began == [("1b", DEFAULT)]
    began.clear()
    assert call("reproduce", "1b", "--seeds", "3", "--out", str(tmp_path), "--resume").exit_code == 0
    assert began == [("1b", DEFAULT)]  # other seeds, other numbers
    began.clear()
    assert call("reproduce", "1b", "--seeds", "3", "--out", str(tmp_path)).exit_code == 0
    assert began == [("1b", DEFAULT)]
    assert {row["figure"] for row in rows(tmp_path)} == {"1a", "1b", "unstructured-regret"}  # the others are kept


def test_a_figure_run_again_leaves_its_own_variants_and_the_others_alone(
    tmp_path: Path, began: list[tuple[str, str]]
) -> None:
    options: dict[str, Any] = {"seeds": 2, "out": tmp_path, "jobs": 1}
    runner.reproduce(["1b", "unstructured-regret"], variants=["1b:suboptimal"], **options)
    before = load_results(tmp_path).kept
    began.clear()
    runner.reproduce(["1b"], **options)
    assert began == [("1b", DEFAULT)]
    after = load_results(tmp_path).kept
    assert list(after) == list(before) == [("1b", DEFAULT), ("1b", "suboptimal"), ("unstructured-regret", DEFAULT)]
    assert [key for key in after if after[key] != before[key]] == [("1b", DEFAULT)]  # its wall time


def test_jobs_reach_everything_that_is_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(*arguments: Any, **options: Any) -> Runs:
        asked.append(options["jobs"])
        return simulate(*arguments, **options)

    for module in (runner, import_module("banditree.paper.report")):  # a function has its name
        monkeypatch.setattr(module, "simulate", noted)
    runner.reproduce(["1a"], variants=["1a:suboptimal"], seeds=2, out=tmp_path, jobs=1)
    settings = len(FIGURES["1a"].settings())
    assert asked == [1] * (2 * settings + 1)  # both readings, and the theory


def test_an_interrupted_run_says_how_to_go_on_and_goes_on(
    tmp_path: Path, began: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = runner.run

    def stopped(figure: Any, variant: str, **options: Any) -> dict[str, Runs]:
        if figure.name == "unstructured-regret":
            raise KeyboardInterrupt
        return noted(figure, variant, **options)

    monkeypatch.setattr(runner, "run", stopped)
    options = ["--variant", "1b:suboptimal", "--seeds", "2", "--out", str(tmp_path), "--jobs", "1"]
    result = call("reproduce", *QUICK, *options)
    assert result.exit_code == 130
    assert "3 figures are finished" in result.stderr
    again = f"banditree reproduce {' '.join(QUICK)} {' '.join(options)} --resume"
    assert again in result.stderr
    monkeypatch.setattr(runner, "run", noted)
    began.clear()
    assert call(*again.split()[1:]).exit_code == 0
    assert began == [("unstructured-regret", DEFAULT)]
    monkeypatch.setattr(runner, "run", stopped)
    result = call("reproduce", "unstructured-regret", "--quick", "--out", str(tmp_path / "none"))
    assert "0 figures are finished" in result.stderr
    assert "--quick" in result.stderr


def test_ctrl_c_in_a_real_process(tmp_path: Path) -> None:
    arguments = ["reproduce", "1b", "1f", "--out", str(tmp_path)]
    with to_be_stopped("from banditree.cli.main import main; main()", *arguments, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 300
        while not (tmp_path / "runs" / "1b-default.json").exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "1 figure is finished and kept in" in said
    assert "Traceback" not in said
    assert list(load_results(tmp_path).kept) == [("1b", DEFAULT)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2x"], "there is no figure '2x'; there are 1a, 1b"),
        (["--variant", "1f:odd"], "figure 1f has no variant 'odd'"),
        (["1b", "--jobs", "0"], "jobs=0 must be"),
        (["1b", "--seeds", "0"], "--seeds"),
    ],
)
def test_mistakes_are_a_message_and_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = call("reproduce", *arguments, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()  # after an error nothing has changed


def test_a_folder_that_is_a_file_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    result = call("reproduce", "1b", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_damaged_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "1b-default.json").write_text("{", encoding="utf-8")
    with pytest.raises(BadFile, match=r"1b-default.json is damaged"):
        load_results(tmp_path)
    result = call("reproduce", "1b", "--out", str(tmp_path), "--resume")
    assert (result.exit_code, "1b-default.json is damaged" in result.stderr) == (2, True)


def test_list_shows_every_figure_and_variant() -> None:
    result = call("reproduce", "--list")
    assert result.exit_code == 0
    for name, figure in FIGURES.items():
        assert name in result.stdout
        assert all(f"{variant}: {meaning[:8]}" in result.stdout for variant, meaning in figure.options.items())


def test_version_and_help() -> None:
    assert call("--version").stdout.startswith(f"banditree {bt.__version__}, {bt.engine()} engine")
    described = call("--help").stdout
    assert all(command in described for command in ("reproduce", "inspect", "simulate", "advise"))
    options = call("reproduce", "--help").stdout
    assert all(f"--{name}" in options for name in ("list", "quick", "seeds", "out", "jobs", "resume", "variant"))


def test_main_turns_our_errors_into_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(MissingExtra):
        cli.application()
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    how = "pip install '.[cli]' in the folder of banditree's source"
    assert capsys.readouterr().err == f"Error: the command line needs Typer and Rich: {how}\n"


def test_the_installed_script_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from banditree.cli.main import main; main()", "reproduce", "2x"],
        capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("Error: there is no figure '2x'")


def test_the_bar_shows_figure_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with tasks_bar({"figure 1b": 4.0, "figure 2a-global": 6.0}, True) as show:
        with show("figure 1b") as progress:
            assert progress is not None
            progress(0.25)
        with show("figure 2a-global") as progress:
            assert progress is not None
            progress(0.2)
            progress(0.5)
            painted, deadline = "", time.monotonic() + 60
            while "70%" not in painted and time.monotonic() < deadline:  # painted by a thread of its own
                time.sleep(0.05)
                painted += capsys.readouterr().err
    assert "figure 1b" in painted
    assert "figure 2a-global" in painted
    assert "40%" in painted  # 4 of 10 seconds
    assert "70%" in painted  # and half of 6
    assert "-:--:--" in painted  # the time left, once it can be told


def test_no_bar_where_there_is_no_terminal_and_none_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    caplog.set_level("INFO", "banditree")
    with tasks_bar({"figure 1b": 4.0}, None) as show, show("figure 1b") as progress:
        assert progress is not None
        progress(0.5)
    assert not caplog.text  # work of seconds says nothing
    with tasks_bar({"figure 1b": 400.0}, None):
        pass
    assert "figure 1b" in caplog.text  # work of minutes says so before it starts
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with tasks_bar({"figure 1b": 4.0}, None) as show, show("figure 1b") as progress:
        assert progress is None
    with pytest.raises(MissingExtra, match="a progress bar needs Rich"), tasks_bar({"figure 1b": 4.0}, True):
        pass
    assert capsys.readouterr().err == ""


def test_a_watched_run_has_the_same_numbers(tmp_path: Path) -> None:
    for progress in (True, False):
        runner.reproduce(["unstructured-regret"], seeds=2, out=tmp_path / str(progress), jobs=1, progress=progress)
    assert (tmp_path / "True" / "results.csv").read_bytes() == (tmp_path / "False" / "results.csv").read_bytes()
