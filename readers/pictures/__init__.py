"""Rows as pictures: what commands, notebooks and pages show of a pack. It needs numpy, and Pillow for text and files.

A stored row becomes a picture in these steps. `shrink` takes the pixels that are shown, `window` the numbers that are
black and white, and `draw` colours a field of any kind by the palette of its classes. `overlay` lays a drawn label over
its picture. `sheet` puts many of them into a grid with their keys and a `legend`, written by `text`. `blocks` draws
with characters of a terminal.
"""
