"""nnU-Net on label files with a value that dataset.json does not declare.

    python examples/nnunet_guarded.py

Makes five small volumes, two with a value 7 next to background, organ and tumor. nnU-Net plans and preprocesses them
(without its check of the labels) and trains a short epoch: its own trainer crashes, the guarded trainer finishes and
names cases, values and voxels. With your own data:

    eval "$(mmguard nnunet)"
    nnUNetv2_train 1 2d all -tr nnUNetTrainerGuarded

Needs nnunetv2 and nibabel.
"""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import torch

try:
    import nibabel
    import nnunetv2  # noqa: F401
except ImportError as error:
    raise SystemExit(f'this example needs nnU-Net, `pip install nnunetv2 nibabel`: {error}') from None


def make_data_set(folder: Path) -> None:
    random = np.random.default_rng(0)
    for name in ('imagesTr', 'labelsTr'):
        (folder / name).mkdir(parents=True)
    for case in range(5):
        labels = np.zeros((24, 24, 24), np.uint8)
        labels[6:18, 6:18] = 1
        labels[9:14, 9:14] = 2
        if case in (1, 3):
            labels[8:13, 12:17] = 7  # from another labeling protocol
        image = labels.clip(0, 2) * 100 + random.normal(50, 10, labels.shape)
        nibabel.save(nibabel.Nifti1Image(image.astype('f4'), np.eye(4)), folder / f'imagesTr/case_{case}_0000.nii.gz')
        nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), folder / f'labelsTr/case_{case}.nii.gz')
    described = {'channel_names': {'0': 'CT'}, 'numTraining': 5, 'file_ending': '.nii.gz'}
    described['labels'] = {'background': 0, 'organ': 1, 'tumour': 2}
    (folder / 'dataset.json').write_text(json.dumps(described))


def plan_and_preprocess() -> None:
    from nnunetv2.experiment_planning import plan_and_preprocess_api as nnunet

    nnunet.extract_fingerprints([1], num_processes=1)
    nnunet.plan_experiments([1])
    nnunet.preprocess([1], configurations=['2d'], num_processes=[1])


def train(trainer_class: type, preprocessed: Path) -> None:
    plans = {**json.loads((preprocessed / 'nnUNetPlans.json').read_text()), 'continue_training': False}
    described = json.loads((preprocessed / 'dataset.json').read_text())
    trainer = trainer_class(plans, '2d', 'all', described, device=torch.device('cpu'))
    trainer.num_epochs, trainer.num_iterations_per_epoch, trainer.num_val_iterations_per_epoch = 1, 10, 2
    trainer.run_training()


def main() -> None:
    root = Path(tempfile.mkdtemp())
    for name in ('nnUNet_raw', 'nnUNet_preprocessed', 'nnUNet_results'):
        os.environ[name] = str(root / name)
        (root / name).mkdir()
    os.environ.update(nnUNet_n_proc_DA='1')
    make_data_set(root / 'nnUNet_raw' / 'Dataset001_Small')
    plan_and_preprocess()
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer

    from mmguard.nnunet.trainer import nnUNetTrainerGuarded  # mmguard

    os.environ.update(nnUNet_n_proc_DA='0')  # load data in this process, so that no worker remains after a crash
    for trainer_class in (nnUNetTrainer, nnUNetTrainerGuarded):
        try:
            train(trainer_class, root / 'nnUNet_preprocessed' / 'Dataset001_Small')
            print(f'\n{trainer_class.__name__} finished\n')
        except (IndexError, RuntimeError) as error:
            print(f'\n{trainer_class.__name__} died: {type(error).__name__}: {error}\n')


if __name__ == '__main__':
    main()
