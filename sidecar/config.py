"""The configuration: one YAML file.

Every key has one meaning here; a mistake is reported with the key's path and what was expected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_Seconds = Annotated[float, Field(gt=0)]
_Address = Annotated[str, Field(pattern=r"^[^\s:]+:\d{1,5}$")]
_ModelName = Annotated[str, Field(min_length=1, max_length=128)]
_TritonName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]

_WORDS = {"extra_forbidden": "there is no such key", "model_type": "a mapping of keys is needed"}
# sockaddr_un holds 107 characters, and the name of a worker's socket needs some of them.
_MAX_SOCKETS_PATH = 90


class ConfigError(Exception):
    """A configuration that cannot be used; the message names the file and each key at fault."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TritonConfig(_Section):
    """Where Triton is asked about its models: ``address`` is ``host:port`` of its gRPC service."""

    address: _Address


class LimitsConfig(_Section):
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
    limits: LimitsConfig = LimitsConfig()
    first_token_timeout: _Seconds = 120.0
    token_timeout: _Seconds = 60.0


class ImagesConfig(_Section):
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


class SurfaceConfig(_Section):
    """One surface. ``failed_event`` sends ``response.failed`` before the ``error`` event of a stream that fails."""

    failed_event: bool = False


class SurfacesConfig(_Section):
    """The surfaces by name."""

    node: SurfaceConfig = SurfaceConfig()


class Config(_Section):
    """The whole file.

    ``sockets`` is the directory of the workers' Unix sockets, ``worker-<i>.sock``. ``keep_alive`` is the silence in a
    stream after which a comment is sent; ``drain`` how long a stopping worker lets its streams run. Both are seconds.
    ``log_level`` ``debug`` adds what the model runtime said about its failures, which may hold parts of prompts.
    """

    node: Annotated[str, Field(min_length=1, max_length=128)]
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    sockets: Path
    triton: TritonConfig
    models: Annotated[tuple[ModelConfig, ...], Field(min_length=1)]
    surfaces: SurfacesConfig = SurfacesConfig()
    images: ImagesConfig = ImagesConfig()
    keep_alive: _Seconds = 15.0
    drain: _Seconds = 30.0
    log_level: Literal["info", "debug"] = "info"

    @model_validator(mode="after")
    def _names_are_unique(self) -> Config:
        names = [name for model in self.models for name in (model.name, *model.aliases)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is the name or alias of more than one model, or twice of one")
        return self

    def socket(self, index: int) -> Path:
        """The socket of the worker ``index``."""
        return self.sockets / f"worker-{index}.sock"


def load(path: Path) -> Config:
    """Read and check the file; relative paths in it are relative to the file's directory.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or a key is wrong.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)
        config = Config.model_validate(data)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {line}" for line in _describe(error))) from error
    config = _resolve(config, path.resolve().parent)
    if len(str(config.sockets)) > _MAX_SOCKETS_PATH:
        raise ConfigError(f"{path}: sockets: a directory for Unix sockets has at most {_MAX_SOCKETS_PATH} characters")
    return config


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that takes no key twice; YAML's own takes the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for index, key in enumerate(keys) if key in keys[:index]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _resolve(config: Config, base: Path) -> Config:
    models = tuple(model.model_copy(update={"tokenizer": base / model.tokenizer}) for model in config.models)
    return config.model_copy(update={"sockets": base / config.sockets, "models": models})


def _describe(error: ValidationError) -> list[str]:
    faults = error.errors()
    # A list that lost its faulty members is reported as too short as well.
    around = {fault["loc"][:depth] for fault in faults for depth in range(len(fault["loc"]))}
    faults = [fault for fault in faults if fault["type"] != "too_short" or fault["loc"] not in around]
    return [f"{_path(fault['loc'])}: {_WORDS.get(fault['type'], fault['msg'])}" for fault in faults]


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path or "the file"
