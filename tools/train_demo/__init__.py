"""A training, before and after: the same small U-Net on raw files and on the pack that was built from them."""
