"""``python -m tests.e2e.screenshots ADMIN_URL API_KEY`` makes the pictures of ``docs/status.md`` anew.

They are of a stack that runs, with the scripted models, and are of few colours, so that they take little room.
"""

from __future__ import annotations

import subprocess
import sys

from PIL import Image

from stack.paths import ROOT
from stack.setup import BROWSER_TESTS, NODE

_IMAGES = ROOT / "docs" / "images"
_COLOURS = 128


def main() -> None:
    """Take them, and reduce their colours."""
    _IMAGES.mkdir(exist_ok=True)
    subprocess.run([NODE, "screenshots.mjs", *sys.argv[1:], _IMAGES], cwd=BROWSER_TESTS, check=True)
    for path in _IMAGES.glob("status*.png"):
        with Image.open(path) as image:
            reduced = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        reduced.save(path, optimize=True)


if __name__ == "__main__":
    main()
