"""``mmguard nnunet``: the folder in which nnU-Net finds the guarded trainer.

Imports what all commands share.
"""
