#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

/* Returns the bytes in a field of /proc/self/status, "NAME N kB", or 0 if there is none. name: with its colon. */
static double field(const char *name)
{
    char line[256];
    unsigned long long kib = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), " %llu", &kib);
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

double memory_resident(void)
{
    return field("VmRSS:");
}

double memory_own(void)
{
    return field("RssAnon:");
}
