"""Write rows as the folders that known trainers read: one file for each layout, named after who reads it.

A layout says which files a row has and which lines it adds to lists. What belongs to all rows is written at the end,
from these lists, so that no list is in memory.
"""
