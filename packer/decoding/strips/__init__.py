"""Pictures that are decoded line by line, one module per format: as strictly as whole ones, and to the same numbers."""
