"""What a config says, read without building anything of it.

Imports :mod:`mmguard.labels` and what is below it, no torch; ``load`` imports mmengine when it is called.
"""
