"""``./dev goldens``: writes the expected files of all cases anew, and the outlines of Envoy's configuration."""

from __future__ import annotations

from tests.core.envoy.outlines import write_outlines
from tests.core.goldens.cases import CASES, expected_files, kept_files

for case in CASES:
    files = expected_files(case)
    for name in kept_files(case).keys() - files.keys():
        (case / name).unlink()
    for name, text in files.items():
        (case / name).write_text(text, encoding="utf-8")
write_outlines()
