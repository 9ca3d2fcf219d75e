"""The edits of label maps: for each rule the right one is offered, and what would do harm is not."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np
import pytest
from drawn_scenes import VOID, blob, coloured, each, scenes, soft
from mask_files import OWN_COLOURS, VOC_COLOURS, channels
from mask_values import blobs
from segmentation_configs import FIVE, LOVEDA
from situation import Build, findings_of, masks, seg_config, seg_model, with_options

from mmguard.findings import Finding
from mmguard.findings.edits import Edit

BLOBS = blobs(255, 6)
#: The classes of FIVE are drawn in these colours, in another order than that of their numbers.
PALETTE = [(0, 0, 142), (128, 64, 128), (70, 70, 70), (107, 142, 35), (244, 35, 232)]


class Case(NamedTuple):
    """A situation.

    Attributes:
        code (str): Of the finding that is looked at.
        build (callable): Makes it.
        says (callable): Whether one of the edits is right (or, of harm, whether an edit does it).
    """

    code: str
    build: Build
    says: Callable[[Edit], bool]


def in_config(edit: Edit, words: str) -> bool:
    return words in repr(edit.config)


def maps(table: Dict[int, int], applicability: str = 'asks') -> Callable[[Edit], bool]:
    return lambda edit: (
        dict(edit.options).get('label_map') == tuple(sorted(table.items())) and (edit.applicability == applicability)
    )


def reduces(applicability: str = 'asks', switch: bool = True) -> Callable[[Edit], bool]:
    return lambda edit: ('reduce_zero_label', switch) in edit.options and edit.applicability == applicability


def writes(applicability: str = 'asks', **options: Any) -> Callable[[Edit], bool]:
    def right(edit: Edit) -> bool:
        given = [{key: as_dict(value) for key, value in changes} for _, changes in edit.files]
        fits = [all(changes.get(key) == value for key, value in options.items()) for changes in given]
        return bool(given) and all(fits) and edit.applicability == applicability

    return right


def as_dict(value: Any) -> Any:
    return dict(value) if isinstance(value, tuple) else value


def counts(number: int, applicability: str) -> Callable[[Edit], bool]:
    return lambda edit: ('num_classes', number) in edit.options and edit.applicability == applicability


def safe(edit: Edit) -> bool:
    return edit.applicability == 'safe'


def anything(edit: Edit) -> bool:
    return True


def of_both(build: Build) -> Build:
    """Training and validation are looked at."""
    return with_options(build, splits=('train', 'val'))


def five(arrays: Any, val: Any = None, names: Any = None, **settings: Any) -> Build:
    names = FIVE if names is None else names
    build = seg_config(arrays, names, seg_model(len(names)), val=val, **settings)
    return build if val is None else of_both(build)


def drawn(labels: Any, colours: Any) -> Any:
    return each(labels, lambda label: coloured(label, colours))


def mostly_white() -> Any:
    return [np.where(blob(1, seed=s) == 1, 0, 255).astype(np.uint8) for s in range(6)]


def behind_background(number: int) -> Any:
    """Objects of ``number`` classes, one in a file, in a background of 0."""
    return [np.where(blob(1, seed=s) == 1, s % number + 1, 0).astype(np.uint8) for s in range(2 * number)]


def quarters(value: int) -> Any:
    """0, 1 and another value that fills most of the files."""
    found = []
    for seed in range(6):
        label = np.full((60, 80), value, np.uint8)
        label[:10], label[10:20, : 20 + seed] = 0, 1
        found.append(label)
    return found


RAW = scenes([7, 8, 11, 21, 23, 24, 26, 33, 0, 1], 4)
TRAIN_IDS = scenes(range(9), 4)
CITY = [f'class {i}' for i in range(19)]
STUFF = [f'class {i}' for i in range(171)]

#: Those of other rules are followed by machine in edits/, with what their values mean.
RIGHT: Dict[str, Case] = {
    'void behind the classes': Case('MG102', masks(scenes(range(12), 6), 11), maps({11: 255})),
    'LoveDA': Case(
        'MG102',
        seg_config(
            scenes(range(8), 8), None, seg_model(7), type='LoveDADataset', reduce_zero_label=False, img_suffix='.jpg'
        ),
        reduces('safe'),
    ),
    'white foreground, reduced': Case(
        'MG103', with_options(masks(BLOBS, 2), reduce_zero_label=True), reduces('safe', False)
    ),
    'classes that were not counted': Case('MG107', masks(scenes(range(8), 6, keep=0.8), 2), counts(8, 'asks')),
    'from one, in a config': Case('MG115', five(scenes(range(1, 6), 6)), reduces('safe')),
    'gaps': Case('MG116', masks(scenes([0, 1, 2, 5, 9], 7), 5), maps({5: 3, 9: 4})),
    'gaps, one id in the validation alone': Case(
        'MG116', five(scenes([0, 1, 2, 5, 9], 7), scenes([0, 2, 9], 4)), lambda e: in_config(e, '9: 4')
    ),
    'the palette of the config': Case(
        'MG120',
        five(drawn(scenes(range(5), 5), PALETTE), metainfo=dict(classes=FIVE, palette=PALETTE)),
        writes('safe', colours={colour: label for label, colour in enumerate(PALETTE)}),
    ),
    'black and red': Case(
        'MG120',
        masks(drawn(blobs(1, 6), [(0, 0, 0), (255, 0, 0)]), 2),
        writes(colours={(0, 0, 0): 0, (255, 0, 0): 1}),
    ),
    'three equal channels': Case(
        'MG120', masks(each(scenes(range(5), 4), lambda x: channels(x, 0, 0)[..., [0, 0, 0]]), 5), writes('safe')
    ),
    'reduced, and the background is in no list': Case(
        'MG124',
        five(behind_background(5), reduce_zero_label=True),
        lambda e: in_config(e, f"('background', {FIVE[0]!r}") and reduces('asks', False)(e),
    ),
    'a level that only the validation holds': Case(
        'MG125',
        five(scenes([0, 60, 180], 6), scenes([0, 60, 120, 240], 4)),
        lambda e: in_config(e, '60: 1, 120: 2, 180: 3, 240: 4'),
    ),
    'soft edges of two classes': Case('MG136', masks(each(BLOBS, soft), 2), writes(threshold=127)),
}

HARM: Dict[str, Case] = {
    'train ids in the validation are mapped again': Case(
        'MG101', five(RAW, TRAIN_IDS, CITY), lambda e: in_config(e, 'val_dataloader')
    ),
    'a class of a quarter is ignored': Case('MG102', masks(scenes(range(4), 8), 3), reduces()),
    'void of the validation is the object': Case(
        'MG103',
        five(BLOBS, scenes([0, 1, VOID], 4), ['ground', 'house']),
        lambda e: in_config(e, 'val_dataloader'),
    ),
    'most is 255: nobody is asked': Case('MG103', masks(mostly_white(), 2), safe),
    '255 may be the class that never occurs': Case(
        'MG133', with_options(masks(scenes([0, 1, VOID], 6), 3), ignore_index=-100), safe
    ),
    'pictures of five classes are thresholded': Case(
        'MG106',
        masks([np.random.default_rng(s).integers(0, 256, (60, 80)).astype('u1') for s in range(4)], 5),
        anything,
    ),
    'most of the pixels are ignored': Case('MG107', masks(quarters(7), 2), maps({7: 255})),
    'the list may not be what the files are numbered by': Case(
        'MG108', seg_config(scenes(range(4), 6), FIVE, seg_model(3)), safe
    ),
    'a class is ignored by the shift': Case(
        'MG115',
        with_options(masks(scenes(range(1, 7), 6), 6), ignore_index=5),
        lambda e: ('ignore_index', 255) not in e.options,
    ),
    'a validation from 0 is shifted': Case(
        'MG115', five(scenes(range(1, 6), 6), scenes(range(5), 6)), lambda e: in_config(e, 'val_dataloader')
    ),
    'each split has its own numbers': Case(
        'MG116', five(scenes([0, 1, 2, 5, 9], 7), scenes([0, 1, 2, 6, 7], 4)), anything
    ),
    'converted COCO-Stuff is mapped again': Case(
        'MG117',
        five(scenes([0, 1, 12, 24, 181], 5), scenes([0, 1, 11, 25, 170], 4), STUFF),
        lambda e: in_config(e, 'val_dataloader'),
    ),
    'a number of a colour is guessed': Case('MG120', masks(drawn(scenes(range(4), 5), OWN_COLOURS), 4), anything),
    'a palette of other colours': Case(
        'MG120',
        five(drawn(scenes(range(5), 5), VOC_COLOURS), metainfo=dict(classes=FIVE, palette=PALETTE[::-1])),
        writes('safe', colours={colour: label for label, colour in enumerate(PALETTE[::-1])}),
    ),
    'ids of 16 bits are cut': Case(
        'MG122', masks(each(scenes([0, 1, 2], 4), lambda x: x.astype('u2') * 600), 5), anything
    ),
    'fewer levels than classes': Case('MG125', masks(scenes([0, 100, 255], 6), 4), anything),
    'other levels in the validation': Case(
        'MG125', five(scenes([0, 127, 255], 6), scenes([0, 90, 200], 4), FIVE[:3]), anything
    ),
    'three classes are made two': Case('MG136', masks(each(scenes([0, 1, 2, VOID], 6), soft), 3), anything),
    'unknown LoveDA names': Case('MG102', five(scenes(range(8), 8), names=LOVEDA), maps({7: 255})),
}


@lru_cache(maxsize=None)
def found(name: str, harm: bool) -> Tuple[Finding, ...]:
    with TemporaryDirectory() as root:
        return tuple(findings_of((HARM if harm else RIGHT)[name].build, Path(root)))


def of_code(findings: Tuple[Finding, ...], code: str) -> Finding:
    chosen = [finding for finding in findings if finding.code == code]
    assert chosen, findings
    return chosen[0]


@pytest.mark.parametrize('name', list(RIGHT))
def test_the_right_edit_is_offered(name: str) -> None:
    case = RIGHT[name]
    finding = of_code(found(name, False), case.code)
    assert any(case.says(edit) for edit in finding.edits), finding.edits


@pytest.mark.parametrize('name', list(HARM))
def test_what_does_harm_is_not_offered(name: str) -> None:
    case = HARM[name]
    finding = of_code(found(name, True), case.code)
    assert not [edit for edit in finding.edits if case.says(edit)], finding.edits


@pytest.mark.parametrize('name', list(RIGHT))
def test_what_asks_has_a_question_and_what_is_safe_has_none(name: str) -> None:
    for finding in found(name, False):
        for edit in finding.edits:
            assert bool(edit.question) == (edit.applicability == 'asks'), edit
