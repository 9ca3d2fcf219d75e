from __future__ import annotations

import os
from typing import Iterator, List, Optional

from mmguard.config.parts import datasets
from mmguard.files.inside import OUTSIDE
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.wrong_records import NO_FOLDER
from mmguard.findings.views import annotations_of, listing
from mmguard.text.words import counted


class MissingImages(DataRule):
    """Images that the annotations list and the disk lacks."""

    code = 'MG150'
    shows_values = False
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

    outside = 'The annotations list images that are not on disk, or lie outside of the data set.'

    def summarise(self, facts: LabelFacts) -> str:
        is_outside = any(name.endswith(f'({OUTSIDE})') for name in annotations_of(facts).missing_files)
        return self.outside if is_outside else self.summary

    def advise(self, facts: LabelFacts) -> str:
        return self.labelme if annotations_of(facts).format == 'labelme' else self.advice

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        everything = found.images > 0 and max(found.missing, len(found.missing_files)) >= found.images
        return PROVEN if everything else LIKELY if found.missing_files or found.missing else None

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
        for dataset in datasets(facts.config) if facts.config is not None else ():
            root, prefix = str(dataset.config.get('data_root') or ''), dataset.config.get('data_prefix')
            if not isinstance(prefix, dict) or dataset.split not in labels.split or not found.missing_files:
                continue
            key = 'img_path' if 'img_path' in prefix else 'img'
            folders.append(os.path.join(root, str(prefix.get(key) or '')))
            for folder in _folders_with(found.missing_files[0], root):
                where, line = dataset.at('data_prefix'), f'data_prefix=dict({key}={folder!r})'
                yield Edit(f'Write `{line}` at {where}.', SAFE, config=((where, {**prefix, key: folder}),))
        if found.format == 'coco' and len(folders) == 1 and isinstance(folders[0], str):
            what = 'Write the names of the images there into file_name, and leave out the entries without an image.'
            question = f'Are all images that can be had in {folders[0]}?'
            yield from rewrite(self, facts, what, ASKS, question, images=folders[0])

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        number = max(found.missing, len(found.missing_files))
        folders = found.unreadable.get(NO_FOLDER, [])
        where = f'; there is no folder {listing(folders, 2)}' if folders else ''
        return f'{counted(number, "file")} of {found.images:,}, e.g. {listing(found.missing_files, 3)}{where}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).missing_files


def _folders_with(name: str, root: str) -> Iterator[str]:
    """Folders in the data root that hold an image under the name that the annotations give it."""
    try:
        with os.scandir(root or '.') as entries:
            folders = ['', *sorted(entry.name + '/' for entry, _ in zip(entries, range(1000)) if entry.is_dir())]
    except OSError:
        return
    yield from (folder for folder in folders if os.path.isfile(os.path.join(root, folder, name)))
