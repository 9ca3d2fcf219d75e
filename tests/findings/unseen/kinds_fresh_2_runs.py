"""One more instance of each kind that shows in a batch, in a log, in what is installed, or in what is typed.

Written by somebody who had not read the rules, before the first run on any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
from drawn_scenes import save_photos
from kinds_batches import Batch, batch, regions
from kinds_fresh_2_maps import few_of_many, palette_one_short, train_ids
from kinds_logs import LogKind
from torch import Tensor


class Typed(NamedTuple):
    """A command line, and what its reader is to learn.

    Attributes:
        truth (str): The true cause, in words.
        argv (callable): Makes the files in a folder; returns the arguments of ``mmguard``.
        exit (int): The exit code.
        says (tuple[str]): What is printed.
        never (tuple[str]): What is not.
    """

    truth: str
    argv: Callable[[Path], List[str]]
    exit: int
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


def scanned(build: Callable[[Path], Any], *options: str) -> Callable[[Path], List[str]]:
    return lambda root: ['scan', str(build(root)), *options, '--processes', '1']


#: Of Cityscapes: labelIds -> trainIds.
TRAIN_IDS = '7:0,8:1,11:2,12:3,13:4,17:5,19:6,20:7,21:8,22:9,23:10,24:11,25:12,26:13,27:14,28:15,31:16,32:17,33:18'


def yolo(root: Path) -> Path:
    """As Roboflow exports for YOLOv8."""
    for split in ('train', 'valid'):
        save_photos(root / f'plates/{split}/images', 4)
        (root / f'plates/{split}/labels').mkdir()
        for number in range(4):
            rows = [f'{number % 2} 0.5 0.4 0.2 0.1', '1 0.25 0.75 0.125 0.0625']
            (root / f'plates/{split}/labels/{number:03}.txt').write_text('\n'.join(rows))
    (root / 'plates/data.yaml').write_text("train: train/images\nval: valid/images\nnc: 2\nnames: ['plate', 'car']\n")
    return root / 'plates'


def log_of_nnunet(root: Path) -> List[str]:
    """Twelve epochs; the third class is nan in three of them."""
    epochs = [
        f'2024-11-01 08:{e:02}:31.101: Epoch {e}\n2024-11-01 08:{e:02}:42.300: train_loss -0.{50 + e}\n'
        f'2024-11-01 08:{e:02}:52.301: val_loss -0.{45 + e}\n'
        f'2024-11-01 08:{e:02}:52.302: Pseudo dice [0.91{e}, 0.7{e}1, {"nan" if e in (2, 5, 9) else f"0.3{e}"}]\n'
        for e in range(12)
    ]
    (root / 'training_log.txt').write_text(''.join(epochs))
    return ['explain', str(root / 'training_log.txt')]


def nrrd(root: Path) -> Path:
    for number in range(3):
        (root / f'case_{number}.seg.nrrd').write_bytes(b'NRRD0004\ntype: uint8\n')
    return root


TYPED: Dict[str, Typed] = {
    'nnU-Net: nan now and then': Typed(
        'a rare class, absent from the patches of three epochs', log_of_nnunet, 0, ('class 3', 'harmless'), ('MG400',)
    ),
    # At the first run this could not be read, and was said to be YOLO's, with exit code 2; since then it can.
    'a folder of YOLO': Typed(
        'nothing is wrong with the boxes in its texts, and its photographs are no label maps',
        scanned(yolo, '--num-classes', '2'),
        0,
        ('YOLO labels', '8 instances'),
        ('MG131', 'MG106'),
    ),
    'unreadable: segmentations of 3D Slicer': Typed(
        'NRRD, which scan does not read',
        scanned(nrrd, '--num-classes', '3'),
        2,
        ('.nrrd',),
        ('Your labels are fine',),
    ),
    'incomplete map: 11 and 19 are not in it': Typed(
        'two values are missing in the label map',
        scanned(few_of_many, '--num-classes', '4', '--label-map', '0:0,3:1,5:2,8:3'),
        1,
        ('11', '19', '255'),
        ('num_classes=20', 'Your labels are fine'),
    ),
    'nearly all ignored: the map of Cityscapes, applied twice': Typed(
        'the files hold train ids already: a map from label ids sends 0..6, 9, 10, 14..16, 18 to 255',
        scanned(train_ids, '--num-classes', '19', '--label-map', TRAIN_IDS + ',*:255'),
        1,
        ('ignored',),
        ('Your labels are fine',),
    ),
    'reader: palettes of labelme2voc, one class short': Typed(
        'the background was not counted; and cv2.imread would read colours of these files',
        scanned(palette_one_short, '--num-classes', '12'),
        1,
        ('MG102', 'num_classes=13', 'palette'),
    ),
}


def clamped(scores: Tensor, target: Tensor) -> Tensor:
    """A Dice loss as people write it: what does not fit one_hot is clamped first."""
    classes = scores.shape[1]
    wanted = torch.nn.functional.one_hot(target.clamp(0, classes - 1), classes).movedim(-1, 1).float()
    found = scores.softmax(1)
    return 1 - 2 * (found * wanted).sum() / (found.sum() + wanted.sum())


SEVEN = regions(range(7), (2, 48, 48))

BATCHES: Dict[str, Batch] = {
    'fresh 2: masks of bool for one channel': Batch(
        'binary masks, right but for their type',
        batch(1, regions((0, 1), (2, 48, 48)).unsqueeze(1).bool()),
        'raises',
        ('.float()',),
        ('softmax(1)', 'squeeze(1)'),
    ),
    'fresh 2: the channel last, as in TensorFlow': Batch(
        'class indices (N, H, W, 1)',
        batch(7, SEVEN.unsqueeze(-1), size=(2, 48, 48)),
        'raises',
        ('target.squeeze(-1)',),
        ('one-hot of', 'argmax'),
    ),
    'fresh 2: colours of Cityscapes as gray': Batch(
        'a *_color.png read by .convert("L"): 90 is the road, 120 the sidewalk, 70 a building, 16 a car',
        batch(19, regions((90, 120, 70, 119, 16, 118))),
        'raises',
        ('gray',),
        ('bucketize', 'num_classes=121'),
    ),
    'fresh 2: a Dice that clamps': Batch(
        'its ignored pixels become the last class',
        batch(4, regions((0, 1, 2, 3, 255)), ignore_index=255, loss=clamped),
        'raises',
        ('ignore',),
    ),
}


def traced(*frames: str, error: str) -> str:
    return 'Traceback (most recent call last):\n' + ''.join(f'  {frame}\n' for frame in frames) + f'{error}\n'


LOGS: Dict[str, LogKind] = {
    'fresh 2: MONAI makes one-hot of 255': LogKind(
        'the ignored label goes through one_hot; the labels are right',
        'MG416',
        traced(
            'File "train_abdomen.py", line 141, in <module>\n    loss = loss_function(outputs, labels)',
            'File "/opt/venv/lib/python3.10/site-packages/monai/losses/dice.py", line 766, in forward\n'
            '    dice_loss = self.dice(input, target)',
            'File "/opt/venv/lib/python3.10/site-packages/monai/losses/dice.py", line 166, in forward\n'
            '    target = one_hot(target, num_classes=n_pred_ch)',
            'File "/opt/venv/lib/python3.10/site-packages/monai/networks/utils.py", line 196, in one_hot\n'
            '    labels = o.scatter_(dim=dim, index=labels.long(), value=1)',
            error='RuntimeError: index 255 is out of bounds for dimension 1 with size 6',
        ),
        first='ignored',
    ),
    'fresh 2: the confusion matrix of mmdet, a list too short': LogKind(
        'the test set of the config names fewer classes than the annotations and results have',
        'MG417',
        traced(
            'File "tools/analysis_tools/confusion_matrix.py", line 282, in <module>\n    main()',
            'File "tools/analysis_tools/confusion_matrix.py", line 264, in main\n'
            '    confusion_matrix = calculate_confusion_matrix(dataset, results, args.score_thr,',
            'File "tools/analysis_tools/confusion_matrix.py", line 148, in analyze_per_img_dets\n'
            '    confusion_matrix[gt_label, det_label] += 1',
            error='IndexError: index 7 is out of bounds for axis 1 with size 4',
        ),
        first='class list of its own',
    ),
    'fresh 2: GIoU of NaN in transformers': LogKind(
        'training diverged at a rate of 0.001',
        'MG445',
        "{'loss': 2.91, 'grad_norm': 340.2, 'learning_rate': 0.001, 'epoch': 1.9}\n"
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.00099, 'epoch': 2.0}\n"
        + traced(
            'File "/opt/lib/python3.11/site-packages/transformers/loss/loss_for_object_detection.py", line 391, in '
            'generalized_box_iou\n    raise ValueError(f"boxes1 must be in [x0, y0, x1, y1] (corner) format, but got '
            '{boxes1}")',
            error='ValueError: boxes1 must be in [x0, y0, x1, y1] (corner) format, but got tensor([[nan, nan, nan, '
            "nan],\n        [nan, nan, nan, nan]], device='cuda:0', grad_fn=<ViewBackward0>)",
        ),
        'training diverged',
        never=('renumber',),
    ),
    # Written after the first run: what repairing the confusion matrix brought up.
    'fresh 2: the matrix of a validation of ultralytics': LogKind(
        'nc of the data.yaml of the validation is smaller than that of the weights',
        'MG417',
        traced(
            'File "val.py", line 210, in process_batch\n    self.matrix[detection_classes[m1[j]], gc] += 1',
            error='IndexError: index 9 is out of bounds for axis 0 with size 7',
        ),
        first='class list of its own',
    ),
    'fresh 2: near: a table in the data set': LogKind(
        '255 of a mask is looked up in a table of 19',
        'MG417',
        traced(
            'File "data.py", line 31, in __getitem__\n    mask = self.table[np.array(Image.open(path))]',
            error='IndexError: index 255 is out of bounds for axis 0 with size 19',
        ),
        first='read as another mode',
    ),
}
