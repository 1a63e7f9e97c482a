"""From a folder of raw images and labels to a packed data set. The command is `packer`; `packer.cli` has its words."""
