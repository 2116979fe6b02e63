/* bench/size: stripped size of libtorc.so, and of libtorc.so with libtorc-regex.so if the build has that library, both
 * against the target of 1.2 MB. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure.h"

#define TARGET_BYTES 1.2e6

/* Returns 0 if the size is unknown. */
static double stripped_bytes(const char *library)
{
    char stripped[] = "/tmp/bench_size.XXXXXX", command[1400];
    int fd = mkstemp(stripped);
    struct stat st;
    if (fd < 0)
        return 0;
    snprintf(command, sizeof(command), "strip --strip-unneeded -o %s '%s'", stripped, library);
    bool ok = system(command) == 0 && stat(stripped, &st) == 0;
    close(fd);
    unlink(stripped);
    return ok ? (double)st.st_size : 0;
}

int main(void)
{
    static struct measure_row rows[2];
    double library = stripped_bytes(TORC_LIBRARY);
    if (library <= 0)
        return 1;
    measure_init(&rows[0], "bytes", "target", 1, "libtorc.so, stripped");
    measure_add(&rows[0], library, TARGET_BYTES);
#ifdef TORC_REGEX_LIBRARY
    double regex = stripped_bytes(TORC_REGEX_LIBRARY);
    if (regex <= 0)
        return 1;
    measure_init(&rows[1], "bytes", "target", 1, "libtorc.so and libtorc-regex.so, stripped");
    measure_add(&rows[1], library + regex, TARGET_BYTES);
    measure_report("size", rows, 2);
#else
    measure_report("size", rows, 1);
#endif
    return 0;
}
