"""Decode raw pictures: one file or folder per picture format. Whatever is doubtful is refused with a BadPair.

Each format has `read`, from a file to a `Header`, and `decode`, from bytes to `Stored` pixels. `file_types` finds the
format by the first bytes, `decode` checks headers and turns what is stored into an image or a label. Our own code walks
the container; a library sees only what was checked. PNG is unpacked by a kernel or by OpenCV, WebP by OpenCV, JPEG by
simplejpeg, TIFF and BMP here.
"""
