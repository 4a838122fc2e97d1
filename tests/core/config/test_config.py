"""The configuration: what is right is taken, what is wrong is named by its key."""

import base64
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.config.load import ConfigError, load, read_master_keys, read_sealing_keys, read_store_url
from sidecar.config.models import Config, ModelConfig

MODEL = {"name": "m", "triton_model": "tensorrt_llm", "tokenizer": "tokenizers/m", "context_length": 2048}
PRICE = {"from": "2026-01-01", "input": "0.15", "output": "0.60"}
GOOD: dict[str, Any] = {"node": "n1", "sockets": "run", "triton": {"address": "127.0.0.1:8001"}, "models": [MODEL]}


def write(directory: Path, content: Any) -> Path:
    path = directory / "sidecar.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def write_secret(path: Path, content: str, mode: int = 0o600) -> None:
    path.write_text(content)
    path.chmod(mode)


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = Path("/tmp") / f"responses-config-{tmp_path.name}"
    path.mkdir()
    config = load(write(path, GOOD))
    assert config.socket(1) == path / "run" / "worker-1.sock"
    (model,) = config.models
    assert isinstance(model, ModelConfig)
    assert model.tokenizer == path / "tokenizers" / "m"
    (path / "sidecar.yaml").unlink()
    path.rmdir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers: Input should be greater than or equal to 1"),
        ({"workers": "2"}, "workers: a whole number is needed"),
        ({"workers": True}, "workers: a whole number is needed"),
        ({"accounts": "false"}, "accounts: true or false is needed"),
        ({"accounts": 0}, "accounts: true or false is needed"),
        ({"drain": "5"}, "drain: a number is needed"),
        ({"images": {"ports": ["443"]}}, "images.ports: a whole number is needed"),
        ({"admission": {"defaults": {"tokens_per_minute": "5"}}}, "tokens_per_minute: a whole number is needed"),
        ({"wrokers": 2}, "wrokers: there is no such key"),
        ({"triton": {"address": "localhost"}}, "triton.address: host:port is needed"),
        ({"admin": {"address": "127.0.0.1:65536"}}, "admin.address: a port is a number from 1 to 65535"),
        ({"triton": {}}, "triton.address is needed: models[0] is Triton's"),
        ({"models": []}, "models: at least 1 is needed"),
        ({"models": [{**MODEL, "context_length": "x"}]}, "models[0].context_length: a whole number is needed"),
        ({"models": [{**MODEL, "triton_model": "a b"}]}, "models[0].triton_model: String should match pattern"),
        ({"models": [{**MODEL, "limits": {"max_items": 0}}]}, "models[0].limits.max_items: Input should be greater"),
        (
            {"models": [{**MODEL, "reasoning_format": {"begin": "x"}}]},
            "models[0].reasoning_format.ReasoningMarkers.end",
        ),
        ({"models": [MODEL, MODEL]}, "m is the name or alias of more than one model"),
        (
            {"models": [MODEL, {**MODEL, "name": "n", "aliases": ["m"]}]},
            "m is the name or alias of more than one model",
        ),
        ({"models": [{**MODEL, "aliases": ["m"]}]}, "m is the name or alias of more than one model, or twice of one"),
        ({"models": [{**MODEL, "aliases": [""]}]}, "models[0].aliases[0]: String should have at least 1 character"),
        ({"models": [{**MODEL, "late_system": "drop"}]}, "models[0].late_system: Input should be 'user' or 'leading'"),
        ({"models": [{**MODEL, "prices": [{**PRICE, "input": 0.15}]}]}, "models[0].prices[0].input: a text is needed"),
        ({"models": [{**MODEL, "prices": [{**PRICE, "output": "-1"}]}]}, "models[0].prices[0].output: String should"),
        ({"models": [{**MODEL, "prices": [{"input": "1", "output": "1"}]}]}, "models[0].prices[0].from: this key is"),
        ({"models": [{**MODEL, "prices": [PRICE, PRICE]}]}, "models[0]: two of the prices hold from 2026-01-01 on"),
        ({"currency": "euro"}, "currency: String should match pattern"),
        ({"admission": {"queue_seconds": 121}}, "admission.queue_seconds: Input should be less than or equal to 120"),
        (
            {"admission": {"defaults": {"tokens_per_minute": -1}}},
            "admission.defaults.tokens_per_minute: Input should be greater than or equal to 0",
        ),
        (
            {"admission": {"defaults": {"period_tokens": 5}}},
            "admission.defaults: period and period_tokens are needed together",
        ),
        ({"log_level": "trace"}, "log_level: Input should be 'info' or 'debug'"),
        ({"surfaces": {"node": {"failed_event": "perhaps"}}}, "surfaces.node.failed_event: true or false is needed"),
        (
            {"surfaces": {"bureau": {"encrypted_reasoning": "off"}}},
            "surfaces.bureau stores responses, which needs stored.master_key or stored.master_key_env",
        ),
        (
            {"surfaces": {"bureau": {}}},
            "surfaces.bureau.encrypted_reasoning is sealed, which needs a sealing_key",
        ),
        (
            {"models": [{**MODEL, "catalog": {"slug": "chat"}}]},
            "models[0].catalog.slug: String should match pattern",
        ),
        (
            {"models": [{**MODEL, "catalog": {"slug": "a/b"}}, {**MODEL, "name": "n", "catalog": {"slug": "a/b"}}]},
            "a/b is the slug or alias of more than one model of the catalog, or twice of one",
        ),
        (
            {"models": [{**MODEL, "catalog": {"slug": "a/b", "aliases": [{"name": "o/f"}, {"name": "o/f"}]}}]},
            "o/f is the slug or alias of more than one model of the catalog, or twice of one",
        ),
        (
            {"models": [{**MODEL, "catalog": {"slug": "a/b", "aliases": [{"name": "o/f", "preset": {"top_k": 1}}]}}]},
            "models[0].catalog.aliases[0].preset.top_k: there is no such key",
        ),
        ({"images": {"max_pixels": 0}}, "images.max_pixels: Input should be greater than or equal to 1"),
        ({"images": {"ports": []}}, "images.ports: at least 1 is needed"),
        ({"identity": {"cache_seconds": 5}}, "identity.cache_seconds: Input should be less than or equal to 4"),
        ({"identity": {"trusted": {"organization": {}}}}, "identity.trusted.organization: either a header or a claim"),
        ({"store": {"url": "mysql://host/db"}}, "store.url: String should match pattern"),
        ({"store": {"url": "sqlite:///a.db", "url_file": "b"}}, "store: either url or url_file is needed, not both"),
        ({"sockets": "/" + "x" * 100}, "sockets: a directory for Unix sockets has at most 90 characters"),
    ],
)
def test_a_mistake_is_named_by_its_key(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write(tmp_path, {**GOOD, "sockets": "/run/responses", **change})
    with pytest.raises(ConfigError) as raised:
        load(path)
    assert f"{path}: " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file: a mapping of keys is needed"),
        ("- a\n", "the file: a mapping of keys is needed"),
        ("a: [", "not YAML"),
        ("node: a\nnode: b\n", "the key node stands twice"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.yaml")


SEALED = {"surfaces": {"node": {"encrypted_reasoning": "sealed"}}, "sealing_key": "key"}


def test_a_sealing_key_is_a_file_beside_the_configuration(tmp_path: Path) -> None:
    write_secret(tmp_path / "key", base64.encodebytes(bytes(range(64))).decode())
    path = load(write(tmp_path, GOOD | {"sockets": "/tmp/r"} | SEALED)).sealing_key
    assert path == tmp_path / "key"
    assert read_sealing_keys(tmp_path / "key") == [bytes(range(64))]


def test_several_sealing_keys_stand_one_after_the_other(tmp_path: Path) -> None:
    keys = [bytes(range(start, start + 64)) for start in range(3)]
    write_secret(tmp_path / "key", "".join(base64.encodebytes(key).decode() for key in keys))
    assert read_sealing_keys(tmp_path / "key") == keys


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("secret!", "is not base64"),
        ("c2hvcnQ=", "5 bytes; 64 are needed"),
        ("====", "is not base64"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_sealing_key_is_refused_without_a_word_of_it(tmp_path: Path, key: str | None, words: str) -> None:
    if key is not None:
        write_secret(tmp_path / "key", key)
    with pytest.raises(ConfigError, match=words) as refused:
        load(write(tmp_path, GOOD | {"sockets": "/tmp/r"} | SEALED))
    assert str(refused.value).startswith(f"{tmp_path / 'sidecar.yaml'}: sealing_key: {tmp_path / 'key'} ")
    assert key is None or key not in str(refused.value)


def with_master_key(directory: Path, **stored: str) -> Config:
    return load(write(directory, GOOD | {"sockets": "/tmp/r", "stored": stored}))


def test_a_master_key_is_a_file_beside_the_configuration_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [bytes(range(32)), bytes(range(32, 64))]
    lines = "".join(f"{base64.b64encode(key).decode()}\n" for key in keys)
    write_secret(tmp_path / "master", lines)
    assert read_master_keys(with_master_key(tmp_path, master_key="master").stored) == keys
    monkeypatch.setenv("MASTER", lines)
    assert read_master_keys(with_master_key(tmp_path, master_key_env="MASTER").stored) == keys


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("", "must hold 32 bytes"),
        ("c2VjcmV0", "must hold 32 bytes"),
        ("sécret", "is not base64"),
    ],
)
def test_a_wrong_master_key_is_refused_without_a_word_of_it(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        write_secret(tmp_path / "master", content)
    with pytest.raises(ConfigError) as refused:
        read_master_keys(with_master_key(tmp_path, master_key="master").stored)
    assert str(refused.value).startswith(f"stored.master_key: {tmp_path / 'master'} {words}")
    assert not content or content not in str(refused.value)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660])
