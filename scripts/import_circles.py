"""Print the circles of imports in each Rust crate and in the Python package.

Usage: ``.venv/bin/python scripts/import_circles.py [--folders] [CRATE...]``

A file imports another where it names an item that the other defines; a re-export is followed to
the definition. Imports inside functions and for type checking alone count, those of unit tests do
not. Two files that import each other are allowed, because two types may define each other; a
circle of three files or more is printed, and the exit code is 1.

With ``--folders`` each module of the first level (a folder, or a file beside the root file) counts
as one: it imports what any of its files imports. The root file is then left out, and two folders
that import each other are a circle as well. The checks of every change use the files alone.

Rust is read without a compiler, so some things are not seen: methods of types that are not named
(they need no import), macros used by their bare name, names that a macro makes up, and modules in
a place that a ``#[path]`` names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grimp
import numpy as np
import tree_sitter_rust
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from tree_sitter import Language, Node, Parser

ROOT = Path(__file__).resolve().parents[1]
#: Of files, and of modules of the first level.
LARGEST_ALLOWED = 2
LARGEST_ALLOWED_OF_FOLDERS = 1
#: Re-exports of re-exports that are followed.
DEEPEST = 20

Module = tuple[str, ...]
Edges = dict[str, set[str]]


def main(arguments: list[str]) -> int:
    """Print the circles; 1 if there is one."""
    by_folders = "--folders" in arguments
    arguments = [argument for argument in arguments if argument != "--folders"]
    crates = sorted(
        path.parent
        for folder in ("instrument", "subjects")
        for path in (ROOT / folder).glob("*/Cargo.toml")
        if not arguments or path.parent.name in arguments
    )
    graphs = {str(crate.relative_to(ROOT)): rust_imports(crate) for crate in crates}
    if not arguments or "concurve" in arguments:
        graphs["src/concurve"] = python_imports("concurve")
    largest, what = LARGEST_ALLOWED, "files"
    if by_folders:
        largest, what = LARGEST_ALLOWED_OF_FOLDERS, "modules of the first level"
        graphs = {name: of_first_level(graph) for name, graph in graphs.items()}
    found = 0
    for name, graph in graphs.items():
        for circle in circles(graph, largest):
            found += 1
            print(f"{name}: a circle of {len(circle)} {what}")
            for file in circle:
                others = ", ".join(sorted(graph[file] & set(circle)))
                print(f"    {file} -> {others}")
    nodes = sum(map(len, graphs.values()))
    print(f"{nodes} {what} in {len(graphs)} crates and packages, {found} circles")
    return 1 if found else 0


def of_first_level(graph: Edges) -> Edges:
    """The same imports between modules of the first level, without the root files."""
    found: Edges = {}
    for file, imported in graph.items():
        module = _first_level(file)
        if module is None:
            continue
        others = {_first_level(other) for other in imported} - {module, None}
        found.setdefault(module, set()).update(other for other in others if other is not None)
    return found


def _first_level(file: str) -> str | None:
    """The folder or file of a crate's file, or the package of a Python module; none for a root."""
    if not file.endswith(".rs"):
        names = file.split(".")
        return ".".join(names[:2]) if len(names) > 1 else None
    name = file.split("/", maxsplit=1)[0].removesuffix(".rs")
    return None if file in ("lib.rs", "main.rs") or name == "bin" else name


def circles(graph: Edges, largest_allowed: int = LARGEST_ALLOWED) -> list[list[str]]:
    """The strongly connected components of more than so many nodes, the largest first."""
    names = sorted(graph)
    numbers = {name: number for number, name in enumerate(names)}
    pairs = [(numbers[a], numbers[b]) for a in names for b in graph[a] if b in numbers]
    if not pairs:
        return []
    rows, columns = np.array(pairs).T
    matrix = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(matrix, directed=True, connection="strong")
    groups = [[names[i] for i in np.flatnonzero(labels == label)] for label in set(labels)]
    return sorted((g for g in groups if len(g) > largest_allowed), key=len, reverse=True)


