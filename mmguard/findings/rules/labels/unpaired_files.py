from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import set_places
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import has_config, listing, maps_of, number_of
from mmguard.findings.volumes import CHANNELS, NO_IMAGE, NO_LABEL, STRANGER
from mmguard.text import quantity

#: List of ``MapFacts``, or kind of fault of a volume, and what one and several of its files are.
NAMED = {
    'missing_labels': ('image without a label file', 'images without a label file'),
    'missing_images': ('label file without an image', 'label files without an image'),
    'duplicates': ('name with two files', 'names with two files'),
    NO_LABEL: ('label file missing', 'label files missing'),
    CHANNELS: ('channel missing or left over', 'channels missing or left over'),
    NO_IMAGE: ('image missing', 'images missing'),
    STRANGER: ('file that nnU-Net does not see', 'files that nnU-Net does not see'),
}

#: Kinds that end nnU-Net.
ENDS = {NO_LABEL, CHANNELS}


class UnpairedFiles(DataRule):
    """Images without a label file, labels without an image, two for one; cases of volumes that lack a file."""

    code = 'MG129'
    aliases = ('MG184',)
    shows_values = False
    kinds = ('pixels', 'voxels')
    needs = ()
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    title = 'Images and label files do not pair up: {number} without a partner, or with two.'
    title_none = 'No label file has the name that the config, or the two folders, make up for its image.'
    why = (
        'A missing label file ends the training at the iteration that draws it, nnU-Net before the first; of two with '
        'one stem one is never read.'
    )
    example = Example(
        wrong="img_suffix='.jpg', seg_map_suffix='.png'; files 7.jpg and 7_mask.png",
        right="img_suffix='.jpg', seg_map_suffix='_mask.png'",
    )
    limits = 'It compares names only: a pair may still be of two different scenes.'
    advice = (
        'A label file has the name of its image without `img_suffix`, plus `seg_map_suffix`. Compare one image with '
        'its label file, letter by letter (case, leading zeros), write both endings and both folders in `data_prefix`. '
        'If only some lack a partner, complete or remove them, or name the complete pairs in `ann_file=...`. A case of '
        'nnU-Net is `imagesTr/CASE_0000.nii.gz`, one file per channel (_0000, _0001), and `labelsTr/CASE.nii.gz`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        is_sure = facts.volumes is not None or self._has_no_pair(facts)
        return None if not self._parts(facts) else PROVEN if is_sure else LIKELY

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._has_no_pair(facts.labels):
            yield from set_places(self, facts, lambda labels: maps_of(labels).missing_labels, elsewhere=False)

    def severity_of(self, facts: LabelFacts) -> str:
        # An image without its label file ends a training; a label file too many does not.
        found = self._find_unpaired(facts)
        return ERROR if (has_config(facts) and 'missing_labels' in found) or found.keys() & ENDS else self.severity

    def _has_no_pair(self, facts: LabelFacts) -> bool:
        """True if no pair was found at all, in a config or in two folders."""
        maps = maps_of(facts)
        lacking = number_of(maps, 'missing_labels') or number_of(maps, 'missing_images')
        if has_config(facts):
            return bool(lacking) and not maps.forms
        labels = sum(maps.forms.values())
        return bool(labels) and number_of(maps, 'missing_images') == labels

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_none if self._has_no_pair(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'number': quantity(sum(number for number, _ in self._find_unpaired(facts).values()), 'name')}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

    def files(self, facts: LabelFacts) -> List[str]:
        if facts.volumes is not None:
            return [fault.file for fault in facts.volumes.of(*NAMED)]
        return [file for _, files in self._find_unpaired(facts).values() for file in files]

    def _parts(self, facts: LabelFacts) -> List[str]:
        return [
            f'{quantity(number, *NAMED[kind])}: {listing(files, 3)}'
            for kind, (number, files) in self._find_unpaired(facts).items()
        ]

    def _find_unpaired(self, facts: LabelFacts) -> Dict[str, Tuple[int, List[str]]]:
        """Return kind -> number of files, and the first of them (of volumes with the detail)."""
        if facts.volumes is not None:
            faults = {kind: facts.volumes.of(kind) for kind in NAMED}
            texts = {kind: [f'{fault.file}: {fault.detail}' for fault in found] for kind, found in faults.items()}
            return {kind: (len(files), files) for kind, files in texts.items() if files}
        maps = maps_of(facts)
        return {
            kind: (number_of(maps, kind), getattr(maps, kind))
            for kind in ('missing_labels', 'missing_images', 'duplicates')
            if number_of(maps, kind)
        }
