"""Hooks of mkdocs (mkdocs.yml): the pages of the root on the site, and a navigation by folder."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

#: Pages of the root, and what they are called on the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}

#: What stands in for a Worker on pages that are opened from files (mkdocs.yml: extra.polyfills).
WORKER = "assets/javascripts/iframe-worker.js"

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(\s*([^)\s#]*)(#[^)\s]*)?\s*\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand the entries of the navigation that end with a star."""
    docs = Path(config.docs_dir)
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    config.nav = expanded(config.nav or [], pages - set(named(config.nav or [])))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and the script for searching them offline."""
    for page, name in ROOT_PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    worker = str(ROOT / "scripts" / "iframe-worker.js")
    files.append(File.generated(config, WORKER, abs_src_path=worker))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page, which hold in the checkout, to the pages of the site."""
    names = {site: root for root, site in ROOT_PAGES.items()}
    name = page.file.src_uri
    return relinked(markdown, name, names.get(name, f"docs/{name}"))


def named(nav: Any) -> list[str]:
    """The pages that a navigation names one by one."""
    if isinstance(nav, str):
        return [nav]
    below = nav.values() if isinstance(nav, dict) else nav
    return [name for entry in below for name in named(entry)]


def expanded(nav: Any, left: set[str]) -> Any:
    """The navigation, with those of the pages ``left`` that stand in ``FOLDER``, by name, for each
    entry ``FOLDER/*``."""
    if isinstance(nav, dict):
        return {title: expanded(below, left) for title, below in nav.items()}
    if isinstance(nav, str):
        return _below(nav, left) if nav.endswith("/*") else nav
    entries: list[Any] = []
    for entry in nav:
        found = expanded(entry, left)
        entries += found if isinstance(entry, str) and isinstance(found, list) else [found]
    return entries


def _below(entry: str, left: set[str]) -> list[str]:
    folder = entry.removesuffix("/*")
    return sorted(page for page in left if str(PurePosixPath(page).parent) == folder)


def relinked(markdown: str, site: str, checkout: str) -> str:
    """The text of a page with its links as they hold on the site.

    ``site`` and ``checkout`` are the page's paths on the site and in the checkout. A link to a
    folder, or to a file that the site does not have, becomes its path in the checkout.
    """

    def replace(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(checkout), target))
        on_site = ROOT_PAGES.get(path, path.removeprefix("docs/"))
        if path not in ROOT_PAGES and not (path.startswith("docs/") and PurePosixPath(path).suffix):
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        link = posixpath.relpath(on_site, posixpath.dirname(site) or ".")
        return f"{image}[{text}]({link}{anchor})"

    return _LINK.sub(replace, markdown)
