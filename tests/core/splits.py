"""Splits of a byte string, a text or a list of ids, for properties of the form «any split gives the same»."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S", bytes, str, list[int])


def split_at(whole: S, cuts: Iterable[int]) -> list[S]:
    """``whole`` cut at the given positions, which may lie anywhere and repeat."""
    positions = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    return [whole[start:end] for start, end in pairwise(positions)]
