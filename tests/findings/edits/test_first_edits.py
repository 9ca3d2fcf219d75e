"""The first edit of every situation is followed by machine: it closes the case, and does no harm."""

from __future__ import annotations

from typing import Dict

import pytest
from following import BUILDS, CODES, case_of
from meanings import MEANS
from this_stack import is_here

WITHOUT: Dict[str, str] = {
    'detection_configs: pictures were resized afterwards': 'MG130: boxes were drawn on other pictures',
    'mask_values: half of the files are void': 'MG128: files of void alone are right: the loss must bear them',
    'mask_files: milesial/Pytorch-UNet#311': 'MG136: export the blended labels again',
    'mask_files: other size': 'MG130: files are to be drawn again in the size of their photographs',
    'mask_files: EXIF': 'MG130: files are to be drawn again in the size of their photographs',
    'detection_configs: the folder twice': 'MG150: where the images are is not known',
    'detection_configs: the ending in another case': 'MG150: where the images are is not known',
    'mask_files: git lfs': 'MG132: files are to be copied again',
    'mask_files: cut off': 'MG132: files are to be copied again',
    'mask_files: some labels are missing': 'MG129: files are to be moved, renamed or drawn',
    'mask_files: case of names': 'MG129: files are to be moved, renamed or drawn',
    'annotation_files: no categories': 'MG149: the categories are not known',
    'annotation_files: no annotations': 'MG174: there is nothing to train on',
    'annotation_files: VOC: size is 0': 'MG176: a file of another format',
    'annotation_files: ids in the order of texts, file alone': 'MG141: who trains is not known',
    'annotation_files: the second half of a list, detectron2': 'MG141: the other files have the rest of the list',
    'detection_configs: with_mask, boxes alone': 'MG396: masks are to be drawn, or the model is to be another',
    'annotation_files: masks: few are missing': 'MG396: masks are to be drawn',
    'annotation_files: VOC: an XML is cut off': 'MG132: files are to be copied again',
    'annotation_files: pytorch/vision#1128': 'MG109: so many boxes are no slips, and how they are written is not known',
    'reports: mmsegmentation#1488': 'MG120: which class a color is stands in the list of the tool that drew it',
    'reports: lyuwenyu/RT-DETR#672': 'MG146: images without an object are right',
    'reports: mmdetection#2047': 'MG160: the class list is that of another program',
}


# A test that asks for all situations follows those that its process has not followed yet.
pytestmark = pytest.mark.timeout(1800)

#: Of this stack: MG214 is a fault of OpenMMLab's loss alone.
NAMES = [name for name in BUILDS if is_here(CODES[name])]


@pytest.mark.parametrize('name', [name for name in NAMES if name not in WITHOUT])
def test_the_first_edit_closes_the_case(name: str) -> None:
    followed = case_of(name).answered
    if followed is not None:
        assert not followed.faults, (case_of(name).first.code, followed)
    else:
        assert case_of(name).first.code in CODES[name]  # a fault that is called fine is no case that is closed


@pytest.mark.parametrize('name', NAMES)
def test_no_edit_does_harm_but_where_its_question_is_answered_wrongly(name: str) -> None:
    case = case_of(name)
    if case.answered is not None:
        assert not case.answered.harm, (case.first.code, case.answered)
        # Who is to choose another one than the first must be asked there.
        assert case.edits[0] is case.answered or case.edits[0].edit.applicability == 'asks'
    for followed in case.edits:
        assert followed.edit.applicability == 'asks' or not followed.harm, followed


def test_situations_without_an_edit_are_those_that_are_known() -> None:
    without = {name for name in NAMES if not case_of(name).edits and not case_of(name).is_fine}
    assert without == set(WITHOUT) & set(NAMES), sorted(without ^ set(WITHOUT))
    assert all(WITHOUT.values())


def test_meanings_are_of_situations_that_exist() -> None:
    assert set(MEANS) <= set(BUILDS)
