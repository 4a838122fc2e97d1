"""The configuration as values: every setting and limit, with its default, stands here and nowhere else.

The rooms take these models as they are; all of them are immutable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_Seconds = Annotated[float, Field(gt=0)]
_Address = Annotated[str, Field(pattern=r"^[^\s:]+:\d{1,5}$")]
_ModelName = Annotated[str, Field(min_length=1, max_length=128)]
_TritonName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TritonConfig(_Section):
    """Where Triton is asked about its models: ``address`` is ``host:port`` of its gRPC service."""

    address: _Address


class RequestLimits(_Section):
    """What a model accepts in one request: bytes of the body, and numbers of items, tools and images."""

    max_request_bytes: Annotated[int, Field(ge=1)] = 10 * 1024 * 1024
    max_items: Annotated[int, Field(ge=1)] = 4096
    max_tools: Annotated[int, Field(ge=1)] = 128
    max_images: Annotated[int, Field(ge=0)] = 32


class ReasoningMarkers(_Section):
    """The texts that stand before and after a model's reasoning."""

    begin: Annotated[str, Field(min_length=1, max_length=256)]
    end: Annotated[str, Field(min_length=1, max_length=256)]


class ModelConfig(_Section):
    """One served model.

    ``name`` is what clients ask for, ``aliases`` are further names for it, ``triton_model`` is what Triton calls it,
    ``tokenizer`` a Hugging Face tokenizer directory with its chat template, ``context_length`` the tokens of prompt and
    answer together. ``stop`` are strings that end an answer. ``late_system`` is what becomes of a system message inside
    the conversation where the template takes none there: ``user`` makes it a user turn that starts with ``[system]``,
    ``leading`` moves it to the system message at the start. ``reasoning_format`` and ``tool_format`` are how the model
    writes, ``auto`` reads it off the chat template. ``unguided`` is what becomes of a demanded call or schema where the
    runtime has no guided decoding: ``refuse`` it, or ``prompt`` the model in words. Timeouts are seconds of silence.
    """

    name: _ModelName
    aliases: tuple[_ModelName, ...] = ()
    triton_model: _TritonName
    tokenizer: Path
    context_length: Annotated[int, Field(ge=2, le=2**31 - 1)]
    stop: tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] = ()
    late_system: Literal["user", "leading"] = "user"
    reasoning_format: str | ReasoningMarkers = "auto"
    tool_format: str = "auto"
    unguided: Literal["refuse", "prompt"] = "refuse"
    limits: RequestLimits = RequestLimits()
    first_token_timeout: _Seconds = 120.0
    token_timeout: _Seconds = 60.0


class ImageLimits(_Section):
    """Images in requests, and the fetches of those that a URL names.

    ``max_bytes`` (of the encoded file) and ``max_pixels`` hold for one image. ``timeout`` is seconds for one fetch,
    ``concurrency`` how many run at a time for one request. Only ``ports`` are connected to, and plain http is refused
    unless ``allow_http``.
    """

    allow_http: bool = False
    ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(min_length=1)] = (443, 80)
    max_bytes: Annotated[int, Field(ge=1)] = 10 * 1024 * 1024
    max_pixels: Annotated[int, Field(ge=1)] = 40_000_000
    timeout: _Seconds = 10.0
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4


class SurfaceSettings(_Section):
    """One surface.

    ``failed_event`` sends ``response.failed`` before the ``error`` event of a stream that fails. ``reasoning_summary``
    ``mirror`` shows reasoning as its own summary too, where a request asks for one: several clients show only that.
    ``encrypted_reasoning`` ``sealed`` adds it as sealed ``encrypted_content``, where a request's ``include`` asks for
    that, and reads it when it comes back: several clients send back only that. It needs the file's ``sealing_key``.
    """

    failed_event: bool = True
    reasoning_summary: Literal["off", "mirror"] = "off"
    encrypted_reasoning: Literal["off", "sealed"] = "off"


class SurfacesSettings(_Section):
    """The surfaces by name."""

    node: SurfaceSettings = SurfaceSettings()


class Config(_Section):
    """The whole file.

    ``sockets`` is the directory of the workers' Unix sockets, ``worker-<i>.sock``. ``keep_alive`` is the silence in a
    stream after which a comment is sent; ``drain`` how long a stopping worker lets its streams run. Both are seconds.
    ``sealing_key`` is a file of 64 random bytes in base64, the same on all nodes that serve the same clients.
    ``log_level`` ``debug`` adds what the model runtime said about its failures, which may hold parts of prompts.
    """

    node: Annotated[str, Field(min_length=1, max_length=128)]
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    sockets: Path
    triton: TritonConfig
    models: Annotated[tuple[ModelConfig, ...], Field(min_length=1)]
    surfaces: SurfacesSettings = SurfacesSettings()
    images: ImageLimits = ImageLimits()
    keep_alive: _Seconds = 15.0
    drain: _Seconds = 30.0
    sealing_key: Path | None = None
    log_level: Literal["info", "debug"] = "info"

    @model_validator(mode="after")
    def _names_are_unique(self) -> Config:
        names = [name for model in self.models for name in (model.name, *model.aliases)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is the name or alias of more than one model, or twice of one")
        return self

    @model_validator(mode="after")
    def _sealing_has_a_key(self) -> Config:
        if self.surfaces.node.encrypted_reasoning == "sealed" and self.sealing_key is None:
            raise ValueError("surfaces.node.encrypted_reasoning is sealed, which needs a sealing_key")
        return self

    def socket(self, index: int) -> Path:
        """The socket of the worker ``index``."""
        return self.sockets / f"worker-{index}.sock"
