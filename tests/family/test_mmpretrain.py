"""GuardClsLabels behind mmpretrain's PackInputs, and before it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain.datasets import PackInputs
from mmpretrain.models import ClsDataPreprocessor
from small_cls import CLASSES, IMAGES, PLANTED, cls_config, make_images, make_multi, make_single, name_of

from mmguard import GuardClsLabels, LabelGuardError, guard_config
from mmguard.cli import main
from mmguard.labels.tally import get_tallies


def packed(**labels: Any) -> Dict[str, Any]:
    return PackInputs()({'img': np.zeros((2, 2, 3), np.uint8), 'img_path': 'a.jpg', **labels})


def guarded(guard: GuardClsLabels, **labels: Any) -> Any:
    return guard(packed(**labels))['data_samples']


def counts(sample: Any) -> tuple:
    tally = get_tallies(sample)['instances']
    return tally.total, tally.skipped, tally.remapped, tally.mapped, tally.values, tally.source


def test_a_valid_label_stays() -> None:
    sample = guarded(GuardClsLabels(3), gt_label=2)
    assert sample.gt_label.tolist() == [2]
    assert 'gt_score' not in sample
    assert counts(sample) == (1, 0, 0, 0, {}, 'a.jpg')


@pytest.mark.parametrize('label', [3, -1, 255])
def test_an_invalid_label_is_left_out_of_the_loss(label: int) -> None:
    sample = guarded(GuardClsLabels(3), gt_label=label)
    assert sample.gt_label.tolist() == [-100]
    assert counts(sample) == (1, 1, 0, 0, {label: 1}, 'a.jpg')


def test_clip_map_and_raise() -> None:
    assert guarded(GuardClsLabels(3, on_invalid='clip'), gt_label=9).gt_label.tolist() == [2]
    sample = guarded(GuardClsLabels(3, label_map={9: 0}), gt_label=9)
    assert (sample.gt_label.tolist(), counts(sample)[:4]) == ([0], (1, 0, 0, 1))
    with pytest.raises(LabelGuardError) as caught:
        guarded(GuardClsLabels(3, on_invalid='raise'), gt_label=9)
    assert (caught.value.tallies[0].source, caught.value.tallies[0].values) == ('a.jpg', {9: 1})


def test_of_several_labels_the_invalid_ones_are_removed() -> None:
    sample = guarded(GuardClsLabels(3, multi_label=True), gt_label=[0, 7, 2])
    assert sample.gt_label.tolist() == [0, 2]
    assert counts(sample) == (3, 1, 0, 0, {7: 1}, 'a.jpg')
    assert guarded(GuardClsLabels(3, multi_label=True), gt_label=[]).gt_label.tolist() == []


def test_several_labels_need_multi_label() -> None:
    with pytest.raises(ValueError, match=r'a\.jpg: gt_label .*\(2,\)'):
        guarded(GuardClsLabels(3), gt_label=[0, 1])


def test_before_the_pack_transform_the_report_travels_by_meta_keys() -> None:
    results = GuardClsLabels(3)({'img': np.zeros((2, 2, 3), np.uint8), 'gt_label': 5, 'sample_idx': 17})
    sample = PackInputs(meta_keys=('label_guard',))(results)['data_samples']
    assert sample.gt_label.tolist() == [-100]
    assert counts(sample) == (1, 1, 0, 0, {5: 1}, 'sample 17')


def test_nothing_happens_without_labels() -> None:
    assert 'label_guard' not in guarded(GuardClsLabels(3))


@pytest.mark.parametrize('score', [[0.5, 0.5, 0.5], [1.5, -0.5, 0.0], [float('nan'), 1.0, 0.0]])
def test_a_score_that_is_no_distribution(score: list) -> None:
    sample = guarded(GuardClsLabels(3), gt_score=score)
    assert sample.gt_score.isnan().all()
    assert counts(sample)[:3] == (1, 1, 0)
    clipped = guarded(GuardClsLabels(3, on_invalid='clip'), gt_score=score)
    assert clipped.gt_score.sum().item() == pytest.approx(1)
    assert counts(clipped)[:3] == (1, 0, 1)
    with pytest.raises(LabelGuardError, match=r'a\.jpg: gt_score '):
        guarded(GuardClsLabels(3, on_invalid='raise'), gt_score=score)


def test_scores_that_are_valid() -> None:
    assert guarded(GuardClsLabels(3), gt_score=[0.2, 0.8, 0.0]).gt_score.tolist() == pytest.approx([0.2, 0.8, 0.0])
    several = guarded(GuardClsLabels(3, multi_label=True), gt_score=[1.0, 1.0, 0.0])
    assert several.gt_score.tolist() == [1, 1, 0]


def test_a_score_of_another_number_of_classes() -> None:
    with pytest.raises(ValueError, match=r'a\.jpg: gt_score .*\(4,\).*\(3,\)'):
        guarded(GuardClsLabels(3), gt_score=[0.0, 0.0, 0.0, 1.0])


def batch(guard: Any, labels: list) -> Dict[str, Any]:
    samples = [packed(gt_label=label) for label in labels]
    samples = [sample if guard is None else guard(sample) for sample in samples]
    inputs = torch.stack([sample['inputs'] for sample in samples])
    return {'inputs': inputs, 'data_samples': [sample['data_samples'] for sample in samples]}


@pytest.mark.parametrize('multi_label', [False, True])
def test_the_preprocessor_makes_scores_only_of_what_is_guarded_before(multi_label: bool) -> None:
    """MixUp and CutMix take one-hot scores: an invalid label ends the training there, before any loss."""
    preprocessor = ClsDataPreprocessor(num_classes=3, batch_augments={'augments': {'type': 'Mixup', 'alpha': 1.0}})
    with pytest.raises(RuntimeError):
        preprocessor(batch(None, [0, 7, 2, 1]), training=True)
    guard = GuardClsLabels(3, multi_label=multi_label, to_onehot=True)
    mixed = preprocessor(batch(guard, [0, 7, 2, 1]), training=True)['data_samples']
    rows = torch.stack([sample.gt_score for sample in mixed])
    assert 1 <= rows.isnan().all(1).sum() <= 2  # the image without a label, and what it was mixed into
    torch.testing.assert_close(rows.nansum(1)[~rows.isnan().any(1)], torch.ones(4)[~rows.isnan().any(1)])


def test_valid_labels_become_the_scores_that_the_preprocessor_makes() -> None:
    preprocessor = ClsDataPreprocessor(num_classes=3, to_onehot=True)
    stock = preprocessor(batch(None, [0, 2, 1]))['data_samples']
    ours = preprocessor(batch(GuardClsLabels(3, to_onehot=True), [0, 2, 1]))['data_samples']
    assert [sample.gt_score.tolist() for sample in ours] == [sample.gt_score.tolist() for sample in stock]


SINGLE = (make_single, {})
SEVERAL = (
    make_multi,
    dict(head=dict(type='MultiLabelLinearClsHead'), dataset=dict(type='MultiLabelDataset', ann_file='train.json')),
)


@pytest.mark.parametrize(('make', 'said'), [SINGLE, SEVERAL], ids=['one label', 'several labels'])
def test_an_invalid_label_is_followed_to_where_it_is_left_out(
    make: Any, said: Dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    stock = cls_config(make(tmp_path / 'data'), tmp_path, **said)
    for config, ends in ((stock, False), (guard_config(stock), True)):
        file = tmp_path / 'config.py'
        config.dump(str(file))
        main(['trace', str(file), '--sample', '1', '--json', '-'])
        story = json.loads(capsys.readouterr().out)
        assert story['invalid']['instances'] == [3]
        changed = [step['step'] for step in story['steps'] if step['changes']]
        assert (changed[-1:] == ['GuardClsLabels']) is ends


Output = Any


def scanned(config: Config, folder: Path, capsys: Output, *options: str) -> Tuple[int, str]:
    """Exit code and what is shown."""
    file = folder / 'config.py'
    config.dump(str(file))
    capsys.readouterr()
    code = main(['scan', str(file), *options])
    shown = capsys.readouterr()
    return code, ' '.join((shown.out + shown.err).split())


def test_a_line_out_of_range_is_named(tmp_path: Path, capsys: Output) -> None:
    code, text = scanned(cls_config(make_single(tmp_path / 'data'), tmp_path), tmp_path, capsys)
    assert code == 1
    for number, label in PLANTED.items():
        assert re.search(rf'train\.txt\D+{number + 1}\b.*{name_of(number)} {label}\b', text)


def test_clean_lines(tmp_path: Path, capsys: Output) -> None:
    assert scanned(cls_config(make_single(tmp_path / 'data', {}), tmp_path), tmp_path, capsys)[0] == 0


def test_a_folder_that_is_no_class_of_the_head(tmp_path: Path, capsys: Output) -> None:
    """Folders are numbered by their names, so the fourth moves the others, too."""
    root = tmp_path / 'data'
    make_images(root)
    for number in range(IMAGES):
        folder = root / 'images' / (*CLASSES, 'cow')[number % 4]
        folder.mkdir(exist_ok=True)
        (root / 'images' / name_of(number)).rename(folder / name_of(number))
    config = cls_config(root, tmp_path, dataset=dict(type='CustomDataset'))
    code, text = scanned(config, tmp_path, capsys)
    assert code == 1
    assert re.search(r'MG108 .*\bdog\b', text)
    assert f'images/dog/{name_of(1)}: 3' in text
    out = tmp_path / 'out.py'
    assert main(['apply', str(tmp_path / 'config.py'), '-o', str(out), '--scan', '--edit', '1']) == 0
    written = Config.fromfile(str(out))
    assert written.model.head.num_classes == written.data_preprocessor.num_classes == 4
    assert main(['scan', str(out)]) == 0


def test_several_labels_of_an_image(tmp_path: Path, capsys: Output) -> None:
    config = cls_config(
        make_multi(tmp_path / 'data'),
        tmp_path,
        head=dict(type='MultiLabelLinearClsHead'),
        dataset=dict(type='MultiLabelDataset', ann_file='train.json'),
    )
    code, text = scanned(config, tmp_path, capsys)
    assert code == 1
    assert f'images/{name_of(1)}: 1, 2, 3' in text
    assert re.search(rf'\b{2 * IMAGES + len(PLANTED)} .*\b{len(PLANTED)} ', text)


def test_lines_that_are_none_are_named_and_do_not_end_the_scan(tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data')
    (root / 'train.txt').write_text('00.png\n01.png one\n\n02.png 2\n', encoding='utf-8')
    code, text = scanned(cls_config(root, tmp_path), tmp_path, capsys)
    assert code == 1
    assert set(re.findall(r'train\.txt: line (\d)', text)) >= {'1', '2', '3'}
    assert "'one'" in text


def test_images_that_are_not_there(tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data', {})
    (root / 'images' / name_of(4)).unlink()
    code, text = scanned(cls_config(root, tmp_path), tmp_path, capsys)
    assert (code, name_of(4) in text) == (1, True)


@pytest.mark.parametrize('what', ['no file', 'an empty file', 'no folder of classes', 'a type that nobody knows'])
def test_code_is_not_0_where_nothing_was_read(what: str, tmp_path: Path, capsys: Output) -> None:
    root = make_single(tmp_path / 'data')
    config = cls_config(root, tmp_path)
    if what == 'no file':
        (root / 'train.txt').unlink()
    elif what == 'an empty file':
        (root / 'train.txt').write_text('', encoding='utf-8')
    elif what == 'no folder of classes':
        config.train_dataloader.dataset.ann_file = ''
    else:
        config.train_dataloader.dataset.type = 'MyOwnDataset'
    assert scanned(config, tmp_path, capsys)[0] == 2


def test_nothing_is_fetched(tmp_path: Path, capsys: Output) -> None:
    config = cls_config(tmp_path, tmp_path, dataset=dict(type='CIFAR10'))
    assert scanned(config, tmp_path, capsys)[0] == 2
    assert not any((tmp_path / 'images').glob('*.tar*'))
