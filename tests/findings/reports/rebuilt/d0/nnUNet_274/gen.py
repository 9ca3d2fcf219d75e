"""A raw data set of nnU-Net v1 with the labels 1, 2, 3 and 5."""

import json
import os

import nibabel
import numpy as np
from common import draw_labels

root = 'nnUNet_raw_data/Task510_Knee'
names = {0: 'background', 1: 'femur', 2: 'tibia', 3: 'patella', 5: 'cartilage'}
rng = np.random.default_rng(274)
for folder in ('imagesTr', 'labelsTr', 'imagesTs'):
    os.makedirs(f'{root}/{folder}')
cases = [f'knee_{number:03d}' for number in range(1, 9)]
for case in cases:
    labels = draw_labels(rng, (40, 40, 24), list(names), 14)
    image = (labels * 40 + rng.normal(0, 9, labels.shape)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), f'{root}/labelsTr/{case}.nii.gz')
    nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), f'{root}/imagesTr/{case}_0000.nii.gz')
training = [dict(image=f'./imagesTr/{case}.nii.gz', label=f'./labelsTr/{case}.nii.gz') for case in cases]
dataset = dict(name='Knee', tensorImageSize='3D', modality={'0': 'MRI'}, numTraining=8, numTest=0, test=[])
with open(f'{root}/dataset.json', 'w') as file:
    json.dump({**dataset, 'labels': {str(key): name for key, name in names.items()}, 'training': training}, file)
