/* Counts the instructions of picks: the program runs itself under callgrind and reads the dumps. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pick.h"

enum { PICKS = 1000 };

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>

int pick_counted(const size_t *sizes, size_t n_sizes)
{
    for (size_t s = 0; s < n_sizes; s++) {
        struct pick_world *w = pick_world_new(sizes[s]);
        for (int level = 0; level < PICK_LEVELS; level++) {
            char label[32];
            snprintf(label, sizeof(label), "%zu %d", s, level);
            CALLGRIND_START_INSTRUMENTATION;
            CALLGRIND_ZERO_STATS;
            pick_run(w, (enum pick_level)level, PICKS);
            CALLGRIND_DUMP_STATS_AT(label);
            CALLGRIND_STOP_INSTRUMENTATION;
        }
        pick_world_free(w);
    }
    return 0;
}

/* Reads a dump and sets out[SIZE][LEVEL]. The dump's description, "Client Request: SIZE LEVEL", names the measurement;
 * SIZE is an index. A dump without such a description, as the one at the program's end, is ignored. */
static void read_dump(const char *path, size_t n_sizes, double (*out)[PICK_LEVELS])
{
    static const char trigger[] = "Client Request: ";
    char line[512];
    size_t size = n_sizes;
    int level = PICK_LEVELS;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        double total;
        const char *at = strncmp(line, "desc: Trigger", 13) == 0 ? strstr(line, trigger) : NULL;
        if (at && sscanf(at + strlen(trigger), "%zu %d", &size, &level) != 2)
            break;
        if (sscanf(line, "totals: %lf", &total) == 1 && size < n_sizes && level >= 0 && level < PICK_LEVELS)
            out[size][level] = total / PICKS;
    }
    if (f)
        fclose(f);
}

/* Runs this program with the argument "counted" under callgrind, which writes its dumps to the folder. */
static bool run_callgrind(const char *folder)
{
    char self[512], command[1200];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        return false;
    self[len] = 0;
    snprintf(command, sizeof(command),
             "valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=%s/out '%s' counted >/dev/null 2>&1",
             folder, self);
    int rc = system(command);
    return WIFEXITED(rc) && WEXITSTATUS(rc) == 0;
}

bool pick_count(size_t n_sizes, double (*out)[PICK_LEVELS])
{
    char folder[] = "/tmp/bench_pick.XXXXXX", path[600];
    memset(out, 0, n_sizes * sizeof(*out));
    if (!mkdtemp(folder)) {
        perror(folder);
        return false;
    }
    bool ok = run_callgrind(folder);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        read_dump(path, n_sizes, out);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
    for (size_t s = 0; ok && s < n_sizes; s++)
        for (int level = 0; ok && level < PICK_LEVELS; level++)
            ok = out[s][level] > 0;
    if (!ok)
        printf("skipped: instructions (valgrind is not installed, or its callgrind failed)\n");
    return ok;
}

#else

int pick_counted(const size_t *sizes, size_t n_sizes)
{
    (void)sizes;
    (void)n_sizes;
    return 1;
}

bool pick_count(size_t n_sizes, double (*out)[PICK_LEVELS])
{
    memset(out, 0, n_sizes * sizeof(*out));
    printf("skipped: instructions (built without valgrind's headers)\n");
    return false;
}

#endif
