"""The shop of examples/openfeature_shop in a real browser, with OpenFeature's web SDK from npm."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import serving

SHOP = Path(__file__).parents[2] / "examples" / "openfeature_shop"
INSTALL = ("install", "--no-audit", "--no-fund", "--loglevel=error")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The shop's folder with its packages, or a skip that says what is missing."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the web SDK was not tried")
    folder = shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run([npm, *INSTALL], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install the web SDK: {done.stderr.strip()[:200]}")
    return folder


def test_the_web_sdk_shows_an_item_and_reports_the_click(shop: Path, browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, "--sticky", "30m", "--control", "0.3") as server:
        words = [sys.executable, str(shop / "storefront.py"), "--service", server.url, "--port", "0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as storefront:
            try:
                assert storefront.stdout is not None
                page = browser.new_page()
                page.set_default_timeout(120_000)
                page.goto(storefront.stdout.readline().split()[-1])
                page.wait_for_selector("#buy:not([disabled])")
                item, why = page.inner_text("#item"), page.inner_text("#why")
                page.click("#buy")
                page.wait_for_function("document.getElementById('thanks').textContent")
                assert page.inner_text("#thanks") == "Thank you (applied)."
                page.reload()
                page.wait_for_selector("#buy:not([disabled])")
                assert (page.inner_text("#item"), page.inner_text("#why")) == (item, why)  # the visitor keeps it
                page.close()
            finally:
                storefront.terminate()
        decision = server.http.get(f"/v1/decisions/{why.split()[1].rstrip(',')}").json()
        assert (decision["arm"], decision["reward"]) == (item, 1)
