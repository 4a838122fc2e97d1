"""Text to ids and back, for the contracts that speak text."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

# A character of UTF-8 has at most four bytes, and a token at least one.
_TOKENS_OF_A_CHARACTER = 4


class Vocabulary:
    """The tokenizer directory ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        config = json.loads((directory / "tokenizer_config.json").read_text())
        self.end_id: int = self._tokenizer.token_to_id(config["eos_token"])

    def encode_prompt(self, text: str) -> list[int]:
        """The ids of a prompt, with what the tokenizer itself adds to one."""
        return self._tokenizer.encode(text).ids

    def encode(self, text: str) -> list[int]:
        """The ids of a text by itself."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of ids, special tokens included only on demand."""
        return self._tokenizer.decode(ids, skip_special_tokens=not special)


class TextStream:
    """Ids to text, response by response, never half a character; ``special`` tokens included only on demand."""

    def __init__(self, vocabulary: Vocabulary, special: bool = False) -> None:
        self._decode = vocabulary.decode
        self._special = special
        self._held: list[int] = []

    def feed(self, ids: Sequence[int], ended: bool) -> str:
        """The text that ``ids`` complete; at the end, all of it."""
        self._held += ids
        text = self._decode(self._held, self._special)
        if text.endswith("\ufffd") and len(self._held) < _TOKENS_OF_A_CHARACTER + len(ids) and not ended:
            return ""
        self._held = []
        return text
