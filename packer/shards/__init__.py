"""Shards: from pieces to rows, arrays and files."""
