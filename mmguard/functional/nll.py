"""Element-wise softmax cross entropy of labels that are all in range."""

from __future__ import annotations

from math import prod
from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import _reduction

from mmguard.functional.eager import is_eager_cpu

HALF = (torch.float16, torch.bfloat16)
_ATEN = torch.ops.aten
_NONE = _reduction.get_enum('none')


def softmax_nll(logits: Tensor, target: Tensor, class_weight: Optional[Tensor], ignore_index: int) -> Tensor:
    r"""``F.cross_entropy`` with ``reduction='none'``; where it can be, its gradient is made in place.

    Args:
        logits (Tensor): Shape (N, C, \*), floating point.
        target (Tensor): Shape (N, \*), int64, every element in ``[0, C)`` or ``ignore_index``.
        class_weight (Tensor, optional): Shape (C,), dtype of ``logits``.
        ignore_index (int): The label whose loss and gradient are exactly 0.

    Returns:
        Tensor: shape (N, \*), PyTorch's, bit by bit.

    Example:
        >>> softmax_nll(torch.zeros(2, 4), torch.tensor([0, 4]), None, ignore_index=4)
        tensor([1.3863, 0.0000])
    """
    wanted = logits.requires_grad and torch.is_grad_enabled()
    if wanted and logits.dtype not in HALF and is_eager_cpu(logits):  # in half precision, autocast has its say
        return _SoftmaxNLL.apply(logits, target, class_weight, ignore_index)[0]
    return F.cross_entropy(logits, target, class_weight, ignore_index=ignore_index, reduction='none')


def weight_per_label(target: Tensor, class_weight: Tensor) -> Tensor:
    return class_weight.float().index_select(0, target.flatten()).view_as(target)


class _SoftmaxNLL(torch.autograd.Function):
    """log_softmax and nll_loss in one.

    Autograd's pair makes two tensors of the size of the scores, one behind the other: the gradient of the
    log-probabilities, nearly all zeros, and out of it that of the scores. Here the second is written over the first, by
    the same kernels: the same bits, in up to a third less time and memory. The log-probabilities are an output so that
    the gradient can be differentiated again.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, class_weight: Optional[Tensor], ignore_index: int
    ) -> Tuple[Tensor, Tensor]:
        scores = torch.log_softmax(logits, 1)
        loss = F.nll_loss(scores, target, class_weight, ignore_index=ignore_index, reduction='none')
        ctx.save_for_backward(scores, target, class_weight)
        ctx.set_materialize_grads(False)
        ctx.ignore_index = ignore_index
        return loss, scores

    @staticmethod
    def backward(ctx: Any, grad_loss: Optional[Tensor], grad_scores: Optional[Tensor]) -> Any:
        scores, target, class_weight = ctx.saved_tensors
        grad = grad_scores
        if grad_loss is not None:
            of_images = scores.dim() > 2  # PyTorch's kernel knows two spatial dimensions: any number is one image
            nll_loss = _ATEN.nll_loss2d_backward if of_images else _ATEN.nll_loss_backward
            size = (1, prod(target.shape[1:])) if of_images else ()
            images, labels = scores.view(*scores.shape[:2], *size), target.reshape(len(target), *size)
            grad_loss = grad_loss.reshape(labels.shape)
            args = (grad_loss, images, labels, class_weight, _NONE, ctx.ignore_index, grad_loss.new_zeros(()))
            if grad_scores is None and not torch.is_grad_enabled() and is_eager_cpu(grad_loss):
                grad = torch.empty_like(scores)  # not a view of another one: a leaf would copy it
                nll_loss.grad_input(*args, grad_input=grad.view(images.shape))
                # The kernel reads a row whole before it writes it.
                _ATEN._log_softmax_backward_data.out(grad, scores, 1, scores.dtype, out=grad)
                return grad, None, None, None
            grad = nll_loss.default(*args).view(scores.shape)
            grad = grad if grad_scores is None else grad + grad_scores
        if grad is not None:  # its own derivatives are PyTorch's
            grad = _ATEN._log_softmax_backward_data.default(grad, scores, 1, scores.dtype)
        return grad, None, None, None
