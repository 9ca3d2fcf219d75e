"""Readers of configs that build nothing; only ``load`` imports mmengine, when it is called."""
