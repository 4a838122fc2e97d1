"""What is imported is declared, what is declared is locked, and a node installs what the tests run with."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stack.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
DEVELOPMENT = RUNTIME + [Requirement(line) for extra in PROJECT["optional-dependencies"].values() for line in extra]
RUNTIME_ROOMS = ["sidecar", "conformance", "examples"]
DEVELOPMENT_ROOMS = ["stack", "bench", "tests"]
OURS = {*RUNTIME_ROOMS, *DEVELOPMENT_ROOMS}
# Programs that the tests run in environments of their own, with locks of their own.
FOREIGN = ROOT / "tests" / "e2e" / "python"


@cache
def imports(room: str) -> dict[str, list[str]]:
    """The foreign top-level modules that a room's files import, wherever in the file, each with the files."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        if FOREIGN in path.parents or "node_modules" in path.parts:
            continue
        for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in sys.stdlib_module_names and name not in OURS:
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


def undeclared(modules: dict[str, list[str]], declared: list[Requirement]) -> dict[str, list[str]]:
    """Those of ``modules`` that no declared distribution provides."""
    names = {canonicalize_name(requirement.name) for requirement in declared}
    providers = packages_distributions()
    return {
        module: files
        for module, files in modules.items()
        if names.isdisjoint(map(canonicalize_name, providers.get(module, ())))
    }


def locked(lock: str) -> dict[tuple[str, str], set[str]]:
    """The hashes that a lock pins, by package and version."""
    pins: dict[tuple[str, str], set[str]] = {}
    for entry in re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text()):
        pinned = Requirement(entry.splitlines()[0].rstrip(" \\"))
        pins[canonicalize_name(pinned.name), str(pinned.specifier)[2:]] = set(re.findall(r"--hash=(\S+)", entry))
    return pins


@pytest.mark.parametrize(
    ("room", "declared"),
    [(room, RUNTIME) for room in RUNTIME_ROOMS] + [(room, DEVELOPMENT) for room in DEVELOPMENT_ROOMS],
    ids=[*RUNTIME_ROOMS, *DEVELOPMENT_ROOMS],
)
def test_what_a_room_imports_is_declared(room: str, declared: list[Requirement]) -> None:
    assert not undeclared(imports(room), declared)


def test_an_import_that_is_not_declared_is_found() -> None:
    modules = {"grpc": ["a.py"], "jinja2": ["b.py"], "no_such_module": ["c.py"]}
    assert undeclared(modules, [Requirement("grpcio")]) == {"jinja2": ["b.py"], "no_such_module": ["c.py"]}


@pytest.mark.parametrize(("lock", "declared"), [("requirements.lock", RUNTIME), ("requirements-dev.lock", DEVELOPMENT)])
def test_a_lock_holds_what_is_declared(lock: str, declared: list[Requirement]) -> None:
    pins = locked(lock)
    for requirement in declared:
        versions = [version for name, version in pins if name == canonicalize_name(requirement.name)]
        assert versions, f"{lock} has no {requirement.name}"
        assert all(map(requirement.specifier.contains, versions)), f"{lock} has {requirement.name} {versions}"


def test_a_node_installs_a_part_of_what_the_tests_run_with() -> None:
    development = locked("requirements-dev.lock")
    differing = {pin for pin, hashes in locked("requirements.lock").items() if development.get(pin) != hashes}
    assert not differing
    assert len(locked("requirements.lock")) < len(development)
