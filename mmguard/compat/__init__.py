"""Differences between releases of torch, and between OpenMMLab and its forks.

Imports nothing else of mmguard.
"""
