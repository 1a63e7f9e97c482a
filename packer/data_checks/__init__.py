"""Look for likely mistakes in the data: duplicates across splits, images of one colour, classes that never occur.

`findings` names the kinds and holds what was found; `find_mistakes` compares all images and counts of a data set.
"""
