"""Every rule over a config offers an edit on the config in which it speaks, and with the edit it is silent."""

from __future__ import annotations

import pytest
from changed_configs import changed
from test_check_rules import HERE, by_code

from mmguard.config.changes import changed as edited
from mmguard.findings.edits import SAFE
from mmguard.findings.engine import chosen_rules, diagnose

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')


@pytest.mark.parametrize('case', HERE, ids=lambda case: f'{case.code}-{case.paths[0]}')
def test_with_its_edit_the_finding_is_gone(case):
    config = changed(case.base, case.change)
    rule = by_code(case.code)
    for finding in diagnose(config=config, rules=sorted({*chosen_rules(), rule}, key=lambda kind: kind.code)):
        if finding.code != case.code or finding.places[0] not in case.paths:
            continue
        if not finding.edits:
            assert (
                case.code in ('MG227', 'MG232', 'MG245')
                or 'more than once' in finding.cause
                or '.METAINFO' in finding.cause
                or 'cannot be built' in finding.cause
            )
        for edit in finding.edits:
            again = diagnose(config=edited(config, edit.config), rules=[rule])
            assert not {place for found in again for place in found.places} & set(finding.places)
            assert bool(edit.question) == (edit.applicability != SAFE), edit
