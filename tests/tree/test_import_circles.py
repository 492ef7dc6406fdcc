"""What ``scripts/import_circles.py`` takes for an import of a Rust file, and what not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = "pub struct Figure; pub fn draw() {}"


def load_script() -> ModuleType:
    path = ROOT / "scripts" / "import_circles.py"
    spec = importlib.util.spec_from_file_location("import_circles", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


def imports(folder: Path, **files: str) -> dict[str, set[str]]:
    """The imports of a crate; ``a__b`` is the file ``src/a/b.rs``, ``lib`` the root."""
    (folder / "Cargo.toml").write_text("[package]\nname = 'sample'\n")
    for name, text in files.items():
        path = folder / "src" / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    graph: dict[str, set[str]] = SCRIPT.rust_imports(folder)
    return graph


@pytest.mark.parametrize(
    "text",
    [
        "use crate::figures::Figure;",
        "use super::figures::{self, Figure as F};",
        "use super::figures::*;",
        "fn f() { use crate::figures::draw; draw() }",
        "fn f() { vec![crate::figures::Figure]; }",
        "mod inner { pub fn f() { super::super::figures::draw() } }",
        '#[serde(with = "crate::figures::Figure")] struct S;',
        "#[arg(value_parser = crate::figures::draw)] struct S;",
        "#[cfg(not(test))] use crate::figures::Figure;",
        '#[cfg(any(test, feature = "x"))] use crate::figures::Figure;',
    ],
)
def test_a_named_item_is_an_import(tmp_path: Path, text: str) -> None:
    graph = imports(tmp_path, lib="mod figures; mod user;", figures=FIGURES, user=text)
    assert graph["user.rs"] == {"figures.rs"}


@pytest.mark.parametrize(
    "text",
    [
        "// use crate::figures::Figure;",
        "/// See [`crate::figures::Figure`].\nfn f() {}",
        'fn f() -> &\'static str { "crate::figures::Figure" }',
        "#[cfg(test)] use crate::figures::Figure;",
        "#[cfg(all(test, unix))] mod tests { use crate::figures::Figure; }",
        "#![cfg(test)]\nuse crate::figures::Figure;",
        "pub(in crate::figures) fn f() {}",
        "use std::figures::Figure;",
        "mod inner { mod figures { pub fn f() {} } fn g() { figures::f() } }",
        "mod inner { pub fn f() {} pub fn g() { super::h() } } fn h() {}",
    ],
)
def test_what_only_looks_like_one_is_none(tmp_path: Path, text: str) -> None:
    graph = imports(tmp_path, lib="mod figures; mod user;", figures=FIGURES, user=text)
    assert graph.get("user.rs", set()) == set()


@pytest.mark.parametrize(
    "front",
    [
        "mod figures; pub use figures::Figure;",
        "mod figures; pub use figures::*;",
        "mod figures; use figures::Figure;",
        "mod figures; pub mod list { pub use super::figures::Figure; } pub use list::Figure;",
    ],
)
def test_a_re_export_is_followed_to_the_definition(tmp_path: Path, front: str) -> None:
    graph = imports(
        tmp_path,
        lib="mod front; mod user;",
        front__mod=front,
        front__figures=FIGURES,
        user="use crate::front; fn f() -> front::Figure {}",
    )
    assert graph["user.rs"] == {"front/mod.rs", "front/figures.rs"}
    assert graph["front/mod.rs"] == {"front/figures.rs"}


def test_an_item_of_the_root_file_is_an_import_of_it(tmp_path: Path) -> None:
    graph = imports(tmp_path, lib="mod user; pub struct Root;", user="use crate::Root;")
    assert graph == {"lib.rs": set(), "user.rs": {"lib.rs"}}


def test_a_binary_has_modules_of_its_own(tmp_path: Path) -> None:
    graph = imports(
        tmp_path,
        lib="pub mod figures;",
        figures=FIGURES,
        main="mod user;",
        user="use sample::figures::Figure; fn f() { crate::user::g() } fn g() {}",
    )
    assert graph == {"lib.rs": set(), "figures.rs": set(), "main.rs": set(), "user.rs": set()}


def test_two_files_may_import_each_other_and_three_may_not() -> None:
    pair = {"a": {"b"}, "b": {"a"}, "c": {"a"}}
    assert SCRIPT.circles(pair) == []
    assert SCRIPT.circles({**pair, "b": {"c"}}) == [["a", "b", "c"]]


def test_folders_are_the_modules_of_the_first_level_without_the_root(tmp_path: Path) -> None:
    graph = imports(
        tmp_path,
        lib="mod figures; mod draw; mod text; pub struct Root;",
        figures__mod="pub mod line; pub mod shape;",
        figures__line="use crate::Root; pub struct Line;",
        figures__shape="pub struct Shape; use crate::text::Text;",
        draw="use crate::figures::line::Line; pub fn draw() {}",
        text="use crate::draw::draw; pub struct Text;",
    )
    assert SCRIPT.circles(graph) == []
    folders = SCRIPT.of_first_level(graph)
    assert folders == {"figures": {"text"}, "draw": {"figures"}, "text": {"draw"}}
    assert SCRIPT.circles(folders, 1) == [["draw", "figures", "text"]]
    pair = {"a/x.rs": {"b/x.rs"}, "b/x.rs": set(), "b/y.rs": {"a/y.rs"}, "a/y.rs": {"lib.rs"}}
    assert SCRIPT.circles(SCRIPT.of_first_level(pair), 1) == [["a", "b"]]


def test_folders_of_python_are_the_packages_below_the_package() -> None:
    graph = {"p": {"p.a.x"}, "p.a.x": {"p.a.y", "p.b"}, "p.a.y": set(), "p.b": {"p.a.y", "p"}}
    folders = SCRIPT.of_first_level(graph)
    assert folders == {"p.a": {"p.b"}, "p.b": {"p.a"}}


def test_the_mode_is_an_option_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    crates = ["load", "records", "disk", "probe", "wire"]
    assert SCRIPT.main(["--folders", *crates]) == 0
    assert "modules of the first level in 5 crates" in capsys.readouterr().out


def test_lazy_python_imports_and_those_for_types_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "sample_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("def f():\n    from sample_package import b\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sample_package.c import C\n"
    )
    (package / "c.py").write_text("class C: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    graph = SCRIPT.python_imports("sample_package")
    assert graph["sample_package.a"] == {"sample_package.b"}
    assert graph["sample_package.b"] == {"sample_package.c"}
