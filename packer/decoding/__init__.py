"""Decode raw pictures: one file or folder per picture format. Whatever is doubtful is refused with a BadPair.

Each format has `read`, from a file to a `Header`, and `decode`, from bytes to `Stored` pixels. `file_types` finds the
format by the first bytes, `raw_pixels` has the stored pixels, unchanged. `decode` checks headers and makes an image of
gray or RGB, or a label; `bands` makes a picture of any bands and any type of numbers. `grid` says where pixels are,
`find_axes` finds the `Turn` that brings the axes of a file to others. Our own code walks the container;
a library sees only what was checked. PNG is unpacked by a kernel or by OpenCV, WebP by OpenCV, JPEG by simplejpeg.
TIFF, BMP and npy are read here.
"""
