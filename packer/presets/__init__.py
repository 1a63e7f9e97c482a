"""The presets that come with us, one TOML file each; packer/preset.py reads them."""
