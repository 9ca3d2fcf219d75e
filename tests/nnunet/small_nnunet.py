"""A tiny nnU-Net data set, planned and preprocessed by nnU-Net's own code."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from log_lines import with_values

#: Case -> (invalid value, how wide the column of voxels is that has it).
PLANTED = {'case_001': (7, 5), 'case_003': (3, 4)}
CASES = [f'case_{number:03d}' for number in range(5)]
SIZE = 24

PLAIN = {'background': 0, 'organ': 1, 'tumour': 2}
IGNORING = {**PLAIN, 'ignore': 3}
REGIONS = {'background': 0, 'organ': [1, 2], 'tumour': 2}
IGNORING_REGIONS = {**REGIONS, 'ignore': 3}


def dataset_json(labels: Dict[str, Any]) -> Dict[str, Any]:
    described = {'channel_names': {'0': 'CT'}, 'labels': labels, 'numTraining': len(CASES), 'file_ending': '.nii.gz'}
    if any(isinstance(label, list) for label in labels.values()):
        described['regions_class_order'] = [1, 2]
    return described


def label_volume(case: str, planted: Dict[str, Any]) -> np.ndarray:
    """An organ with a tumour in it, and, in some, a column of invalid voxels through all slices."""
    labels = np.zeros((SIZE,) * 3, dtype=np.uint8)
    labels[6:18, 6:18, 6:18] = 1
    labels[10:14, 10:14, 10:14] = 2
    if case in planted:
        value, edge = planted[case]
        labels[8 : 8 + edge, 12 : 12 + edge] = value
    return labels


def make_raw(folder: Path, labels: Dict[str, Any], planted: Dict[str, Any] = PLANTED) -> None:
    """Writes a raw data set: five CT-like volumes of 24^3 voxels and their labels."""
    import nibabel

    random = np.random.default_rng(0)
    for name in ('imagesTr', 'labelsTr'):
        (folder / name).mkdir(parents=True)
    for case in CASES:
        volume = label_volume(case, planted)
        image = (volume.clip(0, 2) * 100 + random.normal(50, 10, volume.shape)).astype(np.float32)
        nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), folder / 'imagesTr' / f'{case}_0000.nii.gz')
        nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), folder / 'labelsTr' / f'{case}.nii.gz')
    (folder / 'dataset.json').write_text(json.dumps(dataset_json(labels)))


def set_folders(root: Path) -> None:
    """Where nnU-Net reads and writes, for this process and its children."""
    os.environ.update(
        nnUNet_raw=str(root / 'raw'),
        nnUNet_preprocessed=str(root / 'preprocessed'),
        nnUNet_results=str(root / 'results'),
        nnUNet_compile='f',
        nnUNet_n_proc_DA='1',  # the planner's number of threads; trainings set it to 0, no worker
        nnUNet_def_n_proc='1',
    )


def plan_and_preprocess(root: Path, number: int = 1) -> Path:
    """Runs nnU-Net's fingerprint, planner and preprocessor, without its check of the labels.

    The network is made small in the plans, as a user may do.
    """
    from nnunetv2.experiment_planning.dataset_fingerprint.fingerprint_extractor import DatasetFingerprintExtractor
    from nnunetv2.experiment_planning.plan_and_preprocess_api import plan_experiments

    DatasetFingerprintExtractor(number, 1).run(overwrite_existing=True)
    plan_experiments([number])
    name = next(folder.name for folder in (root / 'raw').iterdir() if folder.name.startswith(f'Dataset{number:03d}'))
    folder = root / 'preprocessed' / name
    plans = json.loads((folder / 'nnUNetPlans.json').read_text())
    for configuration in ('2d', '3d_fullres'):
        _shrink(plans['configurations'][configuration])
    (folder / 'nnUNetPlans.json').write_text(json.dumps(plans))
    for configuration in ('2d', '3d_fullres'):
        preprocess(root, name, configuration)
    shutil.copytree(root / 'raw' / name / 'labelsTr', folder / 'gt_segmentations', dirs_exist_ok=True)
    return folder


def preprocess(root: Path, name: str, configuration: str) -> None:
    """nnU-Net's preprocessor on every case, in this process: starting others takes longer than the work."""
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

    plans = PlansManager(str(root / 'preprocessed' / name / 'nnUNetPlans.json'))
    manager = plans.get_configuration(configuration)
    target = root / 'preprocessed' / name / manager.data_identifier
    target.mkdir(exist_ok=True)
    raw = root / 'raw' / name
    for case in CASES:
        manager.preprocessor_class(verbose=False).run_case_save(
            str(target / case),
            [str(raw / 'imagesTr' / f'{case}_0000.nii.gz')],
            str(raw / 'labelsTr' / f'{case}.nii.gz'),
            plans,
            manager,
            json.loads((raw / 'dataset.json').read_text()),
        )


def with_the_plans_of(planned: Path, root: Path, name: str) -> Path:
    """Preprocesses another data set, of the same images, with plans that are there."""
    folder = root / 'preprocessed' / name
    folder.mkdir()
    plans = json.loads((planned / 'nnUNetPlans.json').read_text())
    plans['dataset_name'] = name
    (folder / 'nnUNetPlans.json').write_text(json.dumps(plans))
    shutil.copy(planned / 'dataset_fingerprint.json', folder)
    shutil.copy(root / 'raw' / name / 'dataset.json', folder)
    for configuration in ('2d', '3d_fullres'):
        preprocess(root, name, configuration)
    shutil.copytree(root / 'raw' / name / 'labelsTr', folder / 'gt_segmentations', dirs_exist_ok=True)
    return folder


def _shrink(configuration: Dict[str, Any]) -> None:
    configuration['batch_size'] = 4 if len(configuration['patch_size']) == 2 else 2
    configuration['patch_size'] = [16] * len(configuration['patch_size'])
    network = configuration['architecture']['arch_kwargs']
    stages = 3
    network['n_stages'] = stages
    network['features_per_stage'] = [4, 8, 8]
    for key in ('kernel_sizes', 'strides', 'n_conv_per_stage'):
        network[key] = network[key][:stages]
    network['n_conv_per_stage_decoder'] = network['n_conv_per_stage_decoder'][: stages - 1]


def trainer(base: Any, folder: Path, configuration: str, iterations: int = 3, **attributes: Any) -> Any:
    """A trainer of one short epoch.

    Args:
        base (type): The trainer.
        folder (Path): The preprocessed data set.
        configuration (str): ``'2d'`` or ``'3d_fullres'``.
        iterations (int): Of the epoch, of training and validation each.
        **attributes: Class attributes.
    """
    import torch

    os.environ.update(nnUNet_n_proc_DA='0')
    kind = type(base.__name__, (base,), attributes)
    plans = json.loads((folder / 'nnUNetPlans.json').read_text())
    plans['continue_training'] = False
    described = json.loads((folder / 'dataset.json').read_text())
    made = kind(plans, configuration, 'all', described, device=torch.device('cpu'))
    made.num_epochs = 1
    made.num_iterations_per_epoch = made.num_val_iterations_per_epoch = iterations
    made.disable_checkpointing = True
    return made


def lines_of(folder: Any) -> List[Dict[str, Any]]:
    path = Path(folder) / 'label_guard.jsonl'
    return with_values([json.loads(line) for line in path.read_text().splitlines()]) if path.exists() else []
