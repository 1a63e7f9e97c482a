"""The names of the ways to resize and to store pictures. Light: numpy is not needed."""

NATIVE, TILE = "native", "tile"
FITS = ("stretch", "letterbox", "crop-or-pad", "shorter-side", TILE, NATIVE)
EDGES = ("pad", "shift")
INTERPOLATIONS = ("area", "linear", "cubic", "nearest")
IMAGE_DTYPES = {"uint8": "|u1", "float16": "<f2", "float32": "<f4"}
LABEL_FORMS = ("onehot", "index")
