"""Every head of mmseg, every detector of mmdet: two iterations on planted labels, guarded both ways: ``make zoo``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Set

import mmdet.models
import mmdet.registry
import mmseg.models
import mmseg.registry
import pytest
import torch
from architectures import ALL, BASES, CONFIG_FOLDERS, PACKAGES, Architecture, nodes_of, skipped, small_config
from guarded_twice import both_trained, counts_of, losses_of
from mmengine.registry import init_default_scope

REGISTRIES = {'mmseg': mmseg.registry.MODELS, 'mmdet': mmdet.registry.MODELS}
#: What cannot be trained offline, and why: config -> what its error says, the reason in docs/stacks.md.
NOT_TRAINED = {
    'mmseg/san/': ('init_weights', 'begins with the weights of CLIP'),
    'mmdet/boxinst/': ('skimage', 'needs scikit-image'),
    'mmdet/convnext/': ('mmpretrain', 'needs mmpretrain'),
    'mmdet/crowddet/': ('is invalid for input', 'fails in mmdet itself on images this small'),
    'mmdet/glip/': ('transformers', 'needs transformers and BERT'),
    'mmdet/grounding_dino/': ('', 'needs transformers and BERT'),
    'mmdet/lad/': ('sklearn', 'needs scikit-learn'),
    'mmdet/paa/': ('sklearn', 'needs scikit-learn'),
    'mmdet/misc/d2_': ('', 'needs detectron2'),
    'mmdet/soft_teacher/': ('', 'trains on unlabelled images, too: test_det_trainings.py'),
}

#: Its convolutions begin with whatever the memory held, so no two trainings have the same losses.
UNINITIALIZED = 'tridentnet'


def train(architecture: Architecture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Train a small config with both kinds of guards; return what was counted, and what is in the files."""
    init_default_scope(architecture.scope)
    monkeypatch.chdir(CONFIG_FOLDERS[architecture.scope].parent)  # distillation names the config of its teacher
    config, expected = small_config(architecture, str(folder / 'data'), str(folder / 'work'))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        two, written = both_trained(config, folder)
    lines = written.lines()
    # Counted in the pipeline, so not again in a loss.
    assert not [counts for line in lines for counts in line.get('losses', {}).values() if counts['skipped']]
    assert counts_of(two) == counts_of(written)
    if UNINITIALIZED not in architecture.name:
        # On a GPU sums are added up in another order every time.
        assert (
            losses_of(two)
            == pytest.approx(losses_of(written), rel=0.01 if torch.cuda.is_available() else 0, abs=0)
            != []
        )
    return skipped(lines), expected


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('architecture', ALL, ids=str)
def test_counts_of_a_training(architecture: Architecture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = next((said for part, said in NOT_TRAINED.items() if str(architecture).startswith(part)), None)
    if listed is None:
        counted, expected = train(architecture, tmp_path, monkeypatch)
        assert counted == expected
        return
    error, reason = listed
    try:
        train(architecture, tmp_path, monkeypatch)
    except Exception as raised:  # what each raises where something is missing
        assert error in str(raised)  # noqa: PT017
        pytest.skip(reason)
    pytest.fail(f'{architecture} trains here: it is listed as one that {reason}')


@pytest.mark.parametrize('scope', REGISTRIES)
def test_no_head_is_left_out(scope: str) -> None:
    registered = {
        name
        for name, made in REGISTRIES[scope].module_dict.items()
        if any(f'.{package}.' in made.__module__ for package in PACKAGES) and 'roi_extractors' not in made.__module__
    }
    trained: Set[str] = set()
    for architecture in ALL:
        if architecture.scope == scope:
            trained |= {str(node.get('type')).rpartition('.')[2] for node in nodes_of(architecture.load().model)}
    assert registered - trained == BASES[scope]
