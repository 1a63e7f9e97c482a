"""From a folder of files to pairs of an image and a label."""
