"""Facts about labels, a config, an installation or a run. Readers collect facts, and rules find mistakes in them."""
