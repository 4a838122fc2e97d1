"""Settings from the environment stand in the place of the file's."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.config.environment import overridden
from sidecar.config.load import ConfigError, load
from tests.core.config.test_config import GOOD, write


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TRITON__ADDRESS": "t:1"}, {"a": 1, "triton": {"address": "t:1", "upstream": "u"}}),
        ({"A": "2"}, {"a": 2, "triton": {"address": "x", "upstream": "u"}}),
        ({"STORE__URL_FILE": "f"}, {"a": 1, "triton": {"address": "x", "upstream": "u"}, "store": {"url_file": "f"}}),
        ({"A": "[1, b]"}, {"a": [1, "b"], "triton": {"address": "x", "upstream": "u"}}),
        ({"A": ""}, {"a": None, "triton": {"address": "x", "upstream": "u"}}),
        ({}, {"a": 1, "triton": {"address": "x", "upstream": "u"}}),
    ],
)
def test_a_variable_sets_the_key_of_its_name(variables: dict[str, str], expected: dict[str, Any]) -> None:
    data = {"a": 1, "triton": {"address": "x", "upstream": "u"}}
    environment = {f"RESPONSES_SIDECAR__{name}": value for name, value in variables.items()}
    assert overridden(data, {"PATH": "/bin", "RESPONSES_API_KEY": "k", **environment}) == expected
    assert data == {"a": 1, "triton": {"address": "x", "upstream": "u"}}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RESPONSES_SIDECAR__TRITON__ADRESS", "t:1", r"^environment: \w+ADRESS: triton\.adress: there is no such key"),
        ("RESPONSES_SIDECAR__WORKERS", "many", r"^environment: RESPONSES_SIDECAR__WORKERS: workers: "),
        ("RESPONSES_SIDECAR__NODE__NAME", "x", r"environment: RESPONSES_SIDECAR__NODE__NAME: node holds no keys"),
        ("RESPONSES_SIDECAR__DRAIN", ".inf", r"^environment: RESPONSES_SIDECAR__DRAIN: drain: "),
        ("RESPONSES_SIDECAR__NODE", "[", r"environment: RESPONSES_SIDECAR__NODE: not YAML"),
    ],
)
def test_one_that_is_no_use_is_named(
    name: str, value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path, GOOD))


def test_it_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_SIDECAR__TRITON__ADDRESS", "10.0.0.7:9001")
    monkeypatch.setenv("RESPONSES_SIDECAR__KEEP_ALIVE", "5")
    config = load(write(tmp_path, yaml.safe_dump(GOOD)))
    assert (config.triton.address, config.keep_alive) == ("10.0.0.7:9001", 5)
