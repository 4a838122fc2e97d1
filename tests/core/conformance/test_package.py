"""The checker as a package of its own: what it offers, what it needs, and that its example is true."""

import ast
import doctest
import sys
from pathlib import Path

import pytest

import conformance

FILES = sorted(Path(conformance.__file__).parent.glob("*.py"))
NEEDED = {"conformance", "jsonschema"}


def test_the_example_is_true() -> None:
    failed, tried = doctest.testmod(conformance)
    assert (failed, tried > 0) == (0, True)


def test_what_the_package_offers_is_there() -> None:
    assert [name for name in conformance.__all__ if not hasattr(conformance, name)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_package_needs_nothing_else(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= NEEDED | sys.stdlib_module_names
