"""Imports run down: a room may import only from rooms below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stack.paths import ROOT

PACKAGE = ROOT / "sidecar"
LAYERS = (
    {"__main__"},
    {"cli"},
    {"server"},
    {"admin", "feed"},
    {"extproc", "identity", "telemetry", "envoy"},
    {"exchange"},
    {"surfaces", "prompts", "generation", "guidance", "backends", "egress", "admission", "stored"},
    {"images"},
    {"responses", "config", "store"},
    {"killable"},
    {"fairness", "grpc_h2", "memory"},
)
DEPTH = {room: depth for depth, layer in enumerate(LAYERS) for room in layer}
ALONE = {"generation", "config", "fairness", "store", "grpc_h2", "memory"}
"""Rooms that import nothing of ours."""
ONLY_FROM = {"store": {"admission", "stored", "identity", "admin", "feed", "server", "cli"}}
"""Rooms that not all above them may import. Those from ``admin`` on put the parts together."""


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
    if importer == imported:
        return True
    if importer in ALONE or importer not in ONLY_FROM.get(imported, {importer}):
        return False
    return DEPTH[imported] > DEPTH[importer]


FILES = [path.relative_to(ROOT) for path in sorted(PACKAGE.rglob("*.py"))]


def test_every_room_has_its_place() -> None:
    assert rooms() <= DEPTH.keys()


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_run_down(path: Path) -> None:
    room = path.parts[1].removesuffix(".py")
    if room != "__init__":
        upward = {imported for imported in imports(ROOT / path) if not allowed(room, imported)}
        assert not upward, f"{path} imports {', '.join(sorted(upward))}"


@pytest.mark.parametrize("path", sorted((ROOT / "conformance").rglob("*.py")), ids=lambda path: path.name)
def test_the_checker_of_endpoints_stands_alone(path: Path) -> None:
    assert not imports(path)


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("exchange", "generation", True),
        ("generation", "exchange", False),
        ("generation", "responses", False),
        ("prompts", "generation", False),
        ("responses", "backends", False),
        ("backends", "images", True),
        ("backends", "config", True),
        ("config", "responses", False),
        ("images", "egress", False),
        ("egress", "killable", True),
        ("killable", "config", False),
        ("killable", "fairness", True),
        ("fairness", "config", False),
        ("extproc", "grpc_h2", True),
        ("grpc_h2", "fairness", False),
        ("extproc", "exchange", True),
        ("exchange", "extproc", False),
        ("identity", "exchange", True),
        ("identity", "admission", True),
        ("exchange", "admission", True),
        ("admission", "exchange", False),
        ("admission", "store", True),
        ("stored", "store", True),
        ("stored", "admission", False),
        ("identity", "store", True),
        ("exchange", "store", False),
        ("telemetry", "store", False),
        ("store", "config", False),
        ("envoy", "surfaces", True),
        ("server", "envoy", True),
        ("exchange", "envoy", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, expected: bool) -> None:
    assert allowed(importer, imported) is expected
