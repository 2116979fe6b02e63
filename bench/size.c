/* bench/size: bytes of libtorc.so, stripped of what only debuggers read, against the target of 1 MB. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure.h"

#define TARGET_BYTES 1e6

int main(void)
{
    static struct measure_row row;
    char stripped[] = "/tmp/bench_size.XXXXXX", command[1400];
    int fd = mkstemp(stripped);
    struct stat st;
    if (fd < 0)
        return 1;
    snprintf(command, sizeof(command), "strip --strip-unneeded -o %s '%s'", stripped, TORC_LIBRARY);
    bool ok = system(command) == 0 && stat(stripped, &st) == 0;
    if (ok) {
        measure_init(&row, "bytes", "target", 1, "libtorc.so, stripped");
        measure_add(&row, (double)st.st_size, TARGET_BYTES);
        measure_report("size", &row, 1);
    }
    close(fd);
    unlink(stripped);
    return ok ? 0 : 1;
}
