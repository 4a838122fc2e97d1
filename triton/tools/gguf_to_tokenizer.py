"""Write the tokenizer directory of a GGUF file: ``python gguf_to_tokenizer.py FILE DIRECTORY``.

A GGUF file carries its model's vocabulary, merges, special tokens and chat template. They become the files that Hugging
Face tools read: ``tokenizer.json``, ``tokenizer_config.json`` and ``chat_template.jinja``. Written for byte-level BPE
with the pre-tokenizer that GGUF calls ``smollm``; another kind is refused rather than approximated.
"""

import json
import sys
from pathlib import Path
from typing import Any

from gguf import GGUFReader, TokenType
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


class Metadata:
    """The key-value section of a GGUF file."""

    def __init__(self, path: Path) -> None:
        self._fields = GGUFReader(path).fields

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or ``default`` when the file has none."""
        return self._fields[key].contents() if key in self._fields else default

    def token(self, key: str) -> str | None:
        """The text of the token whose id a key names."""
        id_ = self.get(f"tokenizer.ggml.{key}_token_id")
        return None if id_ is None else self.get("tokenizer.ggml.tokens")[id_]


def build_tokenizer(metadata: Metadata) -> Tokenizer:
    """The tokenizer that gives the ids of llama.cpp for the same file.

    Raises:
        SystemExit: the file's kind of tokenizer is not known here.
    """
    kind = (metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise SystemExit(f"Unknown kind of tokenizer: {kind}")
    tokens = metadata.get("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in metadata.get("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: id_ for id_, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata.get("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type_ in zip(tokens, types, strict=True)
            if type_ == TokenType.CONTROL
        ]
    )
    return tokenizer


def build_config(metadata: Metadata) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``."""
    architecture = metadata.get("general.architecture")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": metadata.token("bos"),
        "eos_token": metadata.token("eos"),
        "pad_token": metadata.token("padding"),
        "unk_token": metadata.token("unknown"),
        "add_bos_token": bool(metadata.get("tokenizer.ggml.add_bos_token", False)),
        "model_max_length": metadata.get(f"{architecture}.context_length"),
        "clean_up_tokenization_spaces": False,
    }


def main(source: Path, directory: Path) -> None:
    """Read the GGUF file ``source`` and fill ``directory``."""
    metadata = Metadata(source)
    directory.mkdir(parents=True, exist_ok=True)
    build_tokenizer(metadata).save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(build_config(metadata), indent=2) + "\n")
    (directory / "chat_template.jinja").write_text(metadata.get("tokenizer.chat_template"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
