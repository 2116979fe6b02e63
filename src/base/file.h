/* Files read whole: certificates, keys, tokens, configuration. Any thread. */
#ifndef TC_BASE_FILE_H
#define TC_BASE_FILE_H

#include "base/buf.h"

/* Appends the content of a regular file of at most `max` bytes; links are followed. Anything else under the name (a
 * FIFO, a device, a socket, a directory) is refused without opening it, since an open can be made to wait and would
 * hold up a loop; a file that takes its place meanwhile is opened without waiting, and refused then. Returns 0 with
 * *why NULL; or an errno (EINVAL: of another kind; EFBIG: too large) with the reason in *why, which is static text or
 * in `scratch`, and perhaps with a part of the content in `out`. */
int tc_file_read(const char *path, size_t max, struct tc_buf *out, const char **why, char scratch[128]);

#endif
