"""Support for nnU-Net v2: a guarded trainer, rules and a reader for raw data sets, and the command ``mmguard nnunet``.

This package is a plugin: ``entry_points.txt`` registers its parts, and no module outside of it imports it. A training
without invalid labels imports neither the rules nor the reader.
"""
