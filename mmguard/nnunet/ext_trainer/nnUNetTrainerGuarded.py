"""Where ``-tr nnUNetTrainerGuarded`` looks."""

from mmguard.nnunet.trainer import nnUNetTrainerGuarded

__all__ = ['nnUNetTrainerGuarded']
