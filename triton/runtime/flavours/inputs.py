"""The inputs of one request."""

from typing import Any

Values = dict[str, list[Any]]
"""Input tensors by name as flat lists; text as bytes."""


class Rejected(Exception):
    """A request that the model does not run; the message is for the client."""


def values_of(request: Any) -> Values:
    """The input tensors of a request, copied: Triton frees them as soon as ``execute`` returns."""
    return {tensor.name(): tensor.as_numpy().reshape(-1).tolist() for tensor in request.inputs()}


class Inputs:
    """Input tensors, read by name."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def array(self, name: str) -> list[Any] | None:
        """All values of an input, or ``None`` when it was not sent."""
        return self._values.get(name)

    def scalar(self, name: str, default: Any = None) -> Any:
        """The only value of an input, text decoded, or ``default`` when it was not sent.

        Raises:
            Rejected: there is more than one value, or none.
        """
        values = self._values.get(name)
        if values is None:
            return default
        if len(values) != 1:
            raise Rejected(f"Expected a scalar tensor for tensor {name}")
        return values[0].decode() if isinstance(values[0], bytes) else values[0]

    def required(self, name: str) -> Any:
        """Like ``scalar``, for an input that must be there.

        Raises:
            Rejected: the input is missing or not a scalar.
        """
        value = self.scalar(name)
        if value is None:
            raise Rejected(f"A value is required for {name}")
        return value

    def word_list(self, name: str) -> list[list[int]]:
        """The words, as lists of ids, of an input of shape [2, n]: a row of ids, then a row of ends padded with -1."""
        values = self._values.get(name, [])
        ids, ends = values[: len(values) // 2], [end for end in values[len(values) // 2 :] if end != -1]
        return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def prompt_ids(self) -> list[int]:
        """The prompt of token-level inputs.

        Raises:
            Rejected: there is none.
        """
        ids = self.array("input_ids")
        if not ids:
            raise Rejected("A value is required for input_ids")
        return ids[: self.required("input_lengths")]


def prompt(ids: list[int]) -> Values:
    """The token-level inputs of a prompt."""
    return {"input_ids": ids, "input_lengths": [len(ids)]}


def word_rows(words: list[list[int]]) -> list[int]:
    """The flat values of an input of shape [2, n] that ``Inputs.word_list`` reads."""
    ids = [id_ for word in words for id_ in word]
    ends = [sum(map(len, words[: count + 1])) for count in range(len(words))]
    return ids + ends + [-1] * (len(ids) - len(ends))


def renamed(values: Values, names: dict[str, str]) -> Values:
    """The values with names in ``names``, under the names given there."""
    return {names[name]: value for name, value in values.items() if name in names}
