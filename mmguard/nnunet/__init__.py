"""Support for nnU-Net v2: guarded trainer, format and rules of raw data sets, and the command ``mmguard nnunet``.

A plugin: ``entry_points.txt`` registers its parts, and nothing outside imports it. A training without an invalid label
imports neither rules nor format.
"""