def python_imports(package: str) -> Edges:
    """What each module of an installed package imports from the package."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


class Scope(NamedTuple):
    """A Rust module: a file, or a module with a body inside one."""

    file: str
    #: Modules that are declared in it.
    children: dict[str, Module]
    #: Items that are defined in it.
    items: set[str]
    #: Local name -> path that it stands for, of each ``use``.
    names: dict[str, list[str]]
    #: Paths before ``::*``, whose names are local names as well.
    globs: list[list[str]]
    #: All paths that it names.
    paths: list[list[str]]


Scopes = dict[Module, Scope]


def rust_imports(crate: Path) -> Edges:
    """What each file below a crate's ``src`` imports from the same crate, or the same binary."""
    graph: Edges = {}
    for root in _roots(crate):
        scopes: Scopes = {}
        _read_file(crate / "src", root, (), scopes)
        for module, scope in scopes.items():
            imported = graph.setdefault(scope.file, set())
            for path in scope.paths:
                target = _resolve(scopes, module, path)
                if target is not None and scopes[target].file != scope.file:
                    imported.add(scopes[target].file)
    return graph


def _roots(crate: Path) -> list[Path]:
    """The root file of the library and of each binary."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    places = [manifest.get("lib", {}).get("path", "src/lib.rs"), "src/main.rs"]
    places += [binary["path"] for binary in manifest.get("bin", []) if "path" in binary]
    files = [crate / place for place in dict.fromkeys(places)]
    return [*filter(Path.exists, files), *sorted(crate.glob("src/bin/*.rs"))]


def _read_file(source: Path, path: Path, module: Module, scopes: Scopes) -> None:
    text = path.read_bytes()
    root = _PARSER.parse(text).root_node
    if any(it.type == "inner_attribute_item" and _is_for_tests(it) for it in root.children):
        return
    is_root = not module or path.name == "mod.rs"
    folder = path.parent if is_root else path.with_suffix("")
    _read_scope(source, path, folder, module, root, bytearray(text), scopes)


def _read_scope(
    source: Path,
    path: Path,
    folder: Path,
    module: Module,
    node: Node,
    text: bytearray,
    scopes: Scopes,
) -> None:
    """Read a module's own text; ``text`` is the file's, of which what is read is blanked."""
    _blank_what_is_not_code(node, text)
    name = str(path.relative_to(source))
    scopes[module] = scope = Scope(name, {}, set(), {}, [], [])
    for child in node.children:
        named = child.child_by_field_name("name")
        if named is None or not text[child.start_byte : child.end_byte].strip():
            continue
        item = (named.text or b"").decode().removeprefix("r#")
        if child.type != "mod_item":
            scope.items.add(item)
            continue
        scope.children[item] = (*module, item)
        body = child.child_by_field_name("body")
        if body is not None:
            below = (*module, item)
            _read_scope(source, path, folder / item, below, body, text, scopes)
            _blank(text, body)
            continue
        for place in (folder / f"{item}.rs", folder / item / "mod.rs"):
            if place.exists():
                _read_file(source, place, (*module, item), scopes)
    _read_paths(scope, bytes(text[node.start_byte : node.end_byte]).decode())


def _read_paths(scope: Scope, text: str) -> None:
    text = text.replace("r#", "")
    for tree in re.findall(r"\buse\s+([\w:{][^;]*);", text):
        for used, local in _used(tree):
            scope.paths.append(used)
            if local == "*":
                scope.globs.append(used[:-1])
            elif local != "_":
                scope.names[local] = used
    plain = re.sub(r"\bpub\s*\([^)]*\)", "", re.sub(r"\buse\s+[^;]+;", "", text))
    scope.paths.extend(
        found.split("::") for found in re.findall(r"(?<![\w:.])[a-zA-Z_]\w*(?:::\w+)+", plain)
    )


def _used(tree: str) -> Iterator[tuple[list[str], str]]:
    """Each path of a ``use`` tree, with the name that it has afterwards."""
    tree = tree.strip()
    if "{" in tree:
        prefix, _, rest = tree.partition("{")
        for part in _parts(rest[: rest.rindex("}")]):
            for path, local in _used(part):
                head = [name for name in prefix.replace("::", " ").split() if name]
                # `use a::b::{self}` names b.
                tail = path[1:] if path[0] == "self" and head else path
                yield head + tail, (local if local != "self" or not head else head[-1])
        return
    path_text, _, alias = tree.partition(" as ")
    path = [name.strip() for name in path_text.split("::") if name.strip()]
    if path:
        yield path, alias.strip() or path[-1]


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def _resolve(scopes: Scopes, module: Module, path: list[str], depth: int = 0) -> Module | None:
    """The module that defines what a path names; none where it leads out of the crate."""
    head = path[0]
    if depth > DEEPEST:
        return None
    if head == "crate":
        return _descend(scopes, (), path[1:], depth)
    if head in ("self", "super"):
        rest = list(path)
        while rest and rest[0] in ("self", "super"):
            module = module[:-1] if rest.pop(0) == "super" else module
        return _descend(scopes, module, rest, depth)
    scope = scopes[module]
    if head in scope.names and scope.names[head] != path:
        return _resolve(scopes, module, scope.names[head] + path[1:], depth + 1)
    return _descend(scopes, module, path, depth) if head in scope.children else None


def _descend(scopes: Scopes, at: Module, rest: list[str], depth: int) -> Module | None:
    """The module that defines what a path below a module names."""
    while rest and at in scopes:
        scope, name = scopes[at], rest[0]
        if name in scope.children:
            at, rest = scope.children[name], rest[1:]
        elif name in scope.names and name not in scope.items:
            found = scope.names[name] + rest[1:]
            return _resolve(scopes, at, found, depth + 1) if found != rest else None
        elif name in scope.items or name == "*":
            return at
        else:
            return _through_globs(scopes, at, rest, depth) or at
    return at if at in scopes else None


def _through_globs(scopes: Scopes, module: Module, rest: list[str], depth: int) -> Module | None:
    for glob in scopes[module].globs:
        target = _resolve(scopes, module, glob, depth + 1)
        if target is None or target == module:
            continue
        scope = scopes[target]
        if rest[0] in scope.children or rest[0] in scope.items or rest[0] in scope.names:
            return _resolve(scopes, target, ["self", *rest], depth + 1)
        found = _through_globs(scopes, target, rest, depth + 1) if depth < DEEPEST else None
        if found is not None:
            return found
    return None


def _blank_what_is_not_code(node: Node, text: bytearray) -> None:
    """Blank comments, strings and what is compiled for tests alone."""
    for_tests = False
    for child in node.children:
        if child.type in ("line_comment", "block_comment", "string_literal", "raw_string_literal"):
            _blank(text, child)
        elif child.type == "attribute_item":
            for_tests |= _is_for_tests(child)
            _blank_strings(child, text)
        elif for_tests:
            _blank(text, child)
            for_tests = False
        else:
            _blank_what_is_not_code(child, text)


def _blank_strings(attribute: Node, text: bytearray) -> None:
    """Blank an attribute's strings, but keep the paths in those of serde: ``with = "a::b"``."""
    start, end = attribute.start_byte, attribute.end_byte
    content = bytes(text[start:end])
    is_serde = re.match(rb"#\[\s*serde\b", content) is not None

    def kept(string: re.Match[bytes]) -> bytes:
        path = string[0][1:-1]
        if is_serde and re.fullmatch(rb"\w+(::\w+)+", path):
            return b" " + path + b" "
        return b" " * len(string[0])

    text[start:end] = re.sub(rb'"(?:[^"\\]|\\.)*"', kept, content, flags=re.DOTALL)


def _is_for_tests(attribute: Node) -> bool:
    """Whether an attribute is ``cfg(test)``, alone or in an ``all``."""
    text = re.sub(rb"\s+|\"[^\"]*\"", b"", attribute.text or b"")
    condition = re.fullmatch(rb"#!?\[cfg\((.*)\)\]", text)
    if attribute.type not in ("attribute_item", "inner_attribute_item") or condition is None:
        return False
    parts = re.fullmatch(rb"all\((.*)\)", condition[1])
    return b"test" in (parts[1] if parts else condition[1]).split(b",")


def _blank(text: bytearray, node: Node) -> None:
    start, end = node.start_byte, node.end_byte
    text[start:end] = re.sub(rb"[^\n]", b" ", bytes(text[start:end]))


_PARSER = Parser(Language(tree_sitter_rust.language()))

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