def test_a_key_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    write_secret(tmp_path / "key", base64.b64encode(bytes(64)).decode(), mode)
    write_secret(tmp_path / "master", base64.b64encode(bytes(32)).decode(), mode)
    with pytest.raises(ConfigError, match=f"sealing_key: {tmp_path / 'key'} has the mode {mode:04o}"):
        load(write(tmp_path, GOOD | {"sockets": "/tmp/r"} | SEALED))
    with pytest.raises(ConfigError, match=f"stored.master_key: {tmp_path / 'master'} has the mode {mode:04o}"):
        read_master_keys(with_master_key(tmp_path, master_key="master").stored)


def test_a_key_may_be_read_by_a_group(tmp_path: Path) -> None:
    write_secret(tmp_path / "master", base64.b64encode(bytes(32)).decode(), 0o440)
    assert read_master_keys(with_master_key(tmp_path, master_key="master").stored) == [bytes(32)]


def test_a_master_key_has_one_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="either master_key or master_key_env is needed, not both"):
        with_master_key(tmp_path, master_key="a", master_key_env="B")
    with pytest.raises(ConfigError, match="which needs master_key or master_key_env"):
        read_master_keys(with_master_key(tmp_path).stored)


def test_sealing_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a sealing_key") as refused:
        load(write(tmp_path, GOOD | {"surfaces": SEALED["surfaces"]}))
    assert "Value error" not in str(refused.value)


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ({}, "sqlite:///{base}/state/ledger.db"),
        ({"state": "/var/lib/responses"}, "sqlite:////var/lib/responses/ledger.db"),
        ({"url": "sqlite:///ledger.db"}, "sqlite:///{base}/ledger.db"),
        ({"url": "sqlite:////var/ledger.db"}, "sqlite:////var/ledger.db"),
        ({"url": "postgresql://node@db/ledger"}, "postgresql://node@db/ledger"),
        ({"url_file": "secret"}, "postgresql://node:password@db/ledger"),
    ],
)
def test_the_store_is_found(tmp_path: Path, store: dict[str, str], url: str) -> None:
    (tmp_path / "secret").write_text("postgresql://node:password@db/ledger\n")
    config = load(write(tmp_path, {**GOOD, "sockets": "/tmp", "store": store}))
    assert read_store_url(config.store) == url.format(base=tmp_path)


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("hunter2", "holds no URL that begins with")])
def test_a_file_without_a_store_url_is_told_without_its_content(
    tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "secret").write_text(content)
    config = load(write(tmp_path, {**GOOD, "sockets": "/tmp", "store": {"url_file": "secret"}}))
    with pytest.raises(ConfigError, match=words) as refused:
        read_store_url(config.store)
    assert "hunter2" not in str(refused.value)


