from __future__ import annotations

from typing import List

from mmguard.diagnosis.causes.wrong_records import NO_FOLDER
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, listing
from mmguard.words import counted


class MissingImages(Cause):
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

    def likelihood(self, facts: LabelFacts) -> float:
        found = annotations_of(facts)
        everything = found.images > 0 and max(found.missing, len(found.missing_files)) >= found.images
        return 0.94 if everything else 0.65 if found.missing_files or found.missing else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        number = max(found.missing, len(found.missing_files))
        folders = found.unreadable.get(NO_FOLDER, [])
        where = f'; there is no folder {listing(folders, 2)}' if folders else ''
        return f'{counted(number, "file")} of {found.images:,}, e.g. {listing(found.missing_files, 3)}{where}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).missing_files

    def values(self, facts: LabelFacts) -> dict:
        return {}
