"""``mmguard nnunet``."""
