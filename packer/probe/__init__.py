"""Look at an unknown folder and propose a configuration for it."""
