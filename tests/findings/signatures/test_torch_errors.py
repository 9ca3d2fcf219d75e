"""Errors of torch and numpy, each made by the code that fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from failing import Failing, Table, from_file, holds

HERE = Table()
SCORES = torch.rand(2, 3, 4, 4)


def labels(value: int) -> torch.Tensor:
    return torch.full((2, 4, 4), value)


@HERE.says('MG413', 'MG104')
def unignored_255() -> object:
    return F.cross_entropy(SCORES, labels(255))


@HERE.says('MG413', 'MG105')
def negative_label() -> object:
    return F.cross_entropy(SCORES, labels(-1))


@HERE.says('MG413', 'MG106')
def gray_level() -> object:
    return F.cross_entropy(SCORES, labels(128))


@HERE.says('MG413')
def nll_beyond_classes() -> object:
    return F.nll_loss(torch.rand(4, 3), torch.tensor([0, 1, 2, 3]))


@HERE.says('MG413')
def margin_beyond_classes() -> object:
    return F.multi_margin_loss(torch.rand(2, 3), torch.tensor([0, 9]))


@HERE.says('MG414', 'MG214')
def weights_by_label() -> object:
    class_weight = torch.ones(3)
    label = labels(255)
    return sum(class_weight[value] for value in label.flatten())


@HERE.says('MG415')
def ohem_of_nothing() -> object:
    losses = torch.zeros(0)
    return losses.sort()[0][min(100, losses.numel() - 1)]


@HERE.says('MG416', 'MG215')
def ohem_of_one_channel() -> object:
    def ohem_loss(scores: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return scores.softmax(1).gather(1, label.unsqueeze(1))

    return ohem_loss(torch.rand(2, 1, 4, 4), labels(1))


@HERE.says('MG416', 'MG138')
def matcher_by_category() -> object:
    def matcher(out_prob: torch.Tensor, tgt_ids: torch.Tensor) -> torch.Tensor:
        return -out_prob[:, tgt_ids]  # cost_class

    return matcher(torch.rand(5, 3), torch.tensor([1, 3]))


@HERE.says('MG417', 'MG120')
def palette_by_value() -> object:
    return np.zeros((182, 3), np.uint8)[np.full((2, 2), 255)]


@HERE.says('MG418')
def tensor_by_index() -> object:
    table = torch.zeros(3)
    return table[torch.tensor([7])]


@HERE.says('MG406', 'MG138')
def label_embedding() -> object:
    label_embed = torch.nn.Embedding(3, 4)
    return label_embed(torch.tensor([5]))


@HERE.says('MG407', 'MG104')
def one_hot_of_255() -> object:
    ignore_and_one_hot = F.one_hot
    return ignore_and_one_hot(labels(255), 3)


@HERE.says('MG407', 'MG105')
def one_hot_of_negative() -> object:
    return F.one_hot(torch.tensor([-1]), 3)


@HERE.says('MG409')
def sample_from_nan() -> object:
    return torch.multinomial(torch.full((3,), float('nan')), 1)


@HERE.says('MG420', 'MG201')
def name_of_label() -> object:
    classes = ['cat']
    return classes[2]


@HERE.says('MG405')
def scores_without_sigmoid() -> object:
    return F.binary_cross_entropy(torch.tensor([3.0]), torch.tensor([1.0]))


@HERE.says('MG423', 'MG208')
def confusion_of_negative() -> object:
    return torch.bincount(torch.tensor([-1, 0]))


@HERE.says('MG423', 'MG208')
def numpy_confusion_of_negative() -> object:
    return np.bincount(np.array([-1, 0]))


@HERE.says('MG423')
def confusion_of_large() -> object:
    return np.bincount(np.array([0, 9]), minlength=4).reshape(2, 2)


@HERE.says('MG424', 'MG207')
def too_few_weights() -> object:
    return F.cross_entropy(SCORES, labels(0), weight=torch.ones(2))


@HERE.says('MG425', 'MG120')
def target_of_three_channels() -> object:
    return F.cross_entropy(SCORES, torch.zeros(2, 4, 4, 3, dtype=torch.long))


@HERE.says('MG425')
def target_of_two_columns() -> object:
    return F.nll_loss(torch.rand(4, 3), torch.zeros(4, 3, dtype=torch.long))


@HERE.says('MG425', 'MG120')
def resize_to_three_numbers() -> object:
    return F.interpolate(SCORES, size=(4, 4, 3), mode='bilinear')


@HERE.says('MG426', 'MG130')
def target_of_other_size() -> object:
    return F.cross_entropy(SCORES, torch.zeros(2, 5, 5, dtype=torch.long))


@HERE.says('MG426')
def binary_target_without_channel() -> object:
    return F.binary_cross_entropy_with_logits(torch.rand(2, 1, 4, 4), torch.zeros(2, 4, 4))


@HERE.says('MG426')
def other_batch_size() -> object:
    return F.cross_entropy(torch.rand(4, 3), torch.zeros(3, dtype=torch.long))


@HERE.says('MG428')
def target_of_bytes() -> object:
    return F.cross_entropy(SCORES, labels(0).int())


@HERE.says('MG428', 'MG123')
def target_of_floats() -> object:
    return F.nll_loss(SCORES.log_softmax(1), labels(0).float())


@HERE.says('MG428')
def binary_target_of_integers() -> object:
    scores = torch.rand(4, requires_grad=True)
    return F.binary_cross_entropy_with_logits(scores, torch.ones(4, dtype=torch.long)).backward()


@HERE.says('MG432')
def other_sizes() -> object:
    return torch.rand(2, 3) + torch.rand(2, 4)


@HERE.says('MG433', 'MG120')
def three_numbers_of_a_shape() -> object:
    height, width = np.zeros((4, 4, 3)).shape
    return height * width


@HERE.says('MG434')
def batch_of_other_sizes() -> object:
    return torch.stack([torch.rand(3, 4, 4), torch.rand(3, 5, 5)])


@HERE.says('MG434')
def numpy_batch_of_other_sizes() -> object:
    return np.stack([np.zeros((4, 4)), np.zeros((5, 5))])


@HERE.says('MG437')
def mask_of_other_size() -> object:
    return np.zeros((4, 4))[np.zeros((5, 5), bool)]


@HERE.says('MG437')
def arrays_of_other_sizes() -> object:
    return np.zeros((4, 4)) + np.zeros((5, 5))


@HERE.says('MG441', 'MG128')
def constant_loss() -> object:
    return torch.zeros(()).backward()


@HERE.says('MG441')
def loss_of_many_numbers() -> object:
    return torch.rand(3, requires_grad=True).exp().backward()


@HERE.says('MG445')
def box_that_ends_first() -> object:
    # pytest writes the asserts of a test file anew; this is how DETR's stands in its own.
    source = 'def generalized_box_iou(boxes1):\n    assert (boxes1[:, 2:] >= boxes1[:, :2]).all()\n'
    return from_file('box_ops.py', source).generalized_box_iou(torch.tensor([[0.5, 0.5, 0.1, 0.9]]))


@HERE.says('MG448')
def gradient_of_nothing() -> object:
    with torch.autograd.detect_anomaly():
        weight = torch.zeros(1, requires_grad=True)
        return (weight.sqrt() * 0).sum().backward()


@HERE.says('MG447', 'MG128')
def mean_over_nothing() -> object:
    loss, valid = 1.0, 0
    return loss / valid


@HERE.says('MG448')
def integer_of_nan() -> object:
    return int(float('nan'))


@HERE.says('MG448')
def distribution_of_nan() -> object:
    return torch.distributions.Categorical(logits=torch.full((3,), float('nan')), validate_args=True)


@HERE.says('MG472')
def nothing_to_concatenate() -> object:
    return np.concatenate([])


@HERE.says('MG472')
def nothing_to_stack() -> object:
    return torch.stack([])


@HERE.says('MG472')
def sampler_of_nothing() -> object:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(0)), shuffle=True)


@HERE.says('MG475', 'MG149')
def category_without_label() -> object:
    cat2label = {1: 0}
    return cat2label[9]


@HERE.says('MG475', 'MG140')
def name_without_label() -> object:
    cat2label = {'dog': 0}
    return cat2label['person']


@HERE.says('MG476')
def record_without_key() -> object:
    return {'images': []}['annotations']


@HERE.says('MG478', 'MG150')
def image_that_is_not_there() -> object:
    with open('/nowhere/0001.jpg', 'rb') as file:
        return file.read()


@HERE.says('MG479')
def image_that_was_not_read() -> object:
    image = None
    return image.shape  # type: ignore[attr-defined]


@HERE.says('MG487', 'MG201')
def checkpoint_of_other_classes() -> object:
    state = {'conv_seg.weight': torch.zeros(19, 3, 1, 1), 'conv_seg.bias': torch.zeros(19)}
    return torch.nn.ModuleDict({'conv_seg': torch.nn.Conv2d(3, 4, 1)}).load_state_dict(state)


@HERE.says('MG499')
def package_that_is_not_there() -> object:
    import mmcv_of_nobody  # noqa: F401


@HERE.says('MG498', 'MG105')
def value_beyond_uint8() -> object:
    if int(np.__version__.split('.')[0]) < 2:
        raise OverflowError('Python integer -1 out of bounds for uint8')
    return np.uint8(-1)


@pytest.mark.parametrize('row', HERE.cases)
def test_the_error_is_known(row: Failing) -> None:
    holds(row)
