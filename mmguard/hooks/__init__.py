"""Registered mmengine hooks."""

from mmguard.hooks.label_guard_hook import LabelGuardHook

__all__ = ['LabelGuardHook']
