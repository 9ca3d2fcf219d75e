from __future__ import annotations

import os
from typing import Dict, Iterator, List, Optional

from mmguard.config.parts import datasets
from mmguard.files.inside import OUTSIDE
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.wrong_records import NO_FOLDER
from mmguard.findings.views import annotations_of, listing
from mmguard.text import quantity


class MissingImages(DataRule):
    """Images of the annotations that are missing on disk."""

    code = 'MG150'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Images that the annotations list are missing on disk.'
    title = 'Images that the annotations list are missing on disk: {number} of {images}.'
    title_outside = (
        'Images that the annotations list are missing on disk, or outside the data set: {number} of {images}.'
    )
    why = 'The loader fails at the iteration that draws one.'
    example = Example(
        wrong='data_prefix=dict(img=\'train2017/\')  # "file_name": "train2017/0001.jpg"',
        right="data_prefix=dict(img='')",
    )
    limits = (
        'It looks for the names that the annotations give, letter by letter, not for the same image under another name.'
    )
    advice = (
        'Compare file_name (Labelme: imagePath) with the folder of the images, `data_prefix=dict(img=...)`, in Labelme '
        '`--images DIR`. A folder in both is one too many; paths of another machine, and backslashes of Windows, match '
        'nothing. Remove the entries of images that do not exist any more.'
    )

    def choose_title(self, facts: LabelFacts) -> str:
        is_outside = any(name.endswith(f'({OUTSIDE})') for name in annotations_of(facts).missing_files)
        return self.title_outside if is_outside else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        return {'number': f'{_number(found):,}', 'images': f'{found.images:,}'}

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        everything = 0 < found.images <= _number(found)
        return PROVEN if everything else LIKELY if found.missing_files or found.missing else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        found = annotations_of(labels)
        folders = [facts.options.get('images')] if facts.config is None else []
        for dataset in datasets(facts.config) if facts.config is not None else ():
            root, prefix = str(dataset.config.get('data_root') or ''), dataset.config.get('data_prefix')
            if not isinstance(prefix, dict) or dataset.split not in labels.split or not found.missing_files:
                continue
            key = 'img_path' if 'img_path' in prefix else 'img'
            folders.append(os.path.join(root, str(prefix.get(key) or '')))
            for folder in _folders_with(found.missing_files[0], root):
                changes = ((dataset.at('data_prefix'), {**prefix, key: folder}),)
                yield Edit('Set the folder of the images.', SAFE, config=changes)
        if found.names_from == 'categories' and len(folders) == 1 and isinstance(folders[0], str):
            what = 'Write the names of the images there into file_name, and leave out the entries without an image.'
            question = f'Are all images that you have in {folders[0]}?'
            yield from rewrite(self, facts, what, ASKS, question, images=folders[0])

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        folders = found.unreadable.get(NO_FOLDER, [])
        where = f'; the folder {listing(folders, 2)} does not exist' if folders else ''
        return f'{quantity(_number(found), "file")} of {found.images:,}, e.g. {listing(found.missing_files, 3)}{where}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).missing_files


def _number(found: AnnotationFacts) -> int:
    return max(found.missing, len(found.missing_files))


def _folders_with(name: str, root: str) -> Iterator[str]:
    """Yield the folders in the data root that hold an image of this name."""
    try:
        with os.scandir(root or '.') as entries:
            folders = ['', *sorted(entry.name + '/' for entry, _ in zip(entries, range(1000)) if entry.is_dir())]
    except OSError:
        return
    yield from (folder for folder in folders if os.path.isfile(os.path.join(root, folder, name)))
