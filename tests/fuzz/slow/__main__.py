"""Searches for slow inputs: ``python -m tests.fuzz.slow schemas --seconds 600 --seed 7``.

The targets are ``schemas``, ``prompts``, ``generations`` and ``images``. At the end it prints the dearest input of each
order of size with the share that it takes of what it may take, and fails where that is more than all of it. An input
that ends the process, because it takes seconds or gigabytes, is the one in ``.local/slow/``.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
from typing import Any

from stack.paths import LOCAL
from tests.fuzz.slow.generations import Generations
from tests.fuzz.slow.images import Images
from tests.fuzz.slow.prompts import Prompts
from tests.fuzz.slow.schemas import Schemas
from tests.fuzz.slow.search import Search, Target
from tests.hostile.work import in_a_thread

TARGETS: dict[str, type[Target[Any]]] = {
    "schemas": Schemas,
    "prompts": Prompts,
    "generations": Generations,
    "images": Images,
}
_SHOWN = 400


def main() -> None:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=60.0)
    length.add_argument("--inputs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    target = TARGETS[asked.target]()
    last = LOCAL / "slow" / asked.target
    last.parent.mkdir(parents=True, exist_ok=True)
    search = Search(target, random.Random(asked.seed), last)
    in_a_thread(lambda: _search(search, asked.seconds, asked.inputs))
    for found in search.dearest:
        print(f"{found.share:.3f} of its budget, {found.size} bytes: {target.text(found.input)[:_SHOWN]}")
    too_dear = [found for found in search.dearest if found.share > 1]
    for number, found in enumerate(too_dear):
        file = last.with_name(f"{asked.target}-{number}")
        file.write_text(target.text(found.input), encoding="utf-8", errors="backslashreplace")
        print(f"too dear: {file}")
    print(f"{search.tried} inputs")
    sys.exit(bool(too_dear))


def _search(search: Search[Any], seconds: float, inputs: int | None) -> None:
    # Garbage is collected between inputs.
    gc.disable()
    search.begin()
    if inputs is None:
        search.run_for(seconds)
    for _ in range(inputs or 0):
        search.step()


if __name__ == "__main__":
    main()
