/* Runs a program under valgrind and reads the dump that it leaves. */
#include "callgrind.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum callgrind_owner owner_of(const char *object)
{
    const char *name = strrchr(object, '/');
    name = name ? name + 1 : object;
    if (strncmp(name, "libtorc", 7) == 0)
        return CALLGRIND_TORC;
    if (strncmp(name, "libnghttp2", 10) == 0)
        return CALLGRIND_NGHTTP2;
    bool libc = strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0; /* "libc-": glibc before 2.34 */
    return libc ? CALLGRIND_LIBC : CALLGRIND_OTHER;
}

/* Adds the instructions of a callgrind dump to `out`, by owner. "ob=FILE" begins the costs of an object file, and each
 * "LINE COST" is a cost of its own code. The "LINE COST" after "calls=..." is the callee's cost, which is counted at
 * the callee. */
static void read_profile(FILE *f, struct callgrind *out)
{
    enum callgrind_owner owner = CALLGRIND_OTHER;
    bool of_callee = false;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "ob=", 3) == 0) {
            owner = owner_of(line + 3);
        } else if (strncmp(line, "calls=", 6) == 0) {
            of_callee = true;
        } else if (isdigit((unsigned char)*line)) {
            const char *cost = strchr(line, ' ');
            if (!of_callee && cost)
                out->instructions[owner] += strtod(cost, NULL);
            of_callee = false;
        }
    }
    free(line);
}

bool callgrind_there(void)
{
    if (system("valgrind --version >/dev/null 2>&1") == 0)
        return true;
    printf("skipped: instructions per RPC (valgrind is not installed)\n");
    return false;
}

/* Runs the command under callgrind, which writes its dump to `path`. Reads the command's first number and the dump into
 * `out`, which must be zeroed. Returns false if that fails or nothing was counted. */
static bool run_to(const char *command, const char *path, struct callgrind *out)
{
    char line[1200];
    snprintf(line, sizeof(line),
             "valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no --callgrind-out-file=%s %s", path,
             command);
    FILE *p = popen(line, "r");
    bool ok = p && fscanf(p, "%lf%*[^\n]", &out->first) == 1;
    if (p && pclose(p) != 0)
        ok = false;
    FILE *profile = ok ? fopen(path, "r") : NULL;
    if (profile) {
        read_profile(profile, out);
        fclose(profile);
    }
    return profile && callgrind_all(out) > 0;
}

bool callgrind_run(const char *command, struct callgrind *out)
{
    char path[] = "/tmp/bench_callgrind.XXXXXX";
    int fd = mkstemp(path);
    *out = (struct callgrind){0};
    bool ok = fd >= 0 && run_to(command, path, out);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (!ok)
        fprintf(stderr, "bench: %s failed under valgrind\n", command);
    return ok;
}

double callgrind_all(const struct callgrind *c)
{
    double sum = 0;
    for (int i = 0; i < CALLGRIND_OWNERS; i++)
        sum += c->instructions[i];
    return sum;
}
