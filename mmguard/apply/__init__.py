"""Writes the guarded config: what a user would otherwise change by hand in four places of it."""

from mmguard.apply.guarded import Guarded, guard_config, guard_tree

__all__ = ['Guarded', 'guard_config', 'guard_tree']
