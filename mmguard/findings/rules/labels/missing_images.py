from __future__ import annotations

import os
from typing import Iterator, List

from mmguard.config.parts import datasets
from mmguard.files.inside import OUTSIDE
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.wrong_records import NO_FOLDER
from mmguard.findings.views import ORIENTED, annotations_of, listing
from mmguard.text.words import counted


class MissingImages(DataRule):
    """Images that the annotations list and the disk lacks."""

    code = 'MG150'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The annotations list images that are not on disk.'
    why = 'The loader fails at the iteration that draws one.'
    advice = (
        "Check the folder, `data_prefix=dict(img='train2017/')`, against file_name in the JSON (a folder in both is "
        'one too many), or remove the entries.'
    )

    labelme = (
        '`imagePath` is relative to its JSON: was the JSON moved without its image, or the image renamed? '
        '`--images DIR` looks for all of them in one folder. (Files that hold their image need no other.)'
    )

    cvat = (
        '`name` of an image is relative to the folder images/ beside the XML, as CVAT exports it with its images, or '
        'to `--images DIR`: were the images renamed?'
    )
    hf = (
        '`file_name` is relative to its metadata file; `imagefolder` of Hugging Face stops at one that is not there. '
        '`--images DIR` looks for all of them in one folder.'
    )
    cityscapes = (
        'Its name is made of that of the JSON: leftImg8bit/x_leftImg8bit.png for gtFine/x_gtFine_polygons.json. '
        '`--images DIR` names another folder, laid out alike.'
    )

    oriented = (
        'mmrotate makes the name of the image of that of the label file: check `data_prefix` and, of DOTA, '
        "`img_suffix='png'` (DIOR has .jpg, HRSC .bmp). Of a folder `--images DIR` says where they are."
    )

    mmdet3d = (
        'Names in the info file are joined to `data_prefix` of the data set (`pts`, `sweeps`, `img`, each camera): '
        'compare one with where the files lie, or make the info file anew.'
    )

    outside = 'The annotations list images that are not on disk, or lie outside of the data set.'

    def summarise(self, facts: LabelFacts) -> str:
        if any(name.endswith(f'({OUTSIDE})') for name in annotations_of(facts).missing_files):
            return self.outside
        of_samples = 'The info file lists scans or images that are not on disk.'
        return of_samples if annotations_of(facts).format == 'mmdet3d' else self.summary

    def advise(self, facts: LabelFacts) -> str:
        words = {
            'mmdet3d': self.mmdet3d,
            'labelme': self.labelme,
            'cityscapes': self.cityscapes,
            'cvat': self.cvat,
            'hf': self.hf,
        }
        words.update(dict.fromkeys(ORIENTED, self.oriented))
        return words.get(annotations_of(facts).format, self.advice)

    def likelihood(self, facts: LabelFacts) -> float:
        found = annotations_of(facts)
        everything = found.images > 0 and max(found.missing, len(found.missing_files)) >= found.images
        return 0.94 if everything else 0.65 if found.missing_files or found.missing else 0.0

    otherwise = (
        'Compare file_name in the JSON with what lies in the folder of the images: a folder in both is one too many; '
        'paths of another machine, and backslashes of Windows, name nothing here.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        found = annotations_of(labels)
        folders = [facts.options.get('images')] if facts.config is None else []
        is_image = found.format != 'mmdet3d'  # that has scans, too
        for dataset in datasets(facts.config) if facts.config is not None and is_image else ():
            root, prefix = str(dataset.config.get('data_root') or ''), dataset.config.get('data_prefix')
            if not isinstance(prefix, dict) or dataset.split not in labels.split or not found.missing_files:
                continue
            key = 'img_path' if 'img_path' in prefix else 'img'
            folders.append(os.path.join(root, str(prefix.get(key) or '')))
            ending = _other_ending(found.missing_files)
            if found.format == 'dota' and ending:
                where = dataset.at('img_suffix')
                yield Edit(f'Write `img_suffix={ending!r}` at {where}.', SAFE, config=((where, ending),))
            for folder in _folders_with(found.missing_files[0], root):
                where, line = dataset.at('data_prefix'), f'data_prefix=dict({key}={folder!r})'
                yield Edit(f'Write `{line}` at {where}.', SAFE, config=((where, {**prefix, key: folder}),))
        if found.format == 'coco' and len(folders) == 1 and isinstance(folders[0], str):
            what = 'writes into file_name how images are called there, and leaves out the entries of those that are not'
            question = f'Are all images that can be had in {folders[0]}?'
            yield from rewrite(self, facts, what, ASKS, question, images=folders[0])

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        number = max(found.missing, len(found.missing_files))
        folders = found.unreadable.get(NO_FOLDER, [])
        where = f'; there is no folder {listing(folders, 2)}' if folders else ''
        of = '' if found.format == 'mmdet3d' else f' of {found.images:,}'  # a sample has several
        return f'{counted(number, "file")}{of}, e.g. {listing(found.missing_files, 3)}{where}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).missing_files

    def values(self, facts: LabelFacts) -> dict:
        return {}


def _other_ending(missing: List[str]) -> str:
    """The ending, without its dot, that all of these images have instead; empty: not one alone."""
    endings = {name.rpartition('.')[2][:-1] if '(there is ' in name else '' for name in missing}
    return endings.pop() if len(endings) == 1 else ''


def _folders_with(name: str, root: str) -> Iterator[str]:
    """Folders in the data root that hold an image under the name that the annotations give it."""
    try:
        with os.scandir(root or '.') as entries:
            folders = ['', *sorted(entry.name + '/' for entry, _ in zip(entries, range(1000)) if entry.is_dir())]
    except OSError:
        return
    yield from (folder for folder in folders if os.path.isfile(os.path.join(root, folder, name)))
