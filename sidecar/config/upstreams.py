"""Settings of upstreams that speak the Responses API themselves, and of the models that they serve."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, model_validator

from sidecar.config.model import AnyModelConfig, ModelName
from sidecar.config.section import Section

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
_PORTS = {"http": 80, "https": 443}
# What a model has only where Triton serves it.
_OF_TRITON = ("triton_model", "tokenizer", "stop", "late_system", "reasoning_format", "tool_format", "unguided")


class UpstreamConfig(Section):
    """One upstream, which Envoy calls: the sidecar tells it the path and sends the credential."""

    name: _Name = Field(description="what `routes` call it; Envoy's cluster is `native_<name>`")
    url: str = Field(
        description="its base URL, what stands before `/responses`: `https://host/v1`. Plain `http` only to `localhost`"
        " or a private address, unless `allow_http`"
    )
    key_file: Path | None = Field(
        default=None,
        description="a file that others cannot read, with the key that is sent to it as `authorization: Bearer …`, read"
        " again when it has changed; without it none is sent",
    )
    ca_file: Path | None = Field(
        default=None,
        description="a file of the certificates (PEM) that its own must be signed by; by default the system's",
    )
    vendor: ModelName | None = Field(default=None, description="whose it is; by default the `name`")
    no_training: bool = Field(
        default=False,
        description="its vendor has agreed to train on nothing that it is sent: where a directive demands that, only"
        " such upstreams are called ([directives.md](directives.md))",
    )
    allow_http: bool = Field(
        default=False, description="call it without TLS wherever it is: whoever is on the way reads keys and prompts"
    )

    @model_validator(mode="after")
    def _url_is_usable(self) -> Self:
        url = urlsplit(self.url)
        if url.scheme not in _PORTS or not url.hostname or not self.url.isascii() or not self.url.isprintable():
            raise ValueError("url must be of the form https://host/path")
        if url.username is not None or "?" in self.url or "#" in self.url or " " in self.url:
            raise ValueError("url has no user, query or fragment; a key stands in key_file")
        _port(url)
        if url.scheme == "http" and not self.allow_http and not _is_near(url.hostname):
            raise ValueError("url is plain http to a host that is not of this network: https, or allow_http: true")
        if url.scheme == "http" and self.ca_file is not None:
            raise ValueError("ca_file is set, which plain http has no use for")
        return self

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.vendor or self.name

    @property
    def host(self) -> str:
        """The host of its URL, without the brackets of an IPv6 address."""
        host = urlsplit(self.url).hostname
        assert host is not None, "the URL has been checked"
        return host

    @property
    def is_address(self) -> bool:
        """Whether its host is an IP address, and no name."""
        return _address(self.host) is not None

    @property
    def port(self) -> int:
        """The port of its URL, or its scheme's."""
        return _port(urlsplit(self.url))

    @property
    def authority(self) -> str:
        """Host and port as its URL has them: the value of the ``host`` header."""
        return urlsplit(self.url).netloc

    @property
    def tls(self) -> bool:
        """Whether it is called with TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def path(self) -> str:
        """The path of its URL, without a slash at the end: what stands before ``/responses``."""
        return urlsplit(self.url).path.rstrip("/")


class RouteConfig(Section):
    """One way to a model."""

    upstream: _Name = Field(description="the `name` of one of the `upstreams`; routes are tried in their order")
    model: ModelName = Field(description="what the upstream calls the model")
    features: tuple[Literal["text.format", "images", "tools", "web_search", "compaction"], ...] = Field(
        default=(),
        description="what the upstream is certified for with this model; a request that asks for more takes another"
        " route: `text.format` (a JSON format), `images`, `tools`, `web_search`, `compaction`",
    )


class NativeModelConfig(AnyModelConfig):
    """A model that upstreams serve which speak the Responses API themselves."""

    routes: Annotated[tuple[RouteConfig, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _is_not_triton_s(cls, values: Any) -> Any:
        if isinstance(values, dict) and (key := next((key for key in _OF_TRITON if key in values), None)) is not None:
            raise ValueError(f"{key} is of a model that Triton serves; this one has routes")
        return values

    @model_validator(mode="after")
    def _routes_differ(self) -> Self:
        routes = [(route.upstream, route.model) for route in self.routes]
        if len(set(routes)) < len(routes):
            raise ValueError("two of the routes are the same")
        return self


def _port(url: SplitResult) -> int:
    try:
        port = url.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("the port of url must be from 1 to 65535")
    return port or _PORTS[url.scheme]


def _is_near(host: str) -> bool:
    """Whether ``host`` is this machine or of this network by its address alone; names can lead anywhere."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_private


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
