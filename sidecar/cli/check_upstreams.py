"""The checks of upstreams that speak the Responses API: each is connected to from here, as Envoy will."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from itertools import chain
from pathlib import Path

from sidecar.cli.finding import BAD, GOOD, REFUSED, Finding
from sidecar.config.load import ConfigError, read_upstream_key
from sidecar.config.models import Config
from sidecar.config.upstreams import NativeModelConfig, UpstreamConfig

_SECONDS = 10.0
# A list of models may be long; what is longer is not looked at.
_MOST_BYTES = 4 * 1024 * 1024
# The key and the value of gRPC metadata that chooses the wire.
_WIRE = re.compile(r"""x-responses-wire["']?,?\s+["']?value["']?:\s+["']?(direct|origin)\b""")


def check_upstreams(config: Config) -> Iterator[Finding]:
    """Ask each upstream for its models, all at once: whether it is there, is who it says, and takes its key."""
    if config.upstreams:
        with ThreadPoolExecutor(max_workers=8) as asking:
            models = [_models_at(upstream, config) for upstream in config.upstreams]
            yield from chain.from_iterable(asking.map(_check, config.upstreams, models))


def check_upstreams_envoy(config: Config, path: Path) -> Iterator[Finding]:
    """Whether Envoy's configuration, in YAML or JSON, can call the upstreams."""
    text = path.read_text(errors="replace") if config.upstreams else ""
    if (wire := _WIRE.search(text)) is not None:
        words = f"{path} has routes of the wire {wire[1]}, and only the tunnel wire calls them"
        yield Finding(REFUSED, f"upstreams: {words}")
    for upstream in config.upstreams:
        for name in (f"native_{upstream.name}", f"native.{upstream.name}"):
            if not re.search(rf"\b{re.escape(name)}(?![\w-])", text):
                yield Finding(BAD, f"upstream {upstream.name}: {path} has no {name}")


def _models_at(upstream: UpstreamConfig, config: Config) -> list[str]:
    """What models are called at ``upstream``."""
    natives = [model for model in config.models if isinstance(model, NativeModelConfig)]
    routes = [route for model in natives for route in model.routes if route.upstream == upstream.name]
    return list(dict.fromkeys(route.model for route in routes))


def _check(upstream: UpstreamConfig, models: list[str]) -> list[Finding]:
    who, url = f"upstream {upstream.name}", f"{upstream.url.rstrip('/')}/models"
    try:
        status, body = _get(upstream)
    except ConfigError as error:
        return [Finding(REFUSED, f"{who}: {error}")]
    except ssl.SSLCertVerificationError as error:
        return [Finding(BAD, f"{who}: {upstream.authority} shows a wrong certificate ({error.verify_message})")]
    except ssl.SSLError as error:
        return [Finding(BAD, f"{who}: {upstream.authority} does not speak TLS ({error.reason})")]
    except socket.gaierror as error:
        return [Finding(BAD, f"{who}: {upstream.host} has no address ({error.strerror})")]
    except OSError as error:
        return [Finding(BAD, f"{who}: {upstream.authority} cannot be reached ({error.strerror or error})")]
    except http.client.HTTPException as error:
        return [Finding(BAD, f"{who}: {upstream.authority} does not speak HTTP ({type(error).__name__})")]
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        key = "its key" if upstream.key_file is not None else "a request without a key: key_file is missing"
        return [Finding(BAD, f"{who}: {upstream.authority} refuses {key} ({status})")]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return [Finding(BAD, f"{who}: GET {url} is answered with {status}")]
    found = Finding(GOOD, f"{who}: {upstream.authority} answers{' over TLS' if upstream.tls else ''}")
    listed = _listed(status, body)
    if listed is None:
        return [
            found,
            Finding(GOOD, f"{who}: GET {url} lists no models; what routes name was not looked for", note=True),
        ]
    missing = [model for model in models if model not in listed]
    return [found, *(Finding(BAD, f"{who}: it lists no model {model}") for model in missing)]


def _get(upstream: UpstreamConfig) -> tuple[int, bytes]:
    """Status and body of the list of models."""
    key = read_upstream_key(upstream)
    connection: http.client.HTTPConnection
    if upstream.tls:
        try:
            context = ssl.create_default_context(cafile=upstream.ca_file)
        except OSError as error:
            raise ConfigError(f"ca_file: {upstream.ca_file} cannot be used ({error.strerror})") from None
        connection = http.client.HTTPSConnection(upstream.host, upstream.port, timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(upstream.host, upstream.port, timeout=_SECONDS)
    try:
        headers = {"host": upstream.authority, **({"authorization": f"Bearer {key}"} if key else {})}
        connection.request("GET", f"{upstream.path}/models", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    finally:
        connection.close()


def _listed(status: int, body: bytes) -> set[str] | None:
    """The names in OpenAI's list of models; ``None`` where there is no such list."""
    try:
        data = json.loads(body)["data"] if status == HTTPStatus.OK else None
        return {str(model["id"]) for model in data} if data is not None else None
    except (ValueError, KeyError, TypeError):
        return None
