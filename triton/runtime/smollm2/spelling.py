"""The ids of tokens by the bytes that they stand for."""

import json
from pathlib import Path

from tokenizers import Tokenizer

# GPT-2's way to write bytes as printable characters: those that are not printable follow at 256.
_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}


class Spelling:
    """A byte-level vocabulary, read backwards. ``directory`` is a tokenizer directory."""

    def __init__(self, directory: Path) -> None:
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        config = json.loads((directory / "tokenizer_config.json").read_text())
        self.end_id: int = tokenizer.token_to_id(config["eos_token"])
        specials = set(tokenizer.get_added_tokens_decoder())
        self.other_special_ids = specials - {self.end_id}
        self._bytes = {
            id_: bytes(_BYTES[character] for character in token)
            for token, id_ in tokenizer.get_vocab().items()
            if id_ not in specials
        }
        self._ids = {text: id_ for id_, text in self._bytes.items()}

    def ids_before(self, last_id: int, text: bytes, count: int) -> list[int]:
        """``count`` ids that spell ``text`` when ``last_id`` follows them.

        Of several spellings it is the one whose first tokens are longest, as the tokenizer would choose.

        Raises:
            ValueError: there is no such spelling.
        """
        spelled = self._spell(text.removesuffix(self._bytes[last_id]), count)
        if spelled is None:
            raise ValueError(f"{text!r} is not spelled by {count} tokens before {last_id}")
        return spelled

    def _spell(self, text: bytes, count: int) -> list[int] | None:
        if count == 0:
            return None if text else []
        for length in range(len(text) - count + 1, 0, -1):
            rest = self._spell(text[length:], count - 1)
            if text[:length] in self._ids and rest is not None:
                return [self._ids[text[:length]], *rest]
        return None
