from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import classes_of, datasets, metainfo_of, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import use_base_dataset
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import listing


class ForeignClasses(ConfigRule):
    """Own classes on a data set class of mmseg that has others."""

    code = 'MG206'
    summary = 'metainfo.classes names classes that the data set class of MMSegmentation does not have.'
    title = '{kind} does not have the classes {names}: it cannot be built.'
    why = (
        'A data set class with classes of its own (CityscapesDataset, ADE20KDataset, ...) only takes a choice of them, '
        'and maps the rest to 255. With other names building it fails: new classes are not a subset.'
    )
    example = Example(
        wrong="dict(type='CityscapesDataset', metainfo=dict(classes=('field', 'forest')))",
        right="dict(type='BaseSegDataset', img_suffix='.jpg', metainfo=dict(classes=('field', 'forest')))",
    )
    limits = 'Names that the class has, but that mean something else in your files, are not seen.'
    advice = (
        "If the data is your own, write type='BaseSegDataset' with its img_suffix, seg_map_suffix and, where 0 is "
        'unlabelled, reduce_zero_label. If it is the data set of this class, list a choice of its names.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            if not says_classes(dataset) or not hasattr(dataset.cls, 'get_label_map'):
                continue
            own = metainfo_of(dataset).get('classes')
            names = classes_of(dataset) or []
            foreign = [name for name in names if own is not None and name not in own]
            if foreign:
                edit = propose(
                    'Use BaseSegDataset, with the file names and the shift of this class.',
                    *use_base_dataset(dataset),
                    question=f'Is this data of your own, with files named as those of {dataset.name}?',
                    if_not=f'List a choice of the names of {dataset.name}, or set the file names by hand.',
                )
                words = dict(kind=dataset.name, names=listing(foreign, 5))
                yield self.report_at(dataset.at('metainfo.classes'), names, words, edits=[edit])
