/* A window of a JPEG file by libjpeg-turbo's partial decoding, for bench.jpeg_windows: cc -shared -fPIC ... -ljpeg */
#include <stddef.h>
#include <stdio.h>
#include <jpeglib.h>

/* Decode `height` lines from `top` on into `out`. If `width` is not 0, decode only the columns of the blocks that have
   the columns from `left` on. Write the first column and the number of columns into `columns`. */
void decode_window(const unsigned char *file, unsigned long size, unsigned top, unsigned left, unsigned height,
                   unsigned width, unsigned char *out, unsigned *columns) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file, size);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    columns[0] = 0, columns[1] = info.output_width;
    if (width) {
        columns[0] = left, columns[1] = width;
        jpeg_crop_scanline(&info, &columns[0], &columns[1]);
    }
    jpeg_skip_scanlines(&info, top);
    for (unsigned line = 0; line < height;) {
        JSAMPROW rows[1] = {out + (size_t)line * columns[1] * 3};
        line += jpeg_read_scanlines(&info, rows, 1);
    }
    jpeg_destroy_decompress(&info);
}
