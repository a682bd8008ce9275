"""What commands write and where: never over their input, in any encoding, and nothing asked for is passed over."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from banditree.catalogue import write_example
from banditree.cli import main as cli
from banditree.errors import InvalidValue
from tests.support.helpers import HEED_CTRL_C

COUNTS = ["--arm", "item", "--path", "category", "--plays", "plays", "--successes", "clicks"]
QUICK = [*COUNTS, "--horizon", "30", "--seeds", "4"]


def call(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "300"}).invoke(cli.application(), [str(argument) for argument in arguments])


SCRIPT = """
import json, sys
from banditree.cli.main import main
for arguments in json.loads(sys.argv.pop()):
    sys.argv[1:] = arguments
    try:
        main()
        code = 0
    except SystemExit as stopped:
        code = stopped.code or 0
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        stream.buffer.write(b"\\0%d\\0" % code)
"""


def scripts(*commands: Sequence[str | Path], encoding: str) -> list[tuple[int, bytes, bytes]]:
    """The exit code, output and errors of commands, one after the other in a process whose output is a file."""
    command = [sys.executable, "-c", SCRIPT, json.dumps([list(map(str, arguments)) for arguments in commands])]
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    out, err = done.stdout.split(b"\0"), done.stderr.split(b"\0")
    return [(int(code), shown, said) for shown, code, said in zip(out[::2], out[1::2], err[::2], strict=False)]


def refused(result: Result, words: str) -> None:
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in re.sub(r"\s+", " ", result.stderr)


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_example("items.csv")
    return Path("items.csv")


@pytest.mark.parametrize(("command", "option"), [("simulate", "--save"), ("advise", "--html")])
@pytest.mark.parametrize("spelling", ["items.csv", "./items.csv", "{folder}/items.csv", "link.csv", "twin.csv"])
def test_the_input_is_never_written_over(
    command: str, option: str, spelling: str, items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("link.csv").symlink_to("items.csv")
    Path("twin.csv").hardlink_to("items.csv")
    before = items.read_bytes()
    monkeypatch.setattr(f"banditree.cli.catalogue.{command}", lambda *_, **__: pytest.fail("it ran"))
    result = call(command, items, *QUICK, option, spelling.format(folder=tmp_path))
    refused(result, "it is the input file; give another name")
    refused(call(command, "link.csv", *QUICK, option, items), "it is the input file")
    assert items.read_bytes() == before


def test_two_outputs_are_two_files(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditree.cli.catalogue.simulate", lambda *_, **__: pytest.fail("it ran"))
    result = call("simulate", items, *QUICK, "--save", "out.png", "--plot", "./out.png")
    refused(result, "cannot write out.png: it is another output of this command; give another name")
    assert not Path("out.png").exists()


@pytest.mark.parametrize("place", [".", "/", "folder", ""])
def test_an_example_is_not_written_to_a_folder(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    refused(call("example", place), "it is a folder; give the name of a file")


@pytest.mark.parametrize("name", ["items.parquet", "items", "items.csv.gz"])
def test_an_example_is_a_csv_file(name: str, tmp_path: Path) -> None:
    refused(call("example", tmp_path / name), "the example is a CSV file; give a name that ends in .csv")
    with pytest.raises(InvalidValue, match=r"ends in \.csv"):
        write_example(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", ["", " ", ","])
@pytest.mark.parametrize("option", ["--path", "--policy"])
def test_names_that_are_empty_are_refused(option: str, empty: str, items: Path) -> None:
    result = call("simulate", items, *QUICK, option, empty)
    refused(result, f"{option} {empty!r} contains no name; give names separated by commas: a,b,c")


def test_a_horizon_beyond_all_bounds(items: Path) -> None:
    for command in ("simulate", "advise"):
        refused(call(command, items, *COUNTS, "--horizon", "9" * 20), "must be from 1 to 1000000000000")


@pytest.mark.parametrize("option", ["--tokens", "--context", "--config"])
def test_a_missing_file_is_named_once_and_without_numbers(option: str, items: Path) -> None:
    columns: list[str | Path] = [] if option == "--config" else [items, "--arm", "item", "--path", "category"]
    result = call("serve", *columns, option, "missing.txt")
    refused(result, ": No such file or directory")
    assert "Errno" not in result.stderr


def test_figures_do_not_go_into_a_file(items: Path) -> None:
    before = items.read_bytes()
    refused(call("reproduce", "2a", "--out", items), "Error: items.csv is a file; give a folder")
    refused(call("reproduce", "2a", "--out", items / "deep"), "Error: items.csv is a file; give a folder")
    assert items.read_bytes() == before


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_output_in_an_encoding_without_our_characters(encoding: str, tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("item,kind,rate\na√,x,0.1\nb,x,0.2\nc,日本,0.5\n", encoding="utf-8")
    columns = ["--arm", "item", "--path", "kind", "--mean", "rate"]
    inspect: list[str | Path] = ["inspect", table, *columns]
    *shown, for_machines, missing = scripts(
        inspect,
        ["reproduce", "--list"],
        [*inspect, "--json"],
        ["inspect", tmp_path / "日本.csv", *columns],
        encoding=encoding,
    )
    for code, out, said in shown:
        assert (code, said) == (0, b"")
        assert ("?" in out.decode(encoding)) == (encoding != "utf-8")
    answer = json.loads(for_machines[1].decode(encoding))
    assert answer["cluster_means"][0]["path"] == ["日本"]  # machines lose nothing
    assert missing[0] == 2
    assert b"does not exist" in missing[2]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["inspect", "items.csv", *COUNTS, "--weight", "plays"],
            "got --plays, --successes, --weight; --weight goes with",
        ),
        (["inspect", "items.csv", *COUNTS[:4]], "got none of them"),
        (["simulate", "items.csv", *QUICK, "--policy", "HTS:2"], "this tree has depth 1; give at most that"),
        (["example", "log.csv", "--log", "mine"], "--log='mine' must be one of 'random', 'thompson'"),
        (["example", "--campaign", "kids"], "--campaign='kids' must be one of 'all', 'men', 'women'"),
        (["example", "--log", "random", "--campaign", "men"], "--campaign is of items"),
        (["serve", "--config", "some.toml", "--control", "0.5"], "--control would be ignored beside --config"),
        (["serve", "--config", "some.toml", "--context", "a=b|c"], "--context would be ignored beside --config"),
        (["serve", "items.csv", "--arm", "item", "--context", "device=phone|"], "a level without a name"),
        (
            ["evaluate", "log.csv", "--arm", "item", "--reward", "click", "--propensity", "p", "--policy", "HTS:2"],
            "policy 'HTS:2': these arms have no categories; name the columns of their path",
        ),
    ],
)
def test_an_error_names_the_option_and_what_to_do(command: list[str], words: str, items: Path) -> None:
    Path("log.csv").write_text("item,click,p\na,1,0.5\nb,0,0.5\n")
    refused(call(*command), words)


def test_ctrl_c_while_the_command_is_imported_is_no_traceback(tmp_path: Path) -> None:
    """A module named numpy stands for the moment: it is imported first, and there Ctrl-C is pressed."""
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise RuntimeError\n")
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", f"{HEED_CTRL_C}\nfrom banditree_command import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(source)])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")
