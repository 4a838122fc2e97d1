"""Imports run down: a room may import only from rooms below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stack.paths import ROOT

pytestmark = pytest.mark.core

PACKAGE = ROOT / "sidecar"
LAYERS = (
    {"__main__"},
    {"cli"},
    {"server", "supervisor"},
    {"extproc", "identity"},
    {"exchange"},
    {"surfaces", "prompts", "output", "triton", "admission", "egress", "conformance"},
    {"images"},
    {"responses"},
)
DEPTH = {room: depth for depth, layer in enumerate(LAYERS) for room in layer}
# The configuration is read at the top and handed down as plain values.
CONFIG_READERS = {"cli", "server", "supervisor"}


def rooms() -> set[str]:
    """The modules and packages directly under ``sidecar``."""
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return (modules | packages) - {"__init__"}


def imports(path: Path) -> set[str]:
    """The rooms that a file imports, wherever in the file, relative imports resolved."""
    package = path.parent.relative_to(ROOT).parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            found.update(f"{base}{node.module + '.' if node.module else ''}{alias.name}" for alias in node.names)
    names = (name.split(".") for name in found)
    return {name[1] for name in names if name[0] == "sidecar" and len(name) > 1}


def allowed(importer: str, imported: str) -> bool:
    if imported == "config":
        return importer in CONFIG_READERS
    return importer == imported or DEPTH[imported] > DEPTH[importer]


FILES = [path.relative_to(ROOT) for path in sorted(PACKAGE.rglob("*.py"))]


def test_every_room_has_its_place() -> None:
    assert rooms() <= DEPTH.keys() | {"config"}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_run_down(path: Path) -> None:
    room = path.parts[1].removesuffix(".py")
    if room == "config":
        assert imports(ROOT / path) <= {"config"}
    elif room != "__init__":
        upward = {imported for imported in imports(ROOT / path) if not allowed(room, imported)}
        assert not upward, f"{path} imports {', '.join(sorted(upward))}"


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("exchange", "output", True),
        ("output", "exchange", False),
        ("output", "prompts", False),
        ("responses", "triton", False),
        ("triton", "images", True),
        ("images", "egress", False),
        ("conformance", "responses", True),
        ("conformance", "surfaces", False),
        ("server", "config", True),
        ("exchange", "config", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, expected: bool) -> None:
    assert allowed(importer, imported) is expected
