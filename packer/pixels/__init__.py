"""Array code without files: labels to classes, resizing, statistics."""
