"""``docs/configuration.md``, from the configuration's models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sidecar.config.models import Config

_HEAD = """\
# Configuration

<!-- Made from sidecar/config by `responses-sidecar docs`. -->

One YAML file, given to `responses-sidecar serve --config FILE`. Relative paths are relative to the file. A mistake is
reported with the key's path, and the command ends with status 2: a key that does not exist, a value of the wrong kind,
a format that is not known, a tokenizer or chat template that cannot be used. `responses-sidecar check --config FILE`
tries everything that serving needs: the configuration, the directories and addresses, the store, each tokenizer and
chat template, Triton and each model's contract, each of `upstreams` and its key, and with `--envoy-config FILE` Envoy's
configuration too.

`responses-sidecar config schema` prints the JSON Schema, by which editors complete and check the file, and
`responses-sidecar config show --config FILE` what is in force: each value with its default and where it comes from.

What differs from one node to the next can come from environment variables, which win over the file: the key's path in
capitals, after `RESPONSES_SIDECAR__`, with two underscores before each further step. `triton.address` is
`RESPONSES_SIDECAR__TRITON__ADDRESS`. A value is YAML, as it would stand in the file; a list is set whole, and
secrets belong in files.

```yaml
node: n1
workers: 4
sockets: /run/responses
triton:
  address: 127.0.0.1:8001
models:
  - name: qwen3-8b
    triton_model: tensorrt_llm
    tokenizer: /models/qwen3
    context_length: 32768
```

"""

_MIDDLE = """\

Triton does not tell a model's context length, tokenizer or chat template; that is why they stand here. A model must be
decoupled (`model_transaction_policy { decoupled: true }`) to stream.

How Triton serves the model is recognised from its tensors; [contracts.md](contracts.md) says what each way can tell,
and which parameters of the model's own configuration matter. Triton is asked every few seconds, and at once when a
request fails in a way that tells of another model: it may be restarted, and a model replaced under its name, while the
sidecar runs.

