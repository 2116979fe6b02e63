/* Memory is read from /proc/self/status, CPU time from getrusage; descriptors are counted in /proc/self/fd. A file of
 * /proc that cannot be read fails the test: call these functions on the test's thread. */
#include "support/footprint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/cmocka.h"

/* Returns the number of a line of /proc/self/status, in KiB (the "kB" of /proc). The name ends with the colon. */
static long status_kb(const char *name)
{
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (kb < 0 && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name), NULL, 10);
    fclose(f);
    assert_true(kb >= 0);
    return kb;
}

/* Makes the memory that is resident now the peak (VmHWM). */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    assert_non_null(f);
    assert_true(fputs("5", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static uint64_t cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

struct footprint footprint_begin(void)
{
    if (FOOTPRINT_MEASURED)
        reset_peak();
    return (struct footprint){status_kb("VmRSS:"), cpu_ms()};
}

struct footprint footprint_since(const struct footprint *begin)
{
    return (struct footprint){status_kb(FOOTPRINT_MEASURED ? "VmHWM:" : "VmRSS:") - begin->kb,
                              cpu_ms() - begin->cpu_ms};
}

size_t footprint_descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}
