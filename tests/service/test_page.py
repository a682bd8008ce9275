"""The live page in a real browser: it moves with the decisions, and shows names as names."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Server, quiet_port, serving, until


class Looked:
    """A page, and all that a reader would stumble over."""

    def __init__(self, browser: Any, server: Server, width: int) -> None:
        self.faults: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.page.set_default_timeout(120_000)  # milliseconds: long enough for a machine with other work
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", lambda asked: self.asked(asked.url, server.url))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.page.goto(server.url)

    def asked(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:")):
            self.faults.append(url)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def troubles(self) -> list[str]:
        if self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            self.faults.append("the page scrolls sideways")
        small = "[...document.querySelectorAll('p, td, li')].some(e => parseFloat(getComputedStyle(e).fontSize) < 12)"
        if self.page.evaluate(small):
            self.faults.append("some text is too small")
        cut = """[...document.querySelectorAll("svg text")].filter(text => text.getBoundingClientRect().left
            < text.closest("svg").getBoundingClientRect().left).map(text => text.textContent)"""
        self.faults += [f"the picture cuts {text!r}" for text in self.page.evaluate(cut)]
        return self.faults


NASTY = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_moves_with_the_decisions(browser: Any, tmp_path: Path, width: int) -> None:
    with serving(tmp_path) as server:
        server.http.post("/v1/arms", json={"add": {NASTY: [NASTY, "a long name " * 10]}})
        looked = Looked(browser, server, width)
        looked.page.wait_for_selector("#tree tr")
        until(lambda: looked.text("#state") == "live")
        for place in range(12):
            only = {"only": [NASTY]} if place % 2 else {}
            decision = server.http.post("/v1/decisions", json=only).json()
            server.http.put(f"/v1/decisions/{decision['id']}/reward", json={"reward": place % 2})
        until(lambda: looked.text("#plays") == "12")
        until(lambda: looked.text("#decisions") == "12")
        assert looked.page.locator("#latest tr").count() == 12
        assert NASTY in looked.text("#latest")
        assert NASTY in looked.text("#legend")
        assert NASTY in looked.text("#learned")
        assert looked.page.is_hidden("#by-group")  # there is none
        assert looked.page.locator("img").count() == 0
        assert looked.page.locator("#traffic rect").count() >= 1
        closed = looked.page.locator("#tree tr").count()
        looked.page.click("#tree button")
        until(lambda: looked.page.locator("#tree tr").count() > closed)
        looked.page.fill("#search", "img src")
        until(lambda: looked.page.locator("#tree tr").count() == 2)  # a category and its item
        looked.page.fill("#search", "")
        assert looked.troubles() == []
        looked.page.goto(server.url + "/docs")
        assert looked.page.locator("section").count() > 10
        assert looked.troubles() == []
        looked.page.close()


def test_with_a_token_nothing_is_shown_before_it_is_given(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "secret") as server:
        looked = Looked(browser, server, 800)
        looked.page.wait_for_selector("#token")
        assert not looked.page.is_visible("#main")
        looked.page.fill("#token", "wrong")
        looked.page.click("form button")
        until(lambda: looked.text("#wrong"))
        assert not looked.page.is_visible("#main")
        assert "hats" not in looked.text("body")
        looked.page.fill("#token", "secret")
        looked.page.click("form button")
        looked.page.wait_for_selector("#tree tr")
        until(lambda: looked.text("#state") == "live")
        server.http.post("/v1/decisions", headers={"authorization": "Bearer secret"})
        until(lambda: looked.text("#decisions") == "1")
        assert looked.troubles() == []
        looked.page.close()


def test_the_page_finds_the_service_again(browser: Any, tmp_path: Path) -> None:
    port = quiet_port()
    with serving(tmp_path, "--port", port) as server:
        looked = Looked(browser, server, 800)
        until(lambda: looked.text("#state") == "live")
        server.kill()
        until(lambda: looked.text("#state").startswith("not connected"))
        with serving(tmp_path, "--port", port) as again:
            until(lambda: looked.text("#state") == "live")
            again.http.post("/v1/decisions")
            until(lambda: looked.text("#decisions") == "1")
        looked.page.close()


def test_pictures_show_all_digits_and_the_sign_of_small_losses(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "--rewards", "real", "--control", "0.5") as server:
        looked = Looked(browser, server, 1280)
        for place in range(25):  # more than two seconds, so that there is a line
            id_ = server.http.post("/v1/decisions", json={"unit": f"visitor-{place}"}).json()["id"]
            server.http.put(f"/v1/decisions/{id_}/reward", json={"reward": -0.000805})
            time.sleep(0.1)
        looked.page.wait_for_selector("#over-time text")
        assert "-0.00" in looked.text("#over-time")
        assert looked.troubles() == []
        looked.page.close()


def test_what_is_known_is_shown_before_the_report_is_ready(browser: Any, tmp_path: Path) -> None:
    """The first report of thousands of items takes seconds."""
    with serving(tmp_path) as server:
        id_ = server.http.post("/v1/decisions").json()["id"]
        server.http.put(f"/v1/decisions/{id_}/reward", json={"reward": 1})
        page = browser.new_page()
        page.route("**/report", lambda route: None)  # never answered
        page.goto(server.url)
        until(lambda: page.inner_text("#plays") == "1")
        assert page.inner_text("#rate") == "1"
        assert page.locator("#tree tr").count() == 2
        page.unroute_all(behavior="ignoreErrors")
        page.close()
