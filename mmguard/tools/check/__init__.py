"""The rules that read a config before training.

Imports what all commands share.
"""
