/* Files read whole: certificates, keys, tokens, configuration. */
#ifndef TC_BASE_FILE_H
#define TC_BASE_FILE_H

#include "base/buf.h"

/* Appends the content of a regular file of at most `max` bytes; links are followed. Anything else under the name (a
 * FIFO, a device, a socket, a directory) is refused without waiting for it: whoever opens those can be made to wait, on
 * a loop. 0, or a number of errno (EINVAL: of another kind; EFBIG) with the reason in *why, for whoever names the file:
 * static text, or in `scratch`. */
int tc_file_read(const char *path, size_t max, struct tc_buf *out, const char **why, char scratch[128]);

#endif
