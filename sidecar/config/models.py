"""The configuration as values: every setting and limit, with its default and what it means, stands here and only here.

The rooms take these models as they are; all of them are immutable. ``docs/configuration.md`` is made from them by
``responses-sidecar docs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from sidecar.config.admission import AdmissionConfig
from sidecar.config.directives import DirectiveConfig
from sidecar.config.identity import IdentityConfig
from sidecar.config.listeners import Address, AdminConfig, UsageFeedConfig
from sidecar.config.model import AnyModelConfig, Count, Seconds
from sidecar.config.processors import shares, usable_processors
from sidecar.config.section import Section
from sidecar.config.store import StoreConfig
from sidecar.config.stored import StoredConfig
from sidecar.config.telemetry import TelemetryConfig
from sidecar.config.upstreams import NativeModelConfig, UpstreamConfig

_TritonName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
_Text = Annotated[str, Field(min_length=1, max_length=256)]

MOST_WORKERS = 256
"""The most worker processes of a node."""


def _auto(workers: Any) -> Any:
    return shares(usable_processors()).workers if workers == "auto" else workers


UNIX = "unix:"
"""What stands before the path of a Unix socket where there may be a ``host:port`` too."""


class TritonConfig(Section):
    """Where Triton is asked about its models, and called where Envoy does not do that."""

    address: Address | None = Field(
        default=None,
        description="`host:port` of Triton's gRPC service, asked again and again what its models are, and, where"
        " Envoy has no egress listener, whether they answer; needed where one of the models is Triton's",
    )
    upstream: Annotated[str, Field(pattern=r"^(unix:.+|[^\s:]+:\d{1,5})$")] | None = Field(
        default=None,
        description="whom the wire `origin` calls: `unix:PATH`, the socket of Envoy's egress listener, or `host:port`"
        " of a Triton on the same machine, which then has neither retries, load balancing nor health checks before it."
        " On any wire canaries go there; by default to `egress.sock` in `sockets`",
    )

    @property
    def upstream_server(self) -> Path | tuple[str, int] | None:
        """The same as a path, or a host and a port."""
        if self.upstream is None:
            return None
        if self.upstream.startswith(UNIX):
            return Path(self.upstream.removeprefix(UNIX))
        host, _, port = self.upstream.rpartition(":")
        return host, int(port)


class ReasoningMarkers(Section):
    """The texts that stand before and after a model's reasoning."""

    begin: _Text
    end: _Text


class ModelConfig(AnyModelConfig):
    """A model that Triton serves."""

    triton_model: _TritonName = Field(description="what Triton calls it; a model has this and `tokenizer`, or `routes`")
    tokenizer: Path = Field(
        description="directory with `tokenizer.json`, `tokenizer_config.json` and the chat template"
    )
    stop: tuple[_Text, ...] = Field(default=(), description="strings that end an answer and are not part of it")
    late_system: Literal["user", "leading"] = Field(
        default="user",
        description="what becomes of a system message inside the conversation where the chat template takes none there:"
        " `user`: a user turn that starts with `[system]`; `leading`: a part of the system message at the start",
    )
    reasoning_format: str | ReasoningMarkers = Field(
        default="auto",
        description="where the model's reasoning stands: a name of [models.md](models.md), `none`, markers of its own,"
        " or `auto`: read it off the chat template",
    )
    tool_format: str = Field(
        default="auto",
        description="how the model writes calls: a name of [models.md](models.md), `none`, or `auto`: read it off the"
        " chat template",
    )
    unguided: Literal["refuse", "prompt"] = Field(
        default="refuse",
        description="what becomes of `tool_choice: required`, a named function or a JSON format where the runtime has"
        " no guided decoding: `refuse` the request, or `prompt` the model in words",
    )


TAGS = ("(triton)", "(native)")
"""The kinds of models, which pydantic has as steps in the paths of faults; no key of the file looks like them."""


def _kind(model: Any) -> str:
    has_routes = "routes" in model if isinstance(model, dict) else isinstance(model, NativeModelConfig)
    return TAGS[has_routes]


_AnyModel = Annotated[
    Annotated[ModelConfig, Tag(TAGS[False])] | Annotated[NativeModelConfig, Tag(TAGS[True])], Discriminator(_kind)
]


