"""The documentation as a site: built strictly, complete in its navigation, and offline."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.real import PATIENCE
from tests.helpers.wheels import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="not a checkout")

ROOT_PAGES = {
    "README.md": "index.html",
    "ARCHITECTURE.md": "ARCHITECTURE.html",
    "CHANGELOG.md": "CHANGELOG.html",
    "CONTRIBUTING.md": "CONTRIBUTING.html",
}

#: What a browser fetches by itself: scripts, styles, images, frames; not the links of the text.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|embed)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon))"
    r"[^>]*\bhref=[\"']?([^\"'\s>]+)"
)
_CSS_FETCHED = re.compile(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)")
_NAVIGATED = re.compile(r"<a\b[^>]*\bhref=\"?([^\"\s>]+)\"?[^>]*class=\"?[^\">]*md-nav__link")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make site`` writes it; a warning, such as a broken link, fails."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def navigated(site: Path) -> set[str]:
    """The pages that the navigation of the first page names."""
    page = (site / "index.html").read_text(encoding="utf-8")
    return {link for link in _NAVIGATED.findall(page) if "#" not in link}


def test_the_navigation_names_every_page_once(site: Path) -> None:
    docs = (page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md"))
    pages = {str(page.with_suffix(".html")) for page in docs} | set(ROOT_PAGES.values())
    # The page that one reads is named by its own anchor or path.
    assert navigated(site) | {"index.html"} == pages


def test_nothing_is_fetched_from_a_network(site: Path) -> None:
    fetched = set()
    for page in site.rglob("*.html"):
        for found in _FETCHED.findall(page.read_text(encoding="utf-8")):
            fetched.add(found[0] or found[1])
    for sheet in site.rglob("*.css"):
        fetched |= set(_CSS_FETCHED.findall(sheet.read_text(encoding="utf-8")))
    assert len(fetched) > 3
    assert {name for name in fetched if re.match(r"(https?:)?//", name)} == set()


def test_no_page_has_a_diagram_whose_script_the_theme_would_fetch(site: Path) -> None:
    assert [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()] == []


def test_links_hold_on_the_site_or_are_paths_of_the_checkout(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<img[^>]*src="?images/report-1200-light\.png', home)
    assert re.search(r'href="?ARCHITECTURE\.html', home)
    accounting = (site / "method" / "accounting.html").read_text(encoding="utf-8")
    assert "<code>schema/trial-record.schema.json</code>" in accounting
    decision = (site / "decisions" / "0007-names.html").read_text(encoding="utf-8")
    assert re.search(r'href="?\.\./ARCHITECTURE\.html', decision)


def test_the_search_index_holds_every_page(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert all(f'"location":"{page}"' in index for page in navigated(site) | {"index.html"})


@pytest.mark.soak
def test_a_browser_searches_the_site_opened_from_a_file(site: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000",
         "--dump-dom", f"file://{site}/method/protocol.html?q=priority"],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout.count('class="md-search-result__item"') > 3
