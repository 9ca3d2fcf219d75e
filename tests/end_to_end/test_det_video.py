"""Detectors of videos, stock beside guarded: masktrack_rcnn ends with an invalid label, qdtrack makes it class 0."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from mmengine.config import Config, ConfigDict
from mmengine.registry import DATASETS, init_default_scope
from PIL import Image
from small_runs import Run

from mmguard import guard_config
from mmguard.cli import main
from mmguard.config.read import ReadConfig
from mmguard.findings import chosen_rules, diagnose
from mmguard.hooks.discovery import samples_of
from mmguard.labels.tally import tallies_of

SIZE, FRAMES = 64, 2
BOXES = ((4, 4, 30, 30), (32, 8, 24, 40))
#: Labels of the objects in each frame of each video. Of videos with two frames each is the other's reference.
LABELS = ([[0], [0, 7]], [[1], [41, 2]], [[40], [40, 5]], [[3, 42], [3, 42]])
CONFIGS = {
    'masktrack_rcnn': 'masktrack_rcnn/masktrack-rcnn_mask-rcnn_r50_fpn_8xb1-12e_youtubevis2021.py',
    'qdtrack': 'qdtrack/qdtrack_faster-rcnn_r50_fpn_8xb2-4e_mot17halftrain_test-mot17halfval.py',
}
NUM_CLASSES = {'masktrack_rcnn': 40, 'qdtrack': 1}


def make_videos(root: Path) -> Path:
    """COCO with videos, whose 43 classes are more than any of the heads has."""
    images: List[Dict[str, Any]] = []
    annotations: List[Dict[str, Any]] = []
    for video, frames in enumerate(LABELS):
        for frame, labels in enumerate(frames):
            name = f'video{video}/{frame:05d}.png'
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            pixels = np.random.default_rng(len(images)).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name)
            images.append(
                dict(id=len(images) + 1, video_id=video, frame_id=frame, file_name=name, height=SIZE, width=SIZE)
            )
            for track, (label, (x, y, w, h)) in enumerate(zip(labels, BOXES)):
                annotations.append(
                    dict(
                        id=len(annotations) + 1,
                        image_id=len(images),
                        category_id=label + 1,
                        instance_id=10 * video + track,
                        bbox=[x, y, w, h],
                        area=w * h,
                        segmentation=[[x, y, x + w, y, x + w, y + h, x, y + h]],
                        iscrowd=0,
                        visibility=1.0,
                        mot_conf=1.0,
                    )
                )
    videos = [dict(id=video, name=f'video{video}') for video in range(len(LABELS))]
    categories = [dict(id=label + 1, name=f'class {label}') for label in range(43)]
    text = json.dumps(dict(videos=videos, images=images, annotations=annotations, categories=categories))
    (root / 'train.json').write_text(text)
    return root


def planted(root: Path, num_classes: int) -> Dict[str, Dict[str, int]]:
    """File -> invalid label -> instances, counted in the file."""
    data = json.loads((root / 'train.json').read_text())
    names = {image['id']: image['file_name'] for image in data['images']}
    found: Dict[str, Counter] = {}
    for ann in data['annotations']:
        if ann['category_id'] > num_classes:
            found.setdefault(names[ann['image_id']], Counter())[str(ann['category_id'] - 1)] += 1
    return {name: dict(values) for name, values in found.items()}


def small_config(family: str, root: Path, work_dir: Path) -> Config:
    config = Config.fromstring(f'_base_ = ["mmdet::{CONFIGS[family]}"]', '.py')
    detector, track_head = config.model.detector, config.model.track_head
    detector.init_cfg = None
    detector.backbone.update(depth=18, base_channels=8, stem_channels=8, init_cfg=None)
    detector.neck.update(in_channels=[8, 16, 32, 64], out_channels=16)
    detector.rpn_head.update(in_channels=16, feat_channels=16)
    detector.train_cfg.rpn_proposal.update(nms_pre=100, max_per_img=50)
    detector.train_cfg.rcnn.sampler.num = 32
    track_head.train_cfg.sampler.num = 32
    for part in (detector.roi_head, track_head):
        for key in ('roi_extractor', 'bbox_roi_extractor', 'mask_roi_extractor'):
            if key in part:
                part[key].out_channels = 16
    detector.roi_head.bbox_head.update(in_channels=16, fc_out_channels=32)
    if 'mask_head' in detector.roi_head:
        detector.roi_head.mask_head.update(in_channels=16, conv_out_channels=16, num_convs=1)
    if family == 'qdtrack':
        track_head.embed_head.update(num_convs=1, in_channels=16, conv_out_channels=32, fc_out_channels=32)
    else:
        track_head.embed_head.update(in_channels=16, fc_out_channels=32)
    config.train_dataloader.update(num_workers=0, persistent_workers=False, batch_size=2)
    dataset = config.train_dataloader.dataset
    dataset.update(data_root=str(root), ann_file='train.json', data_prefix=dict(img_path=''))
    dataset.metainfo = dict(classes=tuple(f'class {label}' for label in range(43)))
    for step in dataset.pipeline:
        for inner in step.get('transforms', ()):
            if inner['type'] in ('Resize', 'RandomResize'):
                inner.scale = (SIZE, SIZE)
    config.work_dir = str(work_dir)
    config.experiment_name = config.visualizer.name = f'run-{uuid.uuid4().hex}'
    config.default_hooks.update(checkpoint=None, visualization=ConfigDict(type='TrackVisualizationHook', draw=False))
    config.default_hooks.logger.interval = 1
    config.randomness = dict(seed=0)
    config.train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1)
    config.param_scheduler = []
    config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    config.update(test_dataloader=None, test_cfg=None, test_evaluator=None)
    return config


@pytest.mark.parametrize('family', CONFIGS)
def test_counts_and_files_of_frames_arrive(family: str, tmp_path: Path) -> None:
    root = make_videos(tmp_path / 'data')
    stock = small_config(family, root, tmp_path / 'stock')
    if family == 'masktrack_rcnn':
        with pytest.raises(IndexError):  # on a GPU a device-side assert
            Run(stock).train()
    else:
        Run(stock).train()  # in silence: it trains whatever there is as class 0
    run = Run(guard_config(small_config(family, root, tmp_path / 'guarded'))).train()
    expected = planted(root, NUM_CLASSES[family])
    frames = FRAMES * len(LABELS)
    assert run.runner.iter == frames // 2
    found: Dict[str, Counter] = {}
    for line in run.lines():
        for sample in line['samples']:
            found.setdefault(sample['source'], Counter())[sample['skipped']] += 1
    # In an epoch each frame is the key once, and once the reference of the other.
    assert found == {name: {sum(values.values()): 2} for name, values in expected.items()}
    totals = json.loads((Path(run.log_dir) / 'label_guard.json').read_text())['runs'][0]['modes']['train']['totals']
    skipped = 2 * sum(sum(values.values()) for values in expected.values())
    assert totals['instances']['skipped'] == skipped
    assert totals['instances']['total'] == 2 * sum(len(labels) for video in LABELS for labels in video)
    values: Counter = Counter()
    for invalid in expected.values():
        values.update(invalid)
    assert totals['instances']['values'] == {value: 2 * number for value, number in values.items()}
    losses = [line['loss'] for line in run.scalars if 'loss' in line]
    assert len(losses) == frames // 2
    assert np.isfinite(losses).all()


def test_a_guard_inside_of_the_broadcaster_reports_what_one_behind_the_packing_does(tmp_path: Path) -> None:
    """And between the two it says where it belongs."""
    root = make_videos(tmp_path / 'data')
    guard = dict(type='GuardInstanceLabels', num_classes=40)
    tallies = []
    for where in ('inside', 'behind', 'between'):
        config = small_config('masktrack_rcnn', root, tmp_path)
        pipeline = config.train_dataloader.dataset.pipeline
        if where == 'inside':
            pipeline[1].transforms.append(guard)
            pipeline[-1].meta_keys = ('label_guard',)
        else:
            pipeline.insert(3 if where == 'behind' else 2, guard)
        init_default_scope('mmdet')
        dataset = DATASETS.build(config.train_dataloader.dataset)
        if where == 'between':
            with pytest.raises(ValueError, match='Put GuardInstanceLabels behind PackTrackInputs, or into'):
                dataset[1, 1]
            continue
        key = dataset[1, 1]['data_samples'].get_key_frames()[0]
        assert key.gt_instances.labels.tolist() == [2]
        assert key.ignored_instances.labels.tolist() == [41]
        tallies.append([tallies_of(frame)['instances'].to_json() for frame in samples_of(dataset[1, 1])])
    assert tallies[0] == tallies[1]
    assert tallies[0][1] == dict(tallies[0][1], skipped=1, total=2, values={'41': 1})


def test_the_commands_know_videos(tmp_path: Path, capsys: Any) -> None:
    root = make_videos(tmp_path / 'data')
    file = tmp_path / 'masktrack.py'
    config = small_config('masktrack_rcnn', root, tmp_path).to_dict()
    file.write_text('\n'.join(f'{key} = {value!r}' for key, value in config.items()))
    assert main(['scan', str(file), '--json', str(tmp_path / 'scan.json')]) == 1
    assert '8 files; 13 instances, 5 of them invalid in 5 files; 40 classes' in capsys.readouterr().out
    assert main(['trace', str(file), '--sample', 'video1/00001.png']) == 1
    assert 'labels 2, 41; invalid: 41 (1 instance)' in capsys.readouterr().out
    # The names of YouTubeVISDataset come with its version.
    del config['train_dataloader']['dataset']['metainfo']
    read = ReadConfig(config)
    assert [f.code for f in diagnose(config=read, rules=chosen_rules(everything=True))] == ['MG220']
    config['model']['detector']['roi_head']['bbox_head']['num_classes'] = 13
    found = [f for f in diagnose(config=ReadConfig(config)) if f.code == 'MG201']
    assert 'has 13 classes, the data set 40' in found[0].cause
