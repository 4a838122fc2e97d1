"""A model's tokenizer, read from the files it is published with.

Source: the directory layout of the transformers library: ``tokenizer.json``, ``tokenizer_config.json``,
``chat_template.jinja``, ``generation_config.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tokenizers

from sidecar.prompts.detokenizer import ByteLevelDetokenizer, Detokenizer, WindowDetokenizer, byte_table
from sidecar.prompts.encoder import Encoder
from sidecar.prompts.guard import CUT

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
"""The files of a tokenizer directory that are read."""

_UNKNOWN_LENGTH = 10**12
_CLASSES_WITH_SWITCH = {
    f"{family}Tokenizer{fast}" for family in ("Llama", "CodeLlama", "Gemma", "Cohere") for fast in ("", "Fast")
}
# It shows as nothing and no marker holds it.
_WORD_JOINER = "\u2060"


class Tokenizer:
    """Text to ids and back. Immutable once loaded; encoding may run in any thread."""

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        *,
        template_source: str | None = None,
        template_path: Path | None = None,
        bos_token: str = "",
        eos_token: str = "",
        eos_ids: tuple[int, ...] = (),
        adds_bos: bool = False,
        model_max_length: int | None = None,
        visible: Iterable[str] = (),
    ) -> None:
        """Take a tokenizer as it is, save its truncation and padding, which have no place in a prompt."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._encoder = Encoder(tokenizer)
        self._byte_table = byte_table(tokenizer)
        self._visible = frozenset(visible)
        self._adds_bos = adds_bos
        self.template_source = template_source
        self.template_path = template_path
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.eos_ids = eos_ids
        self.eos_tokens = tuple(text for text in map(tokenizer.id_to_token, eos_ids) if text)
        self.model_max_length = model_max_length

    @classmethod
    def load(cls, directory: Path | str, visible: Iterable[str] = ()) -> Tokenizer:
        """Read a model's tokenizer directory; only ``tokenizer.json`` is required.

        ``visible`` are special tokens that show up in generated text, because they mark reasoning or calls.

        Raises :class:`ValueError`, which names the file, for one that is missing or cannot be read.
        """
        directory = Path(directory)
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise ValueError(f"{path}: no such file")
        try:
            tokenizer = _show(tokenizers.Tokenizer.from_file(str(path)), set(visible))
        except Exception as error:  # The library raises no narrower type.
            raise ValueError(f"{path}: {error}") from error
        config = _read_json(directory / "tokenizer_config.json")
        generation = _read_json(directory / "generation_config.json")
        template_path, template_source = _template(directory, config)
        eos_token = _token_text(config.get("eos_token"))
        return cls(
            tokenizer,
            template_source=template_source,
            template_path=template_path,
            bos_token=_token_text(config.get("bos_token")),
            eos_token=eos_token,
            adds_bos=_adds_bos(tokenizer, config),
            eos_ids=_eos_ids(generation.get("eos_token_id"), tokenizer.token_to_id(eos_token)),
            model_max_length=_known_length(config.get("model_max_length")),
            visible=visible,
        )

    def encode(self, text: str) -> list[int]:
        """The ids of a rendered prompt: control tokens written in it become their ids, none is added.

        No token spans a cut (:mod:`sidecar.prompts.guard`); the cuts themselves have no ids.
        """
        return self._encoder.encode([piece for piece in text.split(CUT) if piece])

    def runtime_text(self, text: str) -> str:
        """A rendered prompt for a runtime that encodes text itself, as the tokenizer does by default.

        A BOS token that the tokenizer adds is left out, or the prompt would begin with two. A word joiner stands where
        the text has a cut: it keeps the runtime, too, from reading data as control tokens.
        """
        if self._adds_bos:
            text = text.removeprefix(self.bos_token)
        return text.replace(CUT, _WORD_JOINER)

    def count(self, text: str) -> int:
        """How many tokens a generated text is, special tokens written out in it included."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def detokenizer(self) -> Detokenizer:
        """A fresh detokenizer for one answer."""
        if self._byte_table is None:
            return WindowDetokenizer(self._tokenizer)
        return ByteLevelDetokenizer(self._byte_table)

    def markers(self) -> set[str]:
        """Added tokens that data must not contain as tokens: those that mean something to the model.

        These are special ones, visible ones, and those that the chat template writes.
        """
        added = self._tokenizer.get_added_tokens_decoder().values()
        source, visible = self.template_source or "", self._visible
        return {
            token.content for token in added if token.special or token.content in visible or token.content in source
        }


def _adds_bos(tokenizer: tokenizers.Tokenizer, config: dict[str, Any]) -> bool:
    """Whether a runtime that encodes text begins it with the BOS token of its own accord.

    The transformers library lets ``add_bos_token`` decide for some classes, ``tokenizer.json`` for all others.
    """
    if config.get("tokenizer_class") in _CLASSES_WITH_SWITCH and "add_bos_token" in config:
        return bool(config["add_bos_token"])
    bos_id = tokenizer.token_to_id(_token_text(config.get("bos_token")))
    return bos_id is not None and tokenizer.encode("").ids[:1] == [bos_id]


def read_template(directory: Path) -> str | None:
    """The chat template's source, or ``None`` where there is none.

    Raises :class:`ValueError`, which names the file, for one that cannot be read.
    """
    return _template(directory, _read_json(directory / "tokenizer_config.json"))[1]


def _show(tokenizer: tokenizers.Tokenizer, visible: set[str]) -> tokenizers.Tokenizer:
    """The same tokenizer, in which the ``visible`` tokens are not special: decoders leave special ones out."""
    added = tokenizer.get_added_tokens_decoder().values()
    if not any(token.special and token.content in visible for token in added):
        return tokenizer
    description = json.loads(tokenizer.to_str())
    for token in description["added_tokens"]:
        token["special"] = token["special"] and token["content"] not in visible
    return tokenizers.Tokenizer.from_str(json.dumps(description))


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: not a JSON object")
    return value


def _template(directory: Path, config: dict[str, Any]) -> tuple[Path, str | None]:
    """The template file, else the configuration's template; of several named ones, ``default``. And where it stands."""
    path = directory / "chat_template.jinja"
    if path.is_file():
        try:
            return path, path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
    path = directory / "tokenizer_config.json"
    source = config.get("chat_template")
    if isinstance(source, list):
        named = [entry for entry in source if isinstance(entry, dict) and entry.get("name") == "default"]
        source = named[0].get("template") if named else None
    return path, source if isinstance(source, str) else None


def _token_text(token: Any) -> str:
    """A token of ``tokenizer_config.json``: a string, or an object with the string as ``content``."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def _known_length(value: Any) -> int | None:
    """A context length in tokens; transformers writes a huge number where it is unknown."""
    return value if isinstance(value, int) and value < _UNKNOWN_LENGTH else None


def _eos_ids(generation: Any, configured: int | None) -> tuple[int, ...]:
    """Ids that end an answer, those of ``generation_config.json`` first, each once."""
    listed = generation if isinstance(generation, list) else [generation]
    return tuple(dict.fromkeys(token_id for token_id in [*listed, configured] if isinstance(token_id, int)))
