from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, Optional

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import convert_files
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.gray import MANY_VALUES
from mmguard.findings.views import compute_share, count_stored, get_maps, has_num_classes, has_valid_counts, join_items
from mmguard.language import Message, join

#: Minimum number of values in between; a single one may be a label of its own, such as a drawn border.
FEW = 2
#: Share of the pixels below which a value is rare, how many such values there must be, and in how many files.
RARE, MANY_RARE, FEW_FILES = 0.02, 6, 3

#: Largest distance from black or white of a pixel in a two-class mask, and the share of pixels within it.
NEAR, BLACK_AND_WHITE = 32, 0.8
#: Minimum shares of both peaks and of the smaller one, in masks whose number of classes is unknown.
PEAKS, A_LITTLE = 0.9, 0.002
#: Minimum share of black that is exactly 0; half as much of white must be 255, which small objects hardly reach.
EXACT = 0.7


class LossyOrInterpolated(DataRule):
    code = 'MG136'
    follows = ('MG102', 'MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'Compression or interpolation changed the labels: values in between, at the edges of regions.'
    title = 'Compression or interpolation changed the labels: {number} different values occur.'
    why = 'A label that is the average of two others is neither; some fall on valid ids and are trained as such.'
    example = Example(
        wrong="cv2.resize(label, size); cv2.imwrite('label.jpg', label)",
        right="cv2.resize(label, size, interpolation=cv2.INTER_NEAREST); cv2.imwrite('label.png', label)",
    )
    limits = 'A thin border that somebody drew in many values on purpose looks the same.'
    advice = (
        'Only the originals still hold the right labels. Save them as PNG, never as JPEG, and resize only with '
        'nearest-neighbor interpolation: `cv2.resize(label, size, interpolation=cv2.INTER_NEAREST)`, '
        '`label.resize(size, Image.NEAREST)`, mask_interpolation of Albu. Masks of two classes can be thresholded; no '
        'table restores more.'
    )
    pytorch = (
        'Resize masks only with nearest-neighbor interpolation: torch.nn.functional.interpolate(mask, size, '
        'mode="nearest"), InterpolationMode.NEAREST in torchvision. Save them as PNG. If masks of two classes are '
        'drawn with 0 and 255, convert them to 0 and 1 then: (target > 127).long().'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        certainty, maps, counts = self._judge(labels), get_maps(labels), count_stored(labels)
        if certainty is None:
            return
        texts = [labels.evidence] if labels.values else []
        if maps.lossy:
            texts.append(Message('{lossy:,} label files are JPEG', lossy=maps.lossy))
        if maps.at_edges is not None:
            texts.append(
                Message('{share:.3g} % of the invalid pixels lie between two other values', share=100 * maps.at_edges)
            )
        evidence = join('; ', texts) or Message('values {values}', values=join_items(sorted(counts), 24))
        yield self.report_in(facts, certainty, evidence, {'number': len(counts)})

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that the labels were changed; ``None`` if nothing shows it."""
        maps = get_maps(labels)
        if maps.lossy:
            return PROVEN if labels.values else LIKELY
        if self._is_speckled(labels):
            return PROVEN
        if not labels.values and not has_num_classes(labels) and _is_black_and_white(labels):
            return LIKELY
        if len(labels.values) < FEW:
            return None
        if maps.at_edges is not None and min(labels.values) >= 0:
            return PROVEN if maps.at_edges >= 0.8 else None
        if not has_valid_counts(labels) or len(labels.values) <= MANY_VALUES:
            return None
        # A few values have almost all pixels, the many others next to none.
        counts = sorted(count_stored(labels).values(), reverse=True)
        peaks = counts[: labels.num_classes + 1]
        return LIKELY if compute_share(sum(peaks), sum(counts)) >= 0.9 else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from threshold(facts, labels)

    def _is_speckled(self, labels: LabelFacts) -> bool:
        """True if a few labels fill the maps, and many values with hardly any pixels also occur in most files.

        A rare class is missing in most files, but values made by interpolation are not. This also finds the values of
        bicubic interpolation that overshoot, which are beyond the labels, not between them.
        """
        counts, files = count_stored(labels), get_maps(labels).files_with
        if labels.files < FEW_FILES or not labels.values or not files:
            return False
        whole = sum(counts.values())
        rare = [value for value, count in counts.items() if compute_share(count, whole) < RARE]
        common = len(counts) - len(rare)
        if len(rare) < max(MANY_RARE, 2 * common) or min(labels.values) < 0:
            return False
        everywhere = sum(files.get(value, 0) for value in rare) >= 0.5 * labels.files * len(rare)
        return everywhere and compute_share(sum(counts[value] for value in rare), whole) <= 0.25


def write_two_classes(facts: Facts, title: str, question: str, **options: Any) -> Iterator[Edit]:
    """Yield an edit that rewrites masks as 0 and 1; see :func:`convert_files`."""
    assert facts.labels is not None
    two = facts._replace(labels=replace(facts.labels, num_classes=2))
    for edit in convert_files(two, title, question, **options):
        if facts.labels.num_classes == 1 and facts.config is None:
            # Background and object are two classes.
            edit = state_num_classes(edit, 2)
        yield edit


def threshold(facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
    """Yield an edit that rewrites masks in black and white, with values in between, as 0 and 1."""
    counts = count_stored(labels)
    ends = sum(count for value, count in counts.items() if not NEAR < value < 255 - NEAR)
    of_two = labels.num_classes <= 2 and max(counts, default=0) > 127
    of_two = of_two and compute_share(ends, sum(counts.values())) >= BLACK_AND_WHITE
    if of_two or _is_black_and_white(labels):
        question = 'Are these masks of two classes, drawn in black and white?'
        for edit in write_two_classes(facts, 'Rewrite the files as PNG, with a threshold.', question, threshold=127):
            note = 'From now on, resize label maps with INTER_NEAREST only.'
            yield replace(edit, unlabelled=tuple(range(1, 255)), notes=(*edit.notes, note))


def _is_black_and_white(labels: LabelFacts) -> bool:
    """Return True if nearly all pixels have one of two peaks, near 0 and near 255, with some noise between."""
    counts = count_stored(labels)
    whole = sum(counts.values())
    black = sum(count for value, count in counts.items() if 0 <= value <= NEAR)
    white = sum(count for value, count in counts.items() if 255 - NEAR <= value <= 255)
    # Classes below 32 and void would look the same, except for the values next to 255.
    around = sum(1 for value in counts if 255 - NEAR <= value < 255)
    exact = counts.get(0, 0) >= EXACT * black and counts.get(255, 0) >= EXACT * white / 2
    return (
        around >= FEW
        and max(counts, default=0) <= 255
        and compute_share(black + white, whole) >= PEAKS
        and min(compute_share(black, whole), compute_share(white, whole)) >= A_LITTLE
        and exact  # classes from 0 on, and void, have no peak at 0
        and (labels.num_classes <= 2 or not has_num_classes(labels))
    )
