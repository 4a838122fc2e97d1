"""Reads the configuration's YAML file; a mistake is reported with the key's path and what was expected."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from pathlib import Path
from stat import S_IMODE
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sidecar.config.environment import PREFIX, key_path, overridden
from sidecar.config.listeners import ADDRESS
from sidecar.config.models import TAGS, UNIX, Config, ModelConfig
from sidecar.config.store import SQLITE, STORE_URL, StoreConfig
from sidecar.config.stored import StoredConfig
from sidecar.config.upstreams import UpstreamConfig

_WORDS = {
    "extra_forbidden": "there is no such key",
    "missing": "this key is needed",
    "model_type": "a mapping of keys is needed",
    "int_parsing": "a whole number is needed",
    "int_type": "a whole number is needed",
    "float_parsing": "a number is needed",
    "float_type": "a number is needed",
    "bool_parsing": "true or false is needed",
    "bool_type": "true or false is needed",
    "string_type": "a text is needed",
}
# sockaddr_un holds 107 characters, and the name of a worker's socket needs some of them.
_MAX_SOCKETS_PATH = 90
_SEALING_KEY_BYTES = 64
_MASTER_KEY_BYTES = 32
# What is mounted into a container often belongs to another user, and is read as a member of its group.
_NOT_FOR_OTHERS = 0o037


class ConfigError(Exception):
    """A configuration that cannot be used; the message has a line for each fault, which begins with the key's path.

    Of one that :func:`load` refuses, the lines begin with the file.
    """

    def in_file(self, path: Path) -> ConfigError:
        """The same with the file at the begin of each line."""
        return ConfigError("\n".join(f"{path}: {line}" for line in str(self).splitlines()))


def read(path: Path) -> Any:
    """What stands in the file, whatever that is.

    Raises:
        ConfigError: the file cannot be read, or is not YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({_where(error)})") from error


def load(path: Path) -> Config:
    """Read and check the file, and what the environment sets in its place.

    Relative paths are relative to the directory that ``path`` names, also where a link stands there: what it leads to
    may be another directory with each change, as in Kubernetes.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or a key is wrong.
    """
    data = read(path)
    try:
        config = Config.model_validate(overridden(data, os.environ))
    except ValidationError as error:
        raise ConfigError("\n".join(_describe(error, path))) from error
    except ValueError as error:
        raise ConfigError(f"environment: {error}") from None
    config = _resolve(config, path.absolute().parent)
    if len(str(config.sockets)) > _MAX_SOCKETS_PATH:
        raise ConfigError(f"{path}: sockets: a directory for Unix sockets has at most {_MAX_SOCKETS_PATH} characters")
    if config.sealing_key is not None:
        try:
            read_sealing_keys(config.sealing_key)
        except ConfigError as error:
            raise error.in_file(path) from None
    for index, upstream in enumerate(config.upstreams):
        try:
            read_upstream_key(upstream)
        except ConfigError as error:
            raise ConfigError(f"upstreams[{index}].{error}").in_file(path) from None
    return config


def read_sealing_keys(path: Path) -> list[bytes]:
    """The keys in the file ``path``: 64 bytes each, in base64, whose padding tells where one ends.

    Raises:
        ConfigError: the file cannot be read, or others may, or it holds something else. The message holds nothing of
            it.
    """
    text = _read_secret(f"sealing_key: {path}", path)
    try:
        keys = [b64decode(key, validate=True) for key in re.findall("[^=]+=*|=+", "".join(text.split()))]
    except ValueError:
        raise ConfigError(f"sealing_key: {path} is not base64") from None
    if not keys or any(len(key) != _SEALING_KEY_BYTES for key in keys):
        lengths = " and ".join(str(len(key)) for key in keys) or "no"
        raise ConfigError(f"sealing_key: {path} holds {lengths} bytes; {_SEALING_KEY_BYTES} are needed for each key")
    return keys


def read_master_keys(stored: StoredConfig) -> list[bytes]:
    """The master keys that ``stored`` names, as :func:`load` has resolved its path: 32 bytes each.

    Raises:
        ConfigError: none is named, or what is named cannot be read, or others may read it, or it holds something else.
            The message holds nothing of it.
    """
    if stored.master_key_env is not None:
        where, text = f"stored.master_key_env: {stored.master_key_env}", os.environ.get(stored.master_key_env, "")
    elif stored.master_key is not None:
        where = f"stored.master_key: {stored.master_key}"
        text = _read_secret(where, stored.master_key)
    else:
        raise ConfigError("stored: responses are stored sealed, which needs master_key or master_key_env")
    try:
        keys = [b64decode(line, validate=True) for line in text.split()]
    except ValueError:
        raise ConfigError(f"{where} is not base64") from None
    if not keys or any(len(key) != _MASTER_KEY_BYTES for key in keys):
        raise ConfigError(f"{where} must hold {_MASTER_KEY_BYTES} bytes in base64, or several of these in lines")
    return keys


