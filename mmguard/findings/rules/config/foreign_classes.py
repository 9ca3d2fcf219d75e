from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import classes_of, datasets, metainfo_of, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import based


class ForeignClasses(ConfigRule):
    """Own classes on a data set class of mmseg that has others."""

    code = 'MG206'
    summary = 'metainfo.classes names classes that the data set class of MMSegmentation does not have.'
    why = (
        'A data set class with classes of its own (CityscapesDataset, ADE20KDataset, ...) only takes a choice of them, '
        'and maps the rest to 255. With other names building it fails: new classes are not a subset.'
    )
    advice = "Write type='BaseSegDataset' for data of your own."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            if not says_classes(dataset) or not hasattr(dataset.cls, 'get_label_map'):
                continue
            own = metainfo_of(dataset).get('classes')
            names = classes_of(dataset) or []
            foreign = [name for name in names if own is not None and name not in own]
            if foreign:
                yield self.at(
                    dataset.at('metainfo.classes'),
                    names,
                    f'{dataset.name} does not know {", ".join(foreign[:5])}: it cannot be built.',
                    edits=[
                        Edit(
                            f"Write type='BaseSegDataset' with img_suffix and seg_map_suffix (and reduce_zero_label, "
                            f'where 0 is unlabelled), here those of {dataset.name}; or a choice of its names.',
                            ASKS,
                            'Is this data of your own, with files that are named like its?',
                            tuple(based(dataset)),
                        )
                    ],
                )
