"""nnU-Net (v2): a trainer that no label can break. ``mmguard nnunet`` tells nnU-Net where it is.

Imports :mod:`mmguard.functional`, :mod:`mmguard.log`, what is below them, and nnunetv2; findings when there is an
offence.
"""
