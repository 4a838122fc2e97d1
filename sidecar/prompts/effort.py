"""``reasoning.effort`` in the words of a chat template: a switch, a grade, both or neither.

``none`` and ``minimal`` turn reasoning off where there is a switch. A grade that the template does not know becomes the
nearest that it does: every graded template knows ``low``, ``medium`` and ``high``. A guided answer begins at once,
without reasoning.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.prompts.features import TemplateFeatures
from sidecar.responses.request import ReasoningEffort


@dataclass(frozen=True, slots=True)
class Effort:
    """What a template is told; ``None`` where it is told nothing.

    ``applied`` is the effort that this amounts to; ``None`` where the client asked for none, or where nothing that the
    template can be told has an effect.
    """

    thinking: bool | None = None
    grade: ReasoningEffort | None = None
    applied: ReasoningEffort | None = None


def template_effort(asked: ReasoningEffort | None, features: TemplateFeatures, *, guided: bool) -> Effort:
    """What a template with ``features`` is told where the client ``asked`` for an effort, or for none."""
    switch = features.thinking_switch
    if guided:
        return Effort(False if switch else None, applied=asked and "none")
    if asked is None:
        return Effort(False if switch else None)
    if switch and asked in ("none", "minimal"):
        return Effort(thinking=False, applied="none")
    thinking = True if switch else None
    if not features.grades:
        return Effort(thinking, applied=asked if switch else None)
    grade = _nearest(asked, features)
    return Effort(thinking, grade, applied=grade)


def _nearest(asked: ReasoningEffort, features: TemplateFeatures) -> ReasoningEffort:
    if asked in features.grades:
        return asked
    return "high" if asked == "xhigh" else "low"
