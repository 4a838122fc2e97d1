"""What every backend offers an exchange: a reader of the answer to the call that it has planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from sidecar.backends.triton.frames import GrpcStatus

FinishReason = Literal["stop", "length"]

Piece = tuple[str, int]
"""Generated text (whole characters only), and how many tokens it took. A plain tuple: a stream makes one per token."""

Take = Callable[[str, int], bool]
"""Takes a piece of generated text (whole characters only) and its number of tokens; tells whether to go on."""


class Reader(Protocol):
    """Reads one upstream's answer, bytes in and pieces of generated text out; any split of the bytes gives the same."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the generation ended; known after :meth:`end`."""

    @property
    def input_tokens(self) -> int | None:
        """Tokens of the prompt, where the upstream told them."""

    @property
    def cached_tokens(self) -> int:
        """Those of them that it did not have to read again."""

    @property
    def counted(self) -> bool:
        """Whether the upstream does not tell the output tokens, so that they are counted with our tokenizer."""

    @property
    def broken_characters(self) -> int:
        """How many U+FFFD the text holds."""

    def feed(self, data: bytes, take: Take) -> None:
        """Hand over the pieces that ``data`` completes, until ``take`` wants no more. This is the per-token path.

        Raises:
            ApiError: the upstream reports a failure, or the bytes are not its protocol.
        """

    def end(self, whole: bool, http_status: int | None, grpc: GrpcStatus | None) -> Piece:
        """What was held back until the end of the answer; its tokens correct what was told before.

        ``whole`` is whether the wire's framing ended as it should; ``http_status`` the status of the answer's head, if
        one came; ``grpc`` the status outside the body, if one was sent.

        Raises:
            ApiError: the answer is not complete.
        """

    def stop(self) -> Piece:
        """What was held back, where the answer ends although the upstream goes on; see :meth:`end`."""
