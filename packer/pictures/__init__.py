"""Pictures: what a file says of itself, and its pixels, exactly; one file per kind; what is doubtful is refused."""