class ImageLimits(Section):
    """Images in requests, and the fetches of those that a URL names."""

    allow_http: bool = Field(default=False, description="fetch images over plain http too")
    ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(min_length=1)] = Field(
        default=(443, 80), description="ports that images are fetched from"
    )
    max_bytes: Count = Field(default=10 * 1024 * 1024, description="bytes of one image's file")
    max_pixels: Count = Field(
        default=40_000_000,
        description="width times height of one image; a decoding process may take 28 bytes of memory for each",
    )
    max_total_bytes: Count = Field(
        default=32 * 1024 * 1024,
        description="bytes of all images of a request as they are passed on, a repeated one each time",
    )
    max_total_pixels: Count = Field(default=80_000_000, description="pixels of all different images of a request")
    max_urls: Count = Field(default=32, description="different URLs in a request")
    max_hosts: Count = Field(
        default=8, description="different hosts that a request's images are fetched from, redirects included"
    )
    timeout: Seconds = Field(default=10.0, description="seconds for the fetch of one image, redirects included")
    lookup_timeout: Seconds = Field(default=3.0, description="seconds for finding the addresses of a host")
    decode_timeout: Seconds = Field(
        default=10.0, description="seconds of processor time for decoding one image, after which its process is ended"
    )
    total_timeout: Seconds = Field(default=30.0, description="seconds for all images of a request")
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="images that one request fetches at a time"
    )
    decoders: Annotated[int, Field(ge=1, le=64)] = Field(default=2, description="decoding processes of each worker")
    worker_max_bytes: Count = Field(
        default=256 * 1024 * 1024,
        description="bytes of images that each worker holds at a time; beyond it, requests with images get 503."
        " Several requests of one client hold no more together than they leave to others",
    )


class SurfaceSettings(Section):
    """What an operator decides about one surface."""

    failed_event: bool = Field(
        default=True,
        description="send `response.failed` before the `error` event of a stream that fails: some read only that",
    )
    reasoning_summary: Literal["off", "mirror"] = Field(
        default="off",
        description="`mirror`: where a request asks for a summary (`reasoning.summary`), show the reasoning as one too,"
        " for clients that show nothing else",
    )
    encrypted_reasoning: Literal["off", "sealed"] = Field(
        default="off",
        description="`sealed`: where a request's `include` asks for `reasoning.encrypted_content`, add the reasoning as"
        " sealed text, and read it when it comes back; needs `sealing_key`",
    )


class BureauSettings(SurfaceSettings):
    """The same for the bureau surface."""

    failed_event: bool = False
    encrypted_reasoning: Literal["off", "sealed"] = "sealed"
    store: bool = Field(
        default=True,
        description="keep responses that clients ask to be stored, which needs `stored`; with `false`, or without"
        " accounts, such requests are refused",
    )


class SurfacesSettings(Section):
    """The surfaces by name."""

    node: SurfaceSettings = SurfaceSettings()
    bureau: BureauSettings | None = Field(
        default=None,
        description="the second surface, `/v1/responses`, which is there where this is set, be it to `{}`: settings as"
        " of `node`, of which `failed_event` is false by default and `encrypted_reasoning` is `sealed`, which needs"
        " `sealing_key`; it stores responses, which needs `stored.master_key`, unless `store` is `false`; see"
        " [bureau.md](bureau.md)",
    )


