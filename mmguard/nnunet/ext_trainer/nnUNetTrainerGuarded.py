"""Module that nnU-Net finds for ``-tr nnUNetTrainerGuarded``."""

from mmguard.nnunet.trainer import nnUNetTrainerGuarded

__all__ = ['nnUNetTrainerGuarded']
