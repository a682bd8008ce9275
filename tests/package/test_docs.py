"""What the pages say is true: their code runs, their links lead somewhere, and nothing public is left out.

Blocks with ``>>>`` are doctests, which pytest collects by itself. All other ``python`` blocks of a page run here, in
order and in one namespace. A block that cannot run on one machine is fenced as ``python not-run``.
"""

from __future__ import annotations

import inspect
import os
import re
import runpy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import banditree as bt
from tools.pages import registry

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = [*PAGES, ROOT / "llms.txt"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return path.name


def script(page: str) -> str:
    """The code blocks of a page as one script; the rest is empty lines, so that line numbers are the page's."""
    lines = [""] * page.count("\n")
    for block in FENCE.finditer(page):
        if block[1].strip() == "python" and ">>>" not in block[2]:
            first = page[: block.start(2)].count("\n")
            lines[first : first + block[2].count("\n")] = block[2].splitlines()
    return "\n".join(lines)


def with_code(pages: list[Path]) -> list[Path]:
    return [page for page in pages if script(page.read_text(encoding="utf-8")).strip()]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to write to, and no window for pictures."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra `plot`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.switch_backend("Agg")
    return tmp_path


def run(source: str, name: str, folder: Path) -> dict[str, Any]:
    """Run a script from a file, as a user would, and give back its names."""
    from matplotlib import pyplot

    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    try:
        return runpy.run_path(os.fspath(path), run_name="__main__")
    finally:
        pyplot.close("all")


@pytest.mark.parametrize("page", with_code(PAGES[1:]), ids=name_of)
def test_the_code_of_a_page_runs(page: Path, elsewhere: Path) -> None:
    run(script(page.read_text(encoding="utf-8")), page.stem, elsewhere)


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_runs(example: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(example.read_text(encoding="utf-8"), example.stem, elsewhere)
    assert capsys.readouterr().out, "an example shows something"


def test_a_broken_block_is_found(tmp_path: Path) -> None:
    page = "# Title\n\n```python\nx = 1\n```\n\n```text\nnot code\n```\n\n```python\nraise KeyError(x)\n```\n"
    with pytest.raises(KeyError, match="1") as caught:
        run(script(page), "page", tmp_path)
    assert caught.traceback[-1].lineno == page.splitlines().index("raise KeyError(x)")


def test_the_readme_runs_and_shows_a_real_table(elsewhere: Path) -> None:
    """Each mean in the README is within noise of a run today, and the order is the same, on either engine."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    runs: bt.Runs = run(script(page), "readme", elsewhere)["runs"]
    shown = next(block[2].splitlines() for block in FENCE.finditer(page) if block[1] == "text" and "rank" in block[2])
    rows = [line.split() for line in shown[1:] if not line.startswith("TSC has")]
    assert [row[0] for row in rows] == [row.policy for row in runs.table()]
    for row, now in zip(rows, runs.table(), strict=True):
        # Two independent means differ by more than five standard errors with probability 6e-7.
        assert abs(float(row[1]) - now.mean) < 5 * (float(row[3]) ** 2 + now.se**2) ** 0.5


def test_the_readme_lists_every_policy() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(bt.ALGORITHMS)


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue  # another site
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}, but {file.name} has no such heading"


def test_every_picture_and_table_of_the_docs_is_on_a_page() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in LINKING)
    files = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".svg", ".csv")]
    assert len(files) > 10
    # The data of a page that is still to be made stand there before it.
    made = {f"{name}.csv" for name in registry.PENDING} | {"contest-summary.csv"}
    assert {path.name for path in files if f"{path.parent.name}/{path.name}" not in texts} <= made


def anchors(page: Path) -> set[str]:
    """What headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    others = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in others if f"({name})" not in index} == set()


def test_the_map_has_every_folder() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    entries = [path for path in Path(bt.__file__).parent.iterdir() if not path.name.startswith(("_", "py.typed"))]
    parts = {f"{path.name}/" if path.is_dir() else path.name for path in entries}
    assert {part for part in parts if f"| `{part}` |" not in page} == set()


def test_versions_agree() -> None:
    found = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    assert found[1] == bt.__version__


def test_the_first_screen_shows_the_commands_and_the_paper() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page.index("docs/images/advice.png") < page.index("## Install")
    for said in ("arxiv.org/abs/2109.01656", "10.24963/ijcai.2021/305", "$ make test", "$ make reproduce"):
        assert said in page
    assert (ROOT / "docs" / "images" / "advice.png").stat().st_size < 300_000


MODULES = (
    "adapters",
    "catalogue",
    "client",
    "clustering",
    "errors",
    "ope",
    "plots",
    "problems",
    "report",
    "testing",
    "theory",
)


def listed() -> list[str]:
    """The names on the API page, which the site turns into a reference."""
    return re.findall(r"^   banditree\.([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


def public(module: ModuleType) -> list[str]:
    """The classes and functions that a module says are public, or else those that it defines."""
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    things = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return [name for name, thing in things.items() if inspect.isclass(thing) or inspect.isroutine(thing)]


def named(name: str) -> Any:
    """What a name below banditree stands for."""
    module, _, last = name.rpartition(".")
    if not module:
        return getattr(bt, last)
    return getattr(getattr(bt, module, None) or import_module(f"banditree.{module}"), last)


def test_every_public_name_is_on_the_api_page() -> None:
    modules = {name: getattr(bt, name, None) or import_module(f"banditree.{name}") for name in MODULES}
    assert {name for name in bt.__all__ if inspect.ismodule(getattr(bt, name))} <= set(MODULES)
    shown = [named(name) for name in listed()]
    wanted = {name: getattr(bt, name) for name in public(bt)}
    wanted |= {f"{name}.{each}": getattr(module, each) for name, module in modules.items() for each in public(module)}
    assert {name for name, thing in wanted.items() if not any(thing is each for each in shown)} == set()
    assert len(shown) == len({id(thing) for thing in shown}), "nothing is there twice, under whatever name"


@pytest.mark.parametrize("name", listed())
def test_a_public_name_has_a_docstring_of_its_own(name: str) -> None:
    """The line that dataclasses invent does not count."""
    doc = inspect.getdoc(named(name)) or ""
    assert doc
    assert not re.fullmatch(rf"{name.rpartition('.')[2]}\(.*\)", doc)


def test_every_command_is_documented_by_hand() -> None:
    """In the README or a guide, with an example; and every option has a line that says what it does."""
    typer_main = pytest.importorskip("typer.main", reason="the command line needs the extra `cli`")
    from banditree.cli import main as cli

    guides = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = typer_main.get_command(cli.application()).commands
    assert {name for name in commands if f"$ banditree {name}" not in guides} == set()
    options = {(name, option.name): option.help for name, command in commands.items() for option in command.params}
    assert {each for each, words in options.items() if not words} == set()
