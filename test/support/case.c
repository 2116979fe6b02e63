#include "support/case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"

void tc_case_record(const char *id)
{
    const char *dir = getenv("TC_CASE_DIR");
    if (!dir)
        return;
    mkdir(dir, 0777);
    char *path = tc_asprintf("%s/%s", dir, program_invocation_short_name);
    FILE *f = fopen(path, "a");
    if (f) {
        fprintf(f, "%s\n", id);
        fclose(f);
    }
    tc_free(path);
}
