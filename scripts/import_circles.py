"""Print the circles of imports in each Rust crate and in the Python package.

Usage: ``.venv/bin/python scripts/import_circles.py [CRATE...]``

A file imports another where it names an item that the other defines; a re-export is followed to
the definition. Imports inside functions and for type checking alone count, those of unit tests do
not. Two files that import each other are allowed, because two types may define each other; a
circle of three files or more is printed, and the exit code is 1.
"""

from __future__ import annotations

import re
import sys
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
LARGEST_ALLOWED = 2

Module = tuple[str, ...]
Edges = dict[str, set[str]]


def main(arguments: list[str]) -> int:
    """Print the circles; 1 if there is one."""
    crates = sorted(
        path.parent
        for folder in ("instrument", "subjects")
        for path in (ROOT / folder).glob("*/Cargo.toml")
        if not arguments or path.parent.name in arguments
    )
    graphs = {str(crate.relative_to(ROOT)): rust_imports(crate / "src") for crate in crates}
    if not arguments or "concurve" in arguments:
        graphs["src/concurve"] = python_imports("concurve")
    found = 0
    for name, graph in graphs.items():
        for circle in circles(graph):
            found += 1
            print(f"{name}: a circle of {len(circle)} files")
            for file in circle:
                others = ", ".join(sorted(graph[file] & set(circle)))
                print(f"    {file} -> {others}")
    files = sum(map(len, graphs.values()))
    print(f"{files} files in {len(graphs)} crates and packages, {found} circles")
    return 1 if found else 0


def circles(graph: Edges) -> list[list[str]]:
    """The strongly connected components of more than two files, the largest first."""
    names = sorted(graph)
    numbers = {name: number for number, name in enumerate(names)}
    pairs = [(numbers[a], numbers[b]) for a in names for b in graph[a] if b in numbers]
    if not pairs:
        return []
    rows, columns = np.array(pairs).T
    matrix = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(matrix, directed=True, connection="strong")
    groups = [[names[i] for i in np.flatnonzero(labels == label)] for label in set(labels)]
    return sorted((g for g in groups if len(g) > LARGEST_ALLOWED), key=len, reverse=True)


def python_imports(package: str) -> Edges:
    """What each module of an installed package imports from the package."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


class File(NamedTuple):
    """One Rust file as a module: its children and what it imports."""

    name: str
    children: dict[str, Module]
    #: Local name -> path it stands for, of each ``pub use``; ``*`` names are kept as lists.
    exports: dict[str, list[str]]
    globs: list[list[str]]
    paths: list[list[str]]


def rust_imports(source: Path) -> Edges:
    """What each file below a crate's ``src`` imports from the same crate."""
    files: dict[Module, File] = {}
    roots = [path for path in (source / "lib.rs", source / "main.rs") if path.exists()]
    if roots:
        _read(source, roots[0], (), files)
    graph: Edges = {file.name: set() for file in files.values()}
    for module, file in files.items():
        for path in file.paths:
            if (target := _resolve(files, module, path)) and target != module:
                graph[file.name].add(files[target].name)
    return graph


def _read(source: Path, path: Path, module: Module, files: dict[Module, File]) -> None:
    text = _code(path.read_bytes())
    children = {name: (*module, name) for name in re.findall(r"\bmod\s+(?:r#)?(\w+)\s*;", text)}
    exports: dict[str, list[str]] = {}
    globs: list[list[str]] = []
    paths: list[list[str]] = []
    for visible, tree in re.findall(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([\w:{][^;]*);", text):
        for used, local in _used(tree):
            paths.append(used)
            if visible and local == "*":
                globs.append(used[:-1])
            elif visible:
                exports[local] = used
    plain = re.sub(r"\buse\s+[^;]+;", "", text)
    names = "|".join(["crate", "self", "super", *children])
    paths += [
        found.replace(" ", "").split("::")
        for found in re.findall(rf"(?<![\w:])(?:{names})(?:::\w+)+", plain)
    ]
    files[module] = File(str(path.relative_to(source)), children, exports, globs, paths)
    folder = path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")
    for name, child in children.items():
        for place in (folder / f"{name}.rs", folder / name / "mod.rs"):
            if place.exists():
                _read(source, place, child, files)


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


def _resolve(
    files: dict[Module, File], module: Module, path: list[str], depth: int = 0
) -> Module | None:
    """The module that defines what a path names; none where it leads out of the crate."""
    if depth > 20:
        return None
    at, rest = module, list(path)
    if rest[0] == "crate":
        at, rest = (), rest[1:]
    elif rest[0] in ("self", "super"):
        while rest and rest[0] in ("self", "super"):
            at = at[:-1] if rest.pop(0) == "super" else at
    elif rest[0] not in files[module].children:
        return None
    while rest:
        file = files.get(at)
        if file is None:
            return None
        name = rest[0]
        if name in file.children and file.children[name] in files:
            at, rest = file.children[name], rest[1:]
        elif name in file.exports:
            return _resolve(files, at, file.exports[name] + rest[1:], depth + 1) or at
        else:
            return at if at in files else None
    return at if at in files else None


def _code(text: bytes) -> str:
    """The text without comments, strings, attributes and what is compiled for tests alone."""
    blank = bytearray(text)
    for start, end in _left_out(_PARSER.parse(text).root_node):
        blank[start:end] = re.sub(rb"[^\n]", b" ", text[start:end])
    return blank.decode()


def _left_out(node: Node) -> Iterator[tuple[int, int]]:
    for_tests = False
    for child in node.children:
        if child.type in ("line_comment", "block_comment", "string_literal", "raw_string_literal"):
            yield child.start_byte, child.end_byte
            continue
        if child.type == "attribute_item":
            for_tests |= re.search(rb"\bcfg\(.*\btest\b", child.text or b"") is not None
            yield child.start_byte, child.end_byte
            continue
        if for_tests:
            yield child.start_byte, child.end_byte
        else:
            yield from _left_out(child)
        for_tests = False


_PARSER = Parser(Language(tree_sitter_rust.language()))

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
