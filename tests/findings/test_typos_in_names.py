"""Class names that differ only in case, spaces, accents or plural: found in every format, renamed where possible."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional

import pytest
from annotation_files import voc
from detection_configs import NAMES
from drawn_scenes import scenes
from format_cases import class_folders, yolo
from situation import (
    coco_config,
    faster,
    json_alone,
    masks,
    numbered,
    retina,
    seg_config,
    seg_model,
    some_boxes,
    voc_config,
    with_options,
)
from targets import Build, find_unwritten, scan, scan_target, values_of, write_edit

from mmguard.findings.engine import count_trained_classes

#: 35 boxes of the first three names in turn, and one of the fourth.
BOXES = some_boxes([1, 2, 3])
BOXES[3][1] = (4, BOXES[3][1][1])
BLOOD = numbered('RBC', 'WBC', 'Platelets', 'RBc')
OBJECTS = [[(BLOOD[number], [x, y, x + w, y + h]) for number, (x, y, w, h) in image] for image in BOXES]


def yolo_named(names: str) -> Build:
    """The data set of three classes of the format cases, with other names."""

    def build(root: Path) -> Path:
        for name, content in yolo().items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content.replace(b'0: cat\n  1: dog\n  2: bird', names.encode()))
        return root

    return build


def folders_named(first: str, second: str, third: str) -> Build:
    """The class folders of the format cases, with other names."""

    def build(root: Path) -> Path:
        new = {'cat': first, 'dog': second, 'bird': third}
        for name, content in class_folders().items():
            split, folder, file = name.split('/')
            (root / split / new[folder]).mkdir(parents=True, exist_ok=True)
            (root / split / new[folder] / file).write_bytes(content)
        return root

    return build


@pytest.mark.parametrize(
    ('build', 'code', 'rename'),
    [
        (json_alone(BLOOD, None, BOXES), 'MG156', {'RBc': 'RBC'}),
        (json_alone(BLOOD, 3, BOXES), 'MG156', {'RBc': 'RBC'}),
        (json_alone(BLOOD, 4, BOXES), 'MG156', {'RBc': 'RBC'}),
        (with_options(json_alone(BLOOD, None, BOXES), labels='ids'), 'MG156', {'RBc': 'RBC'}),
        (voc(OBJECTS), 'MG156', {'RBc': 'RBC'}),
        (voc(OBJECTS, 3), 'MG156', {'RBc': 'RBC'}),
        (with_options(voc(OBJECTS), classes=('RBC', 'WBC', 'Platelets')), 'MG154', {'RBc': 'RBC'}),
        (voc_config(OBJECTS, ('RBC', 'WBC', 'Platelets'), faster(3)), 'MG154', {'RBc': 'RBC'}),
        (coco_config(BLOOD, ('RBC', 'WBC', 'Platelets'), retina(3), BOXES), 'MG154', {'RBc': 'RBC'}),
        # A name that is more frequent is right, wherever it stands; an accent, a space and a plural.
        (json_alone(numbered('naïf', 'naif', 'b'), None, some_boxes([1, 2, 2, 3])), 'MG156', {'naïf': 'naif'}),
        (json_alone(numbered('cat ', 'cat', 'dog'), None, some_boxes([1, 2, 2, 3])), 'MG156', {'cat ': 'cat'}),
        (json_alone(numbered('fly', 'flies', 'pie'), None, some_boxes([1, 1, 2, 3])), 'MG156', {'flies': 'fly'}),
        # Formats that fix does not rename.
        (yolo_named('0: cat\n  1: Cat\n  2: bird'), 'MG156', None),
        (folders_named('cats', 'cat', 'bird'), 'MG156', None),
        (seg_config(scenes(range(3), 4), ('road', 'Road', 'sky'), seg_model(3)), 'MG156', None),
    ],
)  # fmt: skip
def test_a_name_that_is_another_but_for_its_spelling_is_asked_about(
    build: Build, code: str, rename: Optional[Dict[str, str]], tmp_path: Path
) -> None:
    before = scan(build, tmp_path / 'set')
    assert before.first.code == code
    assert not [one for one in before.results[0].findings if one.code == 'MG108']
    if rename is None:
        assert not [edit for edit in before.first.edits if 'rename' in values_of(edit)]
        return
    edit = before.first.edits[0]
    assert (edit.applicability, find_unwritten(edit, dict(rename=rename))) == ('asks', {})
    after = scan_target(write_edit(before.target, edit, tmp_path))
    assert [one.code for one in after.results[0].findings if one.severity != 'info'] == []
    objects, kept = (sum(one.labels.annotations.instances_of.values()) for one in (before, after))
    assert objects == kept


@pytest.mark.parametrize(
    'build',
    [
        json_alone(numbered('A', 'a', 'B', 'b'), None),  # letters of a license plate
        json_alone(numbered('car_1', 'car_2', 'car 12'), None),
        json_alone(numbered('cloth', 'clothes', 'bras', 'brass'), None),  # the first two are classes of COCO-Stuff
        coco_config(numbered(*NAMES), NAMES, retina(3)),
        masks(scenes(range(3), 4), 3),
    ],
)
def test_other_names_are_other_classes(build: Build, tmp_path: Path) -> None:
    found = scan(build, tmp_path / 'set').results[0].findings
    assert 'MG156' not in [one.code for one in found]


def test_the_answer_no_leads_to_one_class_more(tmp_path: Path) -> None:
    before = scan(voc(OBJECTS, 3), tmp_path / 'set')
    assert 'num_classes=4' in before.first.edits[0].if_not
    after = scan_target(before.target._replace(options=dict(num_classes=4)))
    assert set(count_trained_classes(after.labels)) == {0, 1, 2, 3}


def test_a_config_that_lists_both_names_gets_one(tmp_path: Path) -> None:
    before = scan(coco_config(BLOOD, tuple(BLOOD.values()), retina(4), BOXES), tmp_path / 'set')
    assert before.first.code == 'MG156'
    edit = before.first.edits[0]
    assert find_unwritten(edit, dict(rename={'RBc': 'RBC'}, num_classes=3)) == {}
    after = scan_target(write_edit(before.target, edit, tmp_path))
    assert [one.code for one in after.results[0].findings if one.severity != 'info'] == []
