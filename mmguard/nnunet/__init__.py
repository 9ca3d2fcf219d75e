"""A guarded trainer for nnU-Net (v2). ``mmguard nnunet`` makes nnU-Net find it.

Imports :mod:`mmguard.functional`, :mod:`mmguard.log`, what is below them, and nnunetv2; findings when a label is
invalid.
"""
