"""What a packed data set is, agreed on by `packer` and `readers`: numpy and the standard library only."""

VERSION = "0.1.0"
"""The version of the distribution."""
