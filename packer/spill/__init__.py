"""Lists of all rows. A long one is in a mapped file without a name, whose memory the kernel may take back."""
