"""``mmguard nnunet``: the folder in which nnU-Net finds the guarded trainer."""
