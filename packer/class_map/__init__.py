"""Class maps: which source values and colours are which class, in the forms that people write that down."""
