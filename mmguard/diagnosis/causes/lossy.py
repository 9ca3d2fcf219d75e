from __future__ import annotations

from mmguard.diagnosis.causes.gray_levels import MANY
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import is_whole, maps_of, share, stored

#: A single value in between may be a label of its own: a border that somebody drew.
FEW = 2
#: Share of the pixels below which a value is rare, how many such values there must be, and in how many files.
RARE, MANY_RARE, FEW_FILES = 0.02, 6, 3


class LossyOrInterpolated(Cause):
    """Values between two labels, only where they meet: JPEG, or a resize that averages."""

    code = 'MG136'
    explains = ('MG102', 'MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'Compression or interpolation changed the labels: values in between, at the edges of regions.'
    why = 'A label that is the average of two others is neither; some fall on valid ids and are trained as such.'
    advice = (
        'Save label maps as PNG, never as JPEG, and resize them with nearest alone: '
        '`cv2.resize(label, size, interpolation=cv2.INTER_NEAREST)`, `label.resize(size, Image.NEAREST)`, '
        "`dict(type='Albu', ...)` with mask_interpolation nearest. What is lost comes back from the originals only; "
        'two-class masks can be thresholded.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        if maps.lossy:
            return 0.95 if facts.values else 0.8
        if self._is_speckled(facts):
            return 0.92
        if len(facts.values) < FEW:
            return 0.0
        if maps.at_edges is not None and min(facts.values) >= 0:
            return 0.93 if maps.at_edges >= 0.8 else 0.0
        if not is_whole(facts) or len(facts.values) <= MANY:
            return 0.0
        # A few values hold almost every pixel, the many others next to nothing.
        counts = sorted(stored(facts).values(), reverse=True)
        peaks = counts[: facts.num_classes + 1]
        return 0.88 if share(sum(peaks), sum(counts)) >= 0.9 else 0.0

    def _is_speckled(self, facts: LabelFacts) -> bool:
        """Whether a few labels fill the maps, and many values with next to no pixels occur in most files all the same.

        A rare class is missing in most files; what interpolation makes is not. Only so are values seen that overshoot
        (bicubic): they lie beyond the labels, not between them.
        """
        counts, files = stored(facts), maps_of(facts).files_with
        if facts.files < FEW_FILES or not facts.values or not files:
            return False
        whole = sum(counts.values())
        rare = [value for value, count in counts.items() if share(count, whole) < RARE]
        common = len(counts) - len(rare)
        if len(rare) < max(MANY_RARE, 2 * common) or min(facts.values) < 0:
            return False
        everywhere = sum(files.get(value, 0) for value in rare) >= 0.5 * facts.files * len(rare)
        return everywhere and share(sum(counts[value] for value in rare), whole) <= 0.25

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [facts.evidence] if facts.values else []
        if maps.lossy:
            texts.append(f'{maps.lossy:,} label files are JPEG')
        if maps.at_edges is not None:
            texts.append(f'{100 * maps.at_edges:.3g} % of the invalid pixels lie between two other values')
        return '; '.join(texts)
