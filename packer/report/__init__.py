"""A report of a pack: one page of HTML without scripts, to look at before a GPU spends a week on it.

`gather` streams the counts of all rows and keeps sums and extremes. `heat` adds up where in the frame each class
is in each split, and `splits` compares their classes.
`pictures` draws the rows that are shown. `page` writes all of it, and every text from the pack is escaped.
"""
