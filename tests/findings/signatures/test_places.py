"""The numbers, frames and lines of a log decide between causes: the first one, and those that cannot be there."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import Dict, FrozenSet, NamedTuple

import pytest
from explained_logs import explain_log, format_traceback

from mmguard.commands.explain.explanation import POSSIBLE, explain_text


class Place(NamedTuple):
    """Code and first cause of a log; causes that are not listed."""

    code: str
    first: str
    log: str
    absent: FrozenSet[str] = frozenset()


SITE = '/opt/lib/python3.9/site-packages'
INDEX = 'IndexKernel.cu:92: operator(): block: [1,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
SCATTER = 'ScatterGatherKernel.cu:365: block: [0,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.\n'
PLACES: Dict[str, Place] = {
    'SyncBN in a process of its own': Place('MG361', 'sync-bn', format_traceback(
        'ValueError: Default process group has not been initialized, please make sure to call init_process_group.',
        (f'{SITE}/torch/nn/modules/batchnorm.py', 'world_size = torch.distributed.get_world_size(process_group)', 'forward'),
        (f'{SITE}/torch/distributed/distributed_c10d.py', 'raise ValueError(')), frozenset({'rank-call'})),
    'a sampler in a process of its own': Place('MG361', 'rank-call', format_traceback(
        'RuntimeError: Default process group has not been initialized, please make sure to call init_process_group.',
        ('/w/train.py', 'rank = dist.get_rank()')), frozenset({'sync-bn'})),
    'Ctrl-C in a barrier': Place('MG369', 'slow-rank', format_traceback(
        'KeyboardInterrupt', (f'{SITE}/torch/distributed/distributed_c10d.py', 'work = default_pg.barrier(opts=opts)'))),
    'annotation ids of a merged file': Place('MG362', 'ids-twice', format_traceback(
        "AssertionError: Annotation ids in '/d/all.json' are not unique!", (f'{SITE}/mmdet/datasets/lvis.py', 'assert len(set(ids)) == len(ids)'))),
    'an empty polygon': Place('MG363', 'no-mask', format_traceback(
        'IndexError: list index out of range', ('/w/data.py', 'rle = mask_utils.frPyObjects(segmentation, h, w)'), ('pycocotools/_mask.pyx', 'x', 'pycocotools._mask.frPyObjects')),
        frozenset({'palette-short', 'names-too-few'})),
    'a hinge loss on two channels': Place('MG364', 'binary-lovasz', format_traceback(
        'IndexError: The shape of the mask [4096] at index 0 does not match the shape of the indexed tensor [12288] at index 0',
        ('/w/losses/lovasz.py', 'vscores = scores[valid]', 'flatten_binary_scores')), frozenset({'label-size', 'cropped-prediction'})),
    'windows with gaps': Place('MG365', 'stride', format_traceback(
        'AssertionError', (f'{SITE}/mmseg/models/segmentors/encoder_decoder.py', 'assert (count_mat == 0).sum() == 0'))),
    'two data sets with other classes': Place('MG366', 'classes-differ', format_traceback(
        'ValueError: The meta information of the 1-th dataset does not match meta information of the first dataset',
        (f'{SITE}/mmengine/dataset/dataset_wrapper.py', 'raise ValueError('))),
    'weights of a Dice loss with focal loss': Place('MG367', 'dice-ce', format_traceback(
        'ValueError: the length of the `weight` sequence should be the same as the number of classes.',
        (f'{SITE}/monai/losses/dice.py', 'dice_loss = self.dice(input, target)'))),
    'weights of a Dice loss alone': Place('MG367', 'dice-alone', format_traceback(
        'ValueError: the length of the `weight` sequence should be the same as the number of classes.', ('/w/train.py', 'loss = criterion(x, y)')), frozenset({'dice-ce'})),
    'an image that was turned': Place('MG368', 'image-size', format_traceback(
        'AssertionError', (f'{SITE}/detectron2/data/transforms/transform.py', 'assert img.shape[:2] == (self.h, self.w)'))),
    'a bitmap of another size': Place('MG368', 'mask-size', format_traceback(
        'AssertionError', ('/w/mapper.py', 'mask = tfm.apply_segmentation(mask)'), (f'{SITE}/detectron2/data/transforms/transform.py', 'assert img.shape[:2] == (self.h, self.w)')), frozenset({'image-size'})),
    'a scratch model of maskformer': Place('MG370', 'other-script',
        "Namespace(config_file='/w/configs/ade20k/maskformer_R101.yaml')\n" + 'iter: 20  loss_cls: 0.9  loss_rpn_cls: 0.3  loss_rpn_loc: 0.1\n' * 5),
    'a config of RetinaNet': Place('MG370', 'other-script', '--config-file configs/retinanet_R_50.yaml\niter: 99  loss_rpn_cls: 0.21  loss_rpn_loc: 0.1\n'),
    'a Dice that falls': Place('MG371', 'falling-rate', ''.join(f'epoch {n}: loss: 0.{9 - n}\nmean_dice: {0.71 - n / 20:.2f}\n' for n in range(6))),
    'three points as one integer': Place('MG417', 'integer-width', format_traceback(
        f'IndexError: index {(7 << 32) + 2} is out of bounds for axis 0 with size 20', ('/w/points.py', 'y = table[labels]')), frozenset({'raw-ids', 'value-one-more', 'image-mode'})),
    'a metric that makes 255 one-hot': Place('MG407', 'metric-void', format_traceback(
        'RuntimeError: Class values must be smaller than num_classes.', (f'{SITE}/torchmetrics/functional/segmentation/generalized_dice.py', 'target = one_hot(target, num_classes)')), frozenset({'below-zero'})),
    'a boundary loss that makes 255 one-hot': Place('MG586', 'void-one-hot', format_traceback(
        'IndexError: index 255 is out of bounds for dimension 0 with size 7', ('/w/surface.py', 'return torch.eye(classes)[y]', 'one_hot'))),
    'a class that is one more made one-hot': Place('MG586', 'value-one-more', format_traceback(
        'RuntimeError: index 7 is out of bounds for dimension 1 with size 7', ('/w/surface.py', 'return zeros.scatter_(1, y, 1)', 'one_hot')), frozenset({'void-one-hot'})),
    'no class of a model': Place('MG404', 'no-class', 'reinitializing detection head with 0 classes\n' + SCATTER, frozenset({'gap', 'num-classes'})),
    'masks of a map and of a stack': Place('MG434', 'mixed-channels', format_traceback(
        'RuntimeError: stack expects each tensor to be equal size, but got [64, 64] at entry 0 and [3, 64, 64] at entry 1', ('/w/collate.py', 'torch.stack(masks)')), frozenset({'label-size', 'box-numbers'})),
    'images of two sizes after padding': Place('MG434', 'no-crop', format_traceback(
        'RuntimeError: stack expects each tensor to be equal size, but got [3, 96, 96] at entry 0 and [3, 128, 96] at entry 1', (f'{SITE}/mmseg/utils/misc.py', 'torch.stack(padded)', 'stack_batch')), frozenset({'label-size', 'box-numbers', 'mixed-channels'})),
    'boxes in a semantic transform': Place('MG437', 'sanitized-map', format_traceback(
        'IndexError: The shape of the mask [5] at index 0 does not match the shape of the indexed tensor [64, 48] at index 0',
        (f'{SITE}/torchvision/transforms/v2/_misc.py', 'output = inpt[params["valid"]]', '_transform')), frozenset({'label-size', 'cropped-prediction', 'not-resized', 'three-channels-files'})),
    'a float target made one-hot': Place('MG428', 'image-transform', format_traceback(
        'RuntimeError: one_hot is only applicable to index tensor of type LongTensor.', ('/w/dice.py', 'F.one_hot(target, 3)'))),
    'an older torch on a float target': Place('MG428', 'image-transform', format_traceback('RuntimeError: one_hot is only applicable to index tensor.', ('/w/dice.py', 'F.one_hot(y)'))),
    'Mask2Former with the classes of COCO': Place('MG585', 'mask2former-classes',
        'iter: 9  loss_ce: 0.4  loss_mask: 0.3  loss_dice: 0.5\n' + format_traceback('AssertionError: A prediction has category_id=61, but the dataset only has 4 classes', (f'{SITE}/detectron2/evaluation/coco_evaluation.py', 'raise'))),
    'label maps of stuff': Place('MG478', 'semantic-branch', format_traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: 'stuff/000000000139.png'", (f'{SITE}/mmdet/datasets/transforms/loading.py', 'self._load_seg_map(results)'))),
    'a missing image': Place('MG478', 'paths', format_traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: 'a/7.jpg'", (f'{SITE}/mmdet/datasets/transforms/loading.py', 'self._load_img(results)')), frozenset({'semantic-branch'})),
    'an image without an object for a grid': Place('MG583', 'empty-batch', format_traceback(
        'RuntimeError: grid_sampler(): expected grid to have size 3, but got grid with sizes [0, 400, 1, 2]', ('/w/loss.py', 'F.grid_sample(masks, points)'))),
    'a data set of label maps without a file': Place('MG472', 'no-files', format_traceback(
        'ValueError: need at least one array to concatenate', (f'{SITE}/mmseg/datasets/basesegdataset.py', 'self.full_init()'), (f'{SITE}/mmengine/dataset/base_dataset.py', 'np.concatenate(data_list)')), frozenset({'class-names', 'all-filtered', 'boxes-without-area', 'key-missing'})),
    'setuptools without pkg_resources': Place('MG499', 'pkg-resources', format_traceback("ModuleNotFoundError: No module named 'pkg_resources'", (f'{SITE}/mmcv/x.py', 'import pkg_resources'))),
    'points in a training of boxes': Place('MG356', 'pose-rows', 'train: WARNING /d/images/7.jpg: ignoring corrupt image/label: non-normalized or out of bounds coordinates [          2           2]\n'),
    'pixels in a training of boxes': Place('MG356', 'not-normalized', 'train: WARNING /d/images/7.jpg: ignoring corrupt image/label: non-normalized or out of bounds coordinates [        212          20]\n'),
    'an id that RF-DETR does not list': Place('MG475', 'unlisted-id', format_traceback('KeyError: 17', (f'{SITE}/rfdetr/datasets/coco.py', 'classes = [self.cat2label[obj["category_id"]] for obj in anno]')), frozenset({'unknown-name'})),
    'images that are all refused': Place('MG472', 'images-refused', format_traceback('RuntimeError: No valid images found in /d/labels.cache', (f'{SITE}/ultralytics/data/dataset.py', 'raise RuntimeError(')), frozenset({'key-missing', 'class-names'})),
    'table of transformers in a notebook': Place('MG351', 'reduced-twice', 'Epoch\tTraining Loss\tValidation Loss\tMean Iou\tMean Accuracy\n' + ''.join(f'{n}\t4.1\t3.9\t0.00{n}\t0.02\n' for n in range(1, 5))),
    'the same with bars': Place('MG351', 'labels-elsewhere', '| Step | Training Loss | mIoU |\n|---|---|---|\n' + ''.join(f'| {n}00 | 4.1 | 0.00{n} |\n' for n in range(1, 5))),
    'scores of transformers': Place('MG351', 'reduced-twice', ''.join(f"{{'eval_loss': {3 - n / 9:.2f}, 'eval_mean_iou': 0.00{n}, 'epoch': {n}.0}}\n" for n in range(1, 9))),
    'scores of torchmetrics': Place('MG351', 'labels-elsewhere', ''.join(f'Epoch {n}: val_miou: 0.001\n' for n in range(20))),
    'KeyError of an edge map': Place('MG476', 'pipeline-step', format_traceback("KeyError: 'gt_edge_map'", (f'{SITE}/mmseg/datasets/transforms/formatting.py', "results['gt_edge_map']"))),
}  # fmt: skip


@pytest.mark.parametrize('name', PLACES)
def test_the_place_decides(name: str) -> None:
    place = PLACES[name]
    found = explain_log(place.log)
    assert found.signature is not None
    keys = [one.cause.key for one in found.causes]
    assert (found.signature.code, keys[0]) == (place.code, place.first)
    assert place.absent.isdisjoint(keys)


@pytest.mark.parametrize(
    'log',
    [
        ''.join(f'epoch {n}: loss: 0.{9 - n}\nmean_dice: {0.5 + n / 20:.2f}\n' for n in range(6)),
        ''.join(f'mean_dice: {score}\n' for score in (0.71, 0.70, 0.69, 0.69, 0.68)),
        ''.join(f'mean_dice: {score}\n' for score in (0.71, 0.2, 0.3, 0.2, 0.1)),
        "config_file='configs/mask_rcnn_R_50.yaml'\niter: 99  loss_rpn_cls: 0.21  loss_rpn_loc: 0.1\n",
        "config_file='configs/retinanet_R_50.yaml'\niter: 99  loss_cls: 0.21  loss_box_reg: 0.1\n",
        "{'eval_loss': 2.1, 'eval_mean_iou': 0.41, 'epoch': 7.0}\n" * 4,
        'Epoch\tTraining Loss\tMean Iou\n1\t2.1\t0.003\n2\t1.4\t0.31\n3\t1.1\t0.42\n4\t1.0\t0.44\n',
    ],
)
def test_a_log_of_a_training_that_goes_well_has_no_sign(log: str) -> None:
    assert explain_text([log]) is None


@pytest.mark.parametrize(('first', 'is_listed'), [('0.7', False), ('nan', True)])
def test_a_loss_that_was_finite_first_is_not_nan_from_the_start(first: str, is_listed: bool) -> None:
    found = explain_log(f'step 20 loss: {first}\nstep 40 loss: nan\n')
    assert ('nan-from-the-start' in [one.cause.key for one in found.causes]) == is_listed


@pytest.mark.parametrize('number', [9, 255, 1 << 32, 70_000 << 32])
def test_a_number_that_is_not_two_integers_is_a_value(number: int) -> None:
    log = format_traceback(f'IndexError: index {number} is out of bounds for axis 0 with size 4', ('a.py', 't[y]'))
    assert 'integer-width' not in [one.cause.key for one in explain_log(log).causes]


def test_an_error_of_a_worker_is_given_with_its_path() -> None:
    inner = "FileNotFoundError: [Errno 2] No such file or directory: '/d/masks/7.png'"
    log = format_traceback(
        f'FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.\nOriginal {format_traceback(inner, ("w.py", "open(path)"))}',
        ('t.py', 'next(loader)'),
    )
    found = explain_log(log)
    assert '/d/masks/7.png' in found.raised.message
    assert found.causes[0].standing == POSSIBLE