class Config(Section):
    """The whole file."""

    node: Annotated[str, Field(min_length=1, max_length=128)] = Field(description="this node's name, told in answers")
    workers: Annotated[
        int,
        BeforeValidator(_auto, json_schema_input_type=Annotated[int, Field(ge=1, le=MOST_WORKERS)] | Literal["auto"]),
        Field(ge=1, le=MOST_WORKERS),
    ] = Field(
        default="auto",
        validate_default=True,
        description="worker processes; `auto`: half of the processors that the process may use, rounded up. Envoy's"
        " `--concurrency` is best the other half: [performance.md](performance.md#threads-and-processors)",
    )
    sockets: Path = Field(
        description="directory of the workers' Unix sockets, `worker-<i>.sock` from 0 on; Envoy's cluster lists them"
    )
    transport: Literal["http2", "grpc_aio"] = Field(
        default="http2",
        description="what speaks to Envoy: `http2`, the sidecar's own server, or `grpc_aio`, gRPC's, which takes"
        " several times as much processor time for each token",
    )
    triton: TritonConfig = TritonConfig()
    upstreams: tuple[UpstreamConfig, ...] = ()
    models: Annotated[tuple[_AnyModel, ...], Field(min_length=1)]
    surfaces: SurfacesSettings = SurfacesSettings()
    accounts: bool = Field(
        default=True,
        description="whether it is known here who a request is from, and what it uses is accounted for. With `false`"
        " there is no store, everybody whom Envoy lets in is served and nothing is limited: that is the ingress's work,"
        " and Envoy's configuration has no `ext_authz` filter, which nobody would answer;"
        " settings of the store, of identity, of admission and of prices are then refused",
    )
    store: StoreConfig = StoreConfig()
    stored: StoredConfig = StoredConfig()
    identity: IdentityConfig = IdentityConfig()
    admission: AdmissionConfig = AdmissionConfig()
    directives: tuple[DirectiveConfig, ...] = ()
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        default="USD", description="the currency of all prices and credits, as ISO 4217 has it"
    )
    admin: AdminConfig = AdminConfig()
    usage_feed: UsageFeedConfig = UsageFeedConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    images: ImageLimits = ImageLimits()
    keep_alive: Seconds = Field(
        default=15.0, description="seconds of silence in a stream after which a comment is sent"
    )
    watchdog: Seconds = Field(
        default=10.0, description="seconds without a turn of a worker's event loop after which another takes its place"
    )
    drain: Seconds = Field(
        default=30.0,
        description="seconds that a stopping worker lets its streams run, from when"
        " Envoy has heard of it, 2.5 seconds after the signal",
    )
    sealing_key: Path | None = Field(
        default=None,
        description="a file of 64 random bytes in base64 (`openssl rand -base64 64`), the same on all nodes that serve"
        " the same clients. With several, one after the other, the first seals, and all open what they have sealed",
    )
    log_level: Literal["info", "debug"] = Field(
        default="info",
        description="`debug` adds the model runtime's own words about its failures, which may hold parts of prompts",
    )

    log_format: Literal["auto", "json", "text"] = Field(
        default="auto",
        description="the form of the log, which goes to standard error: `json`, an object a line, `text`, lines for"
        " people, or `auto`: text where standard error is a terminal. See [traces.md](traces.md#logs)",
    )

    @model_validator(mode="after")
    def _names_are_unique(self) -> Config:
        names = [name for model in self.models for name in (model.name, *model.aliases)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is the name or alias of more than one model, or twice of one")
        return self

    @model_validator(mode="after")
    def _triton_is_somewhere(self) -> Config:
        index = next((index for index, model in enumerate(self.models) if isinstance(model, ModelConfig)), None)
        if index is not None and self.triton.address is None:
            raise ValueError(f"triton.address is needed: models[{index}] is Triton's")
        return self

    @model_validator(mode="after")
    def _routes_lead_somewhere(self) -> Config:
        known = [upstream.name for upstream in self.upstreams]
        twice = next((name for name in known if known.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is the name of more than one of the upstreams")
        for index, model in enumerate(self.models):
            for position, route in enumerate(model.routes if isinstance(model, NativeModelConfig) else ()):
                if route.upstream not in known:
                    key = f"models[{index}].routes[{position}].upstream"
                    raise ValueError(f"{key}: there is no {route.upstream} among the upstreams")
        return self

    @model_validator(mode="after")
    def _sealing_has_a_key(self) -> Config:
        for name, surface in (("node", self.surfaces.node), ("bureau", self.surfaces.bureau)):
            if surface is not None and surface.encrypted_reasoning == "sealed" and self.sealing_key is None:
                raise ValueError(f"surfaces.{name}.encrypted_reasoning is sealed, which needs a sealing_key")
        return self

    @property
    def stores(self) -> bool:
        """Whether responses can be stored."""
        return self.accounts and self.surfaces.bureau is not None and self.surfaces.bureau.store

    @model_validator(mode="after")
    def _storing_has_a_key(self) -> Config:
        if self.stores and self.stored.master_key is None and self.stored.master_key_env is None:
            raise ValueError(
                "surfaces.bureau stores responses, which needs stored.master_key or stored.master_key_env;"
                " with surfaces.bureau.store: false it stores none"
            )
        return self

    @model_validator(mode="after")
    def _catalog_is_unambiguous(self) -> Config:
        entries = [model.catalog for model in self.models if model.catalog is not None]
        slugs = [entry.slug for entry in entries]
        aliases = [(alias.name, alias.team) for entry in entries for alias in entry.aliases]
        twice = next((slug for slug in slugs if slugs.count(slug) > 1), None)
        twice = twice or next((name for name, team in aliases if aliases.count((name, team)) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is the slug or alias of more than one model of the catalog, or twice of one")
        return self

    @model_validator(mode="after")
    def _directives_are_unambiguous(self) -> Config:
        levels = [(one.team, one.project, one.environment) for one in self.directives]
        if len(set(levels)) < len(levels):
            raise ValueError("two of the directives are for the same level")
        return self

    @model_validator(mode="after")
    def _accounts_are_kept_for_what_needs_them(self) -> Config:
        """What would be heeded by nobody is refused: whoever wrote it counts on it."""
        if not self.accounts and (key := next(self._keys_of_accounts(), None)) is not None:
            raise ValueError(f"{key} is set, which needs accounts")
        return self

    def _keys_of_accounts(self) -> Iterator[str]:
        for name in ("store", "stored", "identity", "admission", "usage_feed"):
            yield from getattr(self, name).keys_set(name)
        if "currency" in self.model_fields_set:
            yield "currency"
        if self.directives:
            yield "directives"
        yield from (f"models[{index}].prices" for index, model in enumerate(self.models) if model.prices)

    @property
    def metrics(self) -> Path:
        """The directory in which the workers keep their metrics."""
        return self.sockets / "metrics"

    @property
    def recent(self) -> Path:
        """The directory in which they keep what they have done of late."""
        return self.sockets / "recent"

    @property
    def health(self) -> Path:
        """The directory in which the workers tell each other whether the models answer."""
        return self.sockets / "health"

    def socket(self, index: int) -> Path:
        """The socket of the worker ``index``."""
        return self.sockets / f"worker-{index}.sock"

    def new_socket(self, process: int) -> Path:
        """The same of a worker, by its process id, until it takes its place."""
        return self.sockets / f"new-{process}"
