"""Config readers that build nothing; only ``load`` imports mmengine, when called."""
