"""Configuration files: options of a build in TOML, presets for public data sets, and the last build's options."""
