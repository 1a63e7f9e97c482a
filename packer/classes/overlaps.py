"""The class of a pixel where annotated objects overlap: the choices. Light: numpy is not needed."""

from __future__ import annotations

ORDERS = FILE, AREA, CLASS = ("file", "area", "class")
"""The object that is drawn on top: the later one of the file, the smaller one, or the one of the later class."""
CROWDS = AS_CLASS, IGNORE = ("class", "ignore")
"""A crowd becomes pixels of its class, or ignored pixels."""