A model with `routes` is served by upstreams that speak the Responses API themselves: Envoy calls them, and
[bureau.md](bureau.md#native-models) says how. They need the tunnel wire.

Images named by URL are fetched from public addresses only, over https unless `images.allow_http`; an image in a `data:`
URL needs no fetch. A model takes images when its chat template places them and its Triton model has an input for them
(`image_url_input`, `image_url` or `image`).

## Processes

`serve` is a supervisor that starts the workers, and starts those again that end. When no worker serves and none can be
started, several times running, it says so and ends with status 1. SIGTERM or SIGINT lets the workers drain: they take
no new requests, and what still runs after `drain` ends with an error; within ten seconds more all has ended. A second
signal ends them at once.

## Changing it while it runs

A changed file is loaded within seconds, and so is one that a Kubernetes ConfigMap leads to; SIGHUP to the supervisor
(`kill -HUP`, not to the workers) has it loaded at once, changed or not. The files of `sealing_key`,
`stored.master_key` and `store.url_file` count as its parts. What else models need, as their tokenizers, is read again
whenever the configuration is loaded, so after a change of these alone send SIGHUP. Keys of `upstreams` are read every
two seconds without all that. Environment variables are those of the start.

The supervisor checks the file, and starts new workers with it beside those that serve. When all of them have loaded
their models and listen, they take all new requests, and the others end when the streams have that they serve: a
stream goes on with the settings that it began with, however long it takes, and no request is refused meanwhile. That
takes, for as long as such streams last, the memory and the connections to the store of twice the workers, and at
first the processor time of their start.

A file that cannot be used changes nothing, in no worker. Nor does one that a worker cannot load, for a tokenizer that
is not there or an address that cannot be had. The log says why, and
[`responses_config_last_reload_successful`](metrics.md) is 0 until one has been loaded, or what is in force stands in
the file again. `responses-sidecar check --config FILE` says before what would come of it.

All settings take effect this way except these, of which a change is told in a warning and counts from the next start:
`node`, `workers`, `sockets`, `accounts`, `currency`, `store.state`, `store.when_down` and where the store is; another
password in `store.url_file` does take effect. What Envoy has to do with a setting, as for new `upstreams`, limits
above [its own](#envoys-own-limits) or another surface, is changed there too, before it is here.

With the transport `grpc_aio` a request that comes in the moment of the change may be refused with 503.

## Envoy's own limits

What the configuration allows, Envoy must allow too: Envoy's timeouts must be longer than the sidecar's, which can tell
the client what happened, and its limits of size larger. What `responses-sidecar envoy render` writes keeps to that
([envoy.md](envoy.md)): these values are the least and grow with the configuration; `client_stall_timeout` falls.

"""


_WORDS = {int: "integer", float: "number", bool: "true or false", str: "text", Path: "path", date: "date"}
# pydantic's constraints, and how they are told.
_BOUNDS = {"ge": "from", "gt": "above", "le": "to"}


class EnvoyLimit(NamedTuple):
    """A limit of Envoy's beside the settings that it must fit: ``value`` is its default."""

    variable: str
    value: int
    meaning: str


ENVOY_LIMITS = (
    EnvoyLimit(
        "max_connections",
        4096,
        "connections of all clients together; further ones are closed. As many requests have a tunnel to Triton at a"
        " time, further ones wait. Envoy needs three file descriptors for each and 512 for itself (`ulimit -n`), and"
        " ends where it gets none",
    ),
    EnvoyLimit(
        "request_timeout",
        60,
        "seconds until the last byte of a request has come; the time of the answer does not count",
    ),
    EnvoyLimit(
        "max_request_bytes",
        40 * 1024 * 1024,
        "bytes of a request's body; more than the largest `models[].limits.max_request_bytes`: the sidecar reads a body"
        " to its end and names its size",
    ),
    EnvoyLimit(
        "egress_idle_timeout",
        180,
        "seconds of silence between Triton and Envoy; more than every `models[].first_token_timeout` and"
        " `models[].token_timeout`",
    ),
    EnvoyLimit(
        "ingress_idle_timeout",
        300,
        "seconds of silence towards the client; more than `egress_idle_timeout`, `keep_alive`, and the 240 seconds that"
        " the images of a request may take",
    ),
    EnvoyLimit(
        "native_idle_timeout",
        660,
        "seconds of silence between an upstream of `upstreams` and Envoy; more than the 600 that a request may take in"
        " all, and than every `models[].first_token_timeout` and `models[].token_timeout` of a model with `routes`."
        " With `upstreams`, `ingress_idle_timeout` must be more than this",
    ),
    EnvoyLimit(
        "client_stall_timeout",
        30,
        "seconds for which a client may read nothing; less than every `models[].token_timeout`: while Envoy waits for"
        " the client it does not read from Triton, and the sidecar cannot tell that from a silent model",
    ),
)


def configuration_page() -> str:
    """The whole page."""
    rows = "".join(_row(path, field) for path, field in _settings(Config, ""))
    limits = "".join(f"| `{limit.variable}` | {limit.value} | {limit.meaning} |\n" for limit in ENVOY_LIMITS)
    return (
        f"{_HEAD}| Key | Type | Default | Meaning |\n|---|---|---|---|\n{rows}"
        f"{_MIDDLE}| Variable | Default | Meaning |\n|---|---|---|\n{limits}"
    )


def _settings(section: type[BaseModel], path: str) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting below ``section``, with its path, in the order of the models."""
    for name, field in section.model_fields.items():
        inner = _sections(field.annotation)
        if not inner:
            yield path + (field.alias or name), field
            continue
        many = "[]" if get_origin(field.annotation) is tuple else ""
        # What sections of several kinds have in common is told once.
        yield from dict(row for kind in inner for row in _settings(kind, f"{path}{name}{many}.")).items()


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The section that a field is, or is a list of; several where it is one of several kinds."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (tuple, Annotated):
        return _sections(arguments[0])
    if origin in (Union, UnionType):
        kinds = [_sections(part) for part in arguments]
        return [section for kind in kinds for section in kind] if all(kinds) else []
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def _row(path: str, field: FieldInfo) -> str:
    assert field.description, f"{path} has no description"
    default = "required" if field.is_required() else _default(field.default)
    return f"| `{path}` | {_type(field.annotation, field.metadata)} | {default} | {field.description} |\n"


def _default(value: Any) -> str:
    if value in ((), None):
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"`{value}`" if isinstance(value, str | Path) else json.dumps(value)


def _type(annotation: Any, metadata: list[Any]) -> str:
    """A type in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *more = arguments
        return _type(inner, [part for info in more for part in getattr(info, "metadata", [info])])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_type(part, []) for part in arguments if part is not NoneType)
    if origin is tuple:
        return f"list of {_type(arguments[0], [])}"
    if _sections(annotation):
        return f"`{{{', '.join(f'{name}: …' for name in annotation.model_fields)}}}`"
    return " ".join([_WORDS[annotation], *_bounds(metadata)])


def _bounds(metadata: list[Any]) -> Iterator[str]:
    for constraint in metadata:
        for name, word in _BOUNDS.items():
            if (bound := getattr(constraint, name, None)) is not None:
                yield f"{word} {bound}"
