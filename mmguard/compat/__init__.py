"""Adapters for differences between releases of torch, and between OpenMMLab and its forks.

They do not import other modules of mmguard.
"""