def test_prices_are_text_and_begin_on_a_day(tmp_path: Path) -> None:
    model = {**MODEL, "prices": [{**PRICE, "from": date(2026, 1, 1)}]}
    (price,) = load(write(tmp_path, {**GOOD, "models": [model]})).models[0].prices
    assert (price.since, price.input, price.cached_input, price.output) == (date(2026, 1, 1), "0.15", None, "0.60")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"admission": {"defaults": {"requests_per_minute": 5}}}, "admission.defaults.requests_per_minute"),
        ({"admission": {"queue_seconds": 0}}, "admission.queue_seconds"),
        ({"store": {"state": "state"}}, "store.state"),
        ({"store": {"url": None, "when_down": "spool"}}, "store.when_down"),
        ({"identity": {"cache_seconds": 2}}, "identity.cache_seconds"),
        ({"currency": "USD"}, "currency"),
        ({"models": [MODEL, {**MODEL, "name": "n", "prices": [PRICE]}]}, "models[1].prices"),
        ({"usage_feed": {"address": "127.0.0.1:9100"}}, "usage_feed.address"),
        ({"identity": {"trusted": {"organization": {"header": "x-tenant"}}}}, "identity.trusted.organization.header"),
    ],
)
def test_without_accounts_nothing_may_be_set_that_needs_them(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    nothing = {"store": {"retention_days": None}, "admission": {"defaults": {}}, "admin": {"address": "127.0.0.1:9101"}}
    assert not load(write(tmp_path, {**GOOD, "sockets": "/tmp", "accounts": False, **nothing})).accounts
    with pytest.raises(ConfigError, match=re.escape(f" {named} is set, which needs accounts")):
        load(write(tmp_path, {**GOOD, "sockets": "/tmp", "accounts": False, **change}))
