"""Take pictures of a report's first screen: 1200 and 400 pixels wide, light and dark.

    python scripts/screenshots.py .concurve/thread-scaling.html docs/images

Needs a Chromium (``CHROMIUM``, or ``chromium`` on the path).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SIZES = {1200: 800, 400: 800}
SCHEMES = ("light", "dark")


def main(page: Path, folder: Path) -> None:
    """Write ``report-WIDTH-SCHEME.png`` into the folder."""
    browser_file = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if browser_file is None:
        sys.exit("no Chromium: apt-get install chromium, or name one in CHROMIUM")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_file, args=["--no-sandbox"])
        for width, height in SIZES.items():
            for scheme in SCHEMES:
                size = {"width": width, "height": height}
                tab = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                tab.goto(page.resolve().as_uri())
                tab.screenshot(path=folder / f"report-{width}-{scheme}.png")
                tab.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
