"""Every rule over a config offers an edit on the config in which it speaks, and with the edit it is silent."""

from __future__ import annotations

import pytest
from changed_configs import changed
from test_check_rules import HERE, by_code

from mmguard.config.changes import REMOVED
from mmguard.config.changes import changed as edited
from mmguard.findings.edits import SAFE
from mmguard.findings.engine import chosen_rules, diagnose
from mmguard.text.short import short

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')


@pytest.mark.parametrize('case', HERE, ids=lambda case: f'{case.code}-{case.places[0]}')
def test_with_its_edit_the_finding_is_gone(case):
    config = changed(case.base, case.change)
    rule = by_code(case.code)
    for finding in diagnose(config=config, rules=sorted({*chosen_rules(), rule}, key=lambda kind: kind.code)):
        if finding.code != case.code or finding.places[0] not in case.places:
            continue
        for edit in finding.edits:
            again = diagnose(config=edited(config, edit.config), rules=[rule])
            assert not {place for found in again for place in found.places} & set(finding.places)
            assert bool(edit.question) == (edit.applicability != SAFE), edit


def test_what_the_edits_write(snapshot):
    """Places of the config and their values, without any wording."""
    lines = []
    for case in HERE:
        for finding in diagnose(config=changed(case.base, case.change), rules=[by_code(case.code)]):
            lines.append(f'{finding.code} {" and ".join(finding.places)}')
            for edit in finding.edits:
                written = (
                    f'{path} = {"(removed)" if value is REMOVED else short(value)}' for path, value in edit.config
                )
                lines.append('  - ' + '\n    '.join(written))
    snapshot('check', 'what the edits of each rule over configs write', '\n'.join(lines))
