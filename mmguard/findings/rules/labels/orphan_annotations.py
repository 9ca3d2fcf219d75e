from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of
from mmguard.text.words import counted


class OrphanAnnotations(DataRule):
    """Annotations of images that the file does not list."""

    code = 'MG148'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    summary = 'Annotations belong to images that the file does not list.'
    why = 'They are never trained on; often image_id is a name or a number of another file.'
    advice = (
        'Check that image_id is the id of an entry of "images", of the same type (1 is not "1"): '
        '`ids = {{image["id"] for image in data["images"]}}`; drop the annotations whose image_id is not among them.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.6 if annotations_of(facts).orphans else 0.0

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        why = 'makes numbers of image_ids that are texts (1 is not "1") and leaves out annotations of images not listed'
        yield from rewrite(self, facts, why, SAFE)

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{counted(found.orphans, "annotation")} of {found.annotations:,}'

    def values(self, facts: LabelFacts) -> dict:
        return {}
