"""Where releases of torch, and OpenMMLab and its forks, differ.

Imports nothing else of mmguard.
"""
