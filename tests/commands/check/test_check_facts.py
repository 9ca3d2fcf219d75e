"""What a config says about labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_configs import ADE20K, PANOPTIC, PIDNET, PSPNET, RETINANET, changed, official_file
from mmengine.config import Config

from mmguard.config.read import read_config
from mmguard.facts.config import collect_config_facts

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

NEW_STYLE = Path(__file__).parents[3] / 'configs' / 'new_style' / 'fcn_r50_cityscapes_guarded.py'


def test_segmentation():
    facts = collect_config_facts(changed(PIDNET, {}))
    assert facts.framework == 'mmseg'
    assert facts.head_classes == {'model.decode_head.num_classes': 19}
    assert facts.ignore_index['model.decode_head.loss_decode[1].ignore_label'] == 255
    assert facts.ignore_index['model.data_preprocessor.seg_pad_val'] == 255
    assert facts.losses['model.decode_head.loss_decode[2]'] == 'BoundaryLoss'
    assert facts.heads == {'model.decode_head': 'PIDHead'}
    assert facts.dataset_classes['train_dataloader.dataset (CityscapesDataset.METAINFO)'][0] == 'road'


def test_defaults_of_classes_are_known():
    facts = collect_config_facts(changed(ADE20K, {}))
    assert facts.reduce_zero_label['train_dataloader.dataset.reduce_zero_label'] is True  # ADE20KDataset's default
    assert facts.reduce_zero_label['train_dataloader.dataset.pipeline[1].reduce_zero_label'] is True
    assert set(facts.ignore_index.values()) == {255}


def test_things_and_stuff():
    facts = collect_config_facts(changed(PANOPTIC, {}))
    assert facts.framework == 'mmdet'
    assert facts.head_classes['model.panoptic_head.num_things_classes'] == 80
    assert facts.head_classes['model.panoptic_fusion_head.num_stuff_classes'] == 53


def test_a_choice_of_classes_is_a_label_map():
    facts = collect_config_facts(changed(PSPNET, {'train_dataloader.dataset.metainfo': dict(classes=('car', 'road'))}))
    assert facts.label_map[13] == 0
    assert facts.label_map[0] == 1
    assert facts.label_map[5] == 255
    assert facts.dataset_classes['train_dataloader.dataset.metainfo.classes'] == ['car', 'road']
    facts = collect_config_facts(changed(PSPNET, {'train_dataloader.dataset.metainfo': dict(classes=('moon',))}))
    assert facts.label_map == {}


def test_both_styles_and_a_loaded_config_say_the_same():
    facts = collect_config_facts(read_config(str(NEW_STYLE)))
    assert facts.framework == 'mmseg'
    assert facts.head_classes == {'model.decode_head.num_classes': 19}
    assert len(facts.dataset_classes) == 3
    assert facts.heads['model.decode_head'] == 'FCNHead'
    file = official_file(PSPNET)
    assert collect_config_facts(Config.fromfile(file)) == collect_config_facts(read_config(str(file)))


def test_class_names_from_a_file(tmp_path):
    names = tmp_path / 'classes.txt'
    names.write_text('cat\ndog\n')
    facts = collect_config_facts(changed(RETINANET, {'train_dataloader.dataset.metainfo': dict(classes=str(names))}))
    assert facts.dataset_classes['train_dataloader.dataset.metainfo.classes'] == ['cat', 'dog']
