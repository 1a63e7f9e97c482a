"""Class tables: which values and colours are which class, in the file formats that people use."""
