"""Photo-like street scenes with label maps, drawn from a seed.

Imports nothing else of mmguard.
"""

from mmguard.tools.demo.street.scene import street_scene

__all__ = ['street_scene']
