"""The plan: everything that is known before a pixel is decoded."""
