"""Comparison of a few images of annotation files, as mmdet's own data set reads them, with the scan."""

from __future__ import annotations

import copy
import io
import os
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence

import numpy as np

from mmguard.files.regular import temporary_folder
from mmguard.findings.facts import LabelFacts, LoaderFacts
from mmguard.formats.coco.samples import Sample
from mmguard.scanning.config_maps import compare, up_to_the_loader
from mmguard.text import describe_error

if TYPE_CHECKING:
    from mmguard.scanning.config_instances import DetDataset


def ask_dataset(
    dataset: DetDataset, samples: Sequence[Sample], scan: Callable[[DetDataset], LabelFacts]
) -> LoaderFacts:
    """Load each sample with the data set of the config and compare the labels with a scan of the same file.

    The pipeline runs up to the loading of the annotations; masks are not loaded.
    """
    facts = LoaderFacts()
    try:
        steps = _up_to_the_loader(dataset)
    except ImportError as error:
        return LoaderFacts(unknown=describe_error(error, 160))
    except Exception as error:  # a user-defined class may raise anything
        steps, facts.unknown = [], f'its pipeline cannot be built ({describe_error(error, 160)})'
    with temporary_folder() as folder:
        for number, sample in enumerate(samples):
            path = os.path.join(folder, f'{number}{os.path.splitext(dataset.ann_file)[1]}')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(sample.text)
            counts = scan(replace(dataset, ann_file=path)).histogram
            compare(facts, sample.image, counts, partial(_labels, dataset, path, steps))
    return facts


def _up_to_the_loader(dataset: DetDataset) -> List[Any]:
    from mmdet.registry import TRANSFORMS

    without = dict(with_mask=False, with_seg=False)
    steps = [
        {**step, **{key: value for key, value in without.items() if key in step}}
        for step in dataset.settings.get('pipeline') or ()
    ]
    return up_to_the_loader(steps, TRANSFORMS)


def _labels(dataset: DetDataset, path: str, steps: Sequence[Any]) -> Dict[int, int]:
    """Return label -> number of instances trained on, for the samples of an annotation file."""
    from mmdet.registry import DATASETS
    from mmengine.dataset import Compose

    light = copy.deepcopy(dataset.settings)
    light.update(type=dataset.cls, ann_file=path, pipeline=[], filter_cfg=None, serialize_data=False)
    light.pop('backend_args', None)  # the sample is on this machine
    light.pop('batch_shapes_cfg', None)  # mmyolo's order of images
    counts: Counter = Counter()
    with redirect_stdout(io.StringIO()):  # silence pycocotools
        built = DATASETS.build(light)
        built.full_init()
    built.pipeline = Compose(steps)
    for place in range(len(built)):
        results = built[place]
        if steps:
            counts.update(np.asarray(results['gt_bboxes_labels'])[~results['gt_ignore_flags']].tolist())
        else:
            counts.update(one['bbox_label'] for one in results['instances'] if not one['ignore_flag'])
    return counts
