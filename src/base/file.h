/* Files read whole: certificates, keys, tokens, configuration. Any thread. */
#ifndef TC_BASE_FILE_H
#define TC_BASE_FILE_H

#include "base/buf.h"

/* Appends the content of a regular file of at most `max` bytes to `out`; follows links. Refuses anything else (a FIFO,
 * a device, a socket, a directory) without opening it: an open that waits would hold up a loop. If such a file takes
 * the name meanwhile, it is opened without waiting and refused then. Returns 0 with *why NULL; or an errno (EINVAL: not
 * a regular file; EFBIG: too large) with the reason in *why, which is static or in `scratch`. After an error, `out` may
 * have a part of the content. */
int tc_file_read(const char *path, size_t max, struct tc_buf *out, const char **why, char scratch[128]);

#endif