def read_upstream_key(upstream: UpstreamConfig) -> str:
    """The key that is sent to ``upstream``, as :func:`load` has resolved its path; empty where it has none.

    Raises:
        ConfigError: the file cannot be read, or others may, or it holds something else. The message holds nothing of
            it.
    """
    if upstream.key_file is None:
        return ""
    key = _read_secret(f"key_file: {upstream.key_file}", upstream.key_file).strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError(f"key_file: {upstream.key_file} must hold one key, of printable ASCII without spaces")
    return key


def read_store_url(store: StoreConfig) -> str:
    """The URL of the store, as :func:`load` has resolved its paths. It may hold a password.

    Raises:
        ConfigError: the file that holds it cannot be read, or holds something else. The message holds nothing of it.
    """
    if store.url_file is None:
        return store.url or f"{SQLITE}{store.state / 'ledger.db'}"
    url = _read_text(f"store.url_file: {store.url_file}", store.url_file).strip()
    if not re.match(STORE_URL, url):
        raise ConfigError(f"store.url_file: {store.url_file} holds no URL that begins with sqlite:/// or postgresql://")
    return _absolute(url, store.url_file.parent)


def store_url_for_commands(config: Config) -> str:
    """The same for a command, which may be asked for what a configuration does without.

    Raises:
        ConfigError: as before, or there is no store.
    """
    if not config.accounts:
        raise ConfigError("accounts is false in this configuration: there is no store")
    return read_store_url(config.store)


def _read_secret(where: str, path: Path) -> str:
    """The same of a file that only its owner may change, and its group at most may read."""
    try:
        mode = S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"{where} cannot be read ({error.strerror})") from None
    if mode & _NOT_FOR_OTHERS:
        raise ConfigError(f"{where} has the mode {mode:04o}: others may read or change it; chmod 600")
    return _read_text(where, path)


def _read_text(where: str, path: Path) -> str:
    """The text of a file that a setting names; raises :class:`ConfigError` with ``where`` where it cannot be had."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{where} cannot be read ({reason})") from None


def _where(error: yaml.YAMLError) -> str:
    """What the parser found, and in which line; it names the text that it was given a string."""
    return " ".join(str(error).replace('in "<unicode string>", ', "in ").split())


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that takes no key twice; YAML's own takes the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for index, key in enumerate(keys) if key in keys[:index]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _resolve(config: Config, base: Path) -> Config:
    models = tuple(
        model.model_copy(update={"tokenizer": base / model.tokenizer}) if isinstance(model, ModelConfig) else model
        for model in config.models
    )
    upstreams = tuple(
        upstream.model_copy(
            update={key: base / path for key in ("key_file", "ca_file") if (path := getattr(upstream, key))}
        )
        for upstream in config.upstreams
    )
    sealing_key = base / config.sealing_key if config.sealing_key else None
    store = config.store.model_copy(
        update={
            "state": base / config.store.state,
            "url": _absolute(config.store.url, base) if config.store.url else None,
            "url_file": base / config.store.url_file if config.store.url_file else None,
        }
    )
    stored = config.stored.model_copy(
        update={"master_key": base / config.stored.master_key if config.stored.master_key else None}
    )
    server = config.triton.upstream
    if server is not None and server.startswith(UNIX):
        server = f"{UNIX}{base / server.removeprefix(UNIX)}"
    return config.model_copy(
        update={
            "sockets": base / config.sockets,
            "triton": config.triton.model_copy(update={"upstream": server}),
            "upstreams": upstreams,
            "models": models,
            "sealing_key": sealing_key,
            "store": store,
            "stored": stored,
        }
    )


def _absolute(url: str, base: Path) -> str:
    """A SQLite URL with the whole path of its file, any other as it is."""
    file = url.removeprefix(SQLITE)
    return url if file == url else f"{SQLITE}{base / file}"


def _describe(error: ValidationError, file: Path) -> list[str]:
    set_outside: dict[tuple[int | str, ...], str]
    set_outside = {tuple(key_path(name)): name for name in os.environ if name.startswith(PREFIX)}
    faults = error.errors()
    # A list that lost its faulty members is reported as too short as well.
    around = {fault["loc"][:depth] for fault in faults for depth in range(len(fault["loc"]))}
    faults = [fault for fault in faults if fault["type"] != "too_short" or fault["loc"] not in around]
    lines = []
    for fault in faults:
        above = (fault["loc"][:depth] for depth in range(len(fault["loc"]) + 1))
        name = next((set_outside[path] for path in above if path in set_outside), None)
        source = file if name is None else f"environment: {name}"
        lines.append(f"{source}: {_path(fault['loc'])}: {_words(fault)}")
    return lines


def _words(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    if context.get("pattern") == ADDRESS:
        return "host:port is needed"
    if fault["type"] == "too_short":
        return f"at least {context['min_length']} is needed"
    return _WORDS.get(fault["type"], fault["msg"].removeprefix("Value error, "))


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if step in TAGS:
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path or "the file"
