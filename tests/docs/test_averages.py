"""What docs/averages.md says of the losses: its table; a guarded loss is that of the elements that are left."""

from __future__ import annotations

import pytest
import torch
from doc_pages import ROOT
from this_stack import IS_ONEDL

from tools.site.averages import BEGIN, CASES, END, Case, Data, table

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')
pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')


@pytest.fixture(scope='module')
def data() -> Data:
    return Data()


@pytest.mark.skipif(IS_ONEDL, reason='the page shows the losses of OpenMMLab')
def test_the_table_is_what_is_measured(data: Data) -> None:
    page = (ROOT / 'docs/averages.md').read_text(encoding='utf-8')
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == table(data).strip()


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_guarded_is_deleted(data: Data, case: Case) -> None:
    for share in (0.05, 0.5, 0.95):
        guarded, deleted = (data.outcome(case, how, share) for how in ('guarded', 'deleted'))
        assert guarded.loss == pytest.approx(deleted.loss, rel=1e-5)
        torch.testing.assert_close(guarded.gradient, deleted.gradient, rtol=1e-4, atol=1e-6)
    everything = data.outcome(case, 'guarded', 1.0)
    assert (everything.loss, everything.norm) == (0, 0)
