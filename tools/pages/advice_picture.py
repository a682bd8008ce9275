"""Draw docs/images/advice.png, the README's picture of the advice page: ``python -m tools.pages.advice_picture``.

It runs ``banditree advise`` on the example catalogue and takes a picture of the page's top in Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).parents[2] / "docs" / "images" / "advice.png"
COLUMNS = ("--arm", "item", "--path", "category,subcategory", "--plays", "plays", "--successes", "clicks")
WIDTH, HEIGHT = 900, 712  # pixels: the answer and the table below it
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def main() -> int:
    """Write the picture; 1 where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"there is no browser to draw the page; install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "banditree"]
        subprocess.run([*command, "example", "items.csv"], cwd=folder, check=True)
        advise = ["advise", "items.csv", *COLUMNS, "--horizon", "100000", "--html", "advice.html"]
        subprocess.run([*command, *advise], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        picture = folder / "advice.png"
        page = (folder / "advice.html").as_uri()
        size = f"--window-size={WIDTH},{HEIGHT}"
        subprocess.run([browser, *QUIET, size, f"--screenshot={picture}", "--hide-scrollbars", page], check=True)
        TARGET.write_bytes(picture.read_bytes())
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
