#include "server.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

const char *server_own_folder(void)
{
    static char self[512];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        return NULL;
    self[len] = 0;
    return dirname(self);
}

bool server_start(struct server *s, const char *option, const char *value)
{
    int out[2];
    char line[256] = "", program[600];
    snprintf(program, sizeof(program), "%s/../torc", server_own_folder());
    if (pipe(out) != 0 || (s->pid = fork()) < 0)
        return false;
    if (s->pid == 0) {
        measure_pin(1);
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execl(program, program, "backend", "--listen", "0.0.0.0:0", "--max-concurrent-streams", "100000", option, value,
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    bool ok = f && fgets(line, sizeof(line), f);
    if (f)
        fclose(f);
    char *colon = strrchr(line, ':');
    line[strcspn(line, "\n")] = 0;
    if (ok && colon)
        snprintf(s->port, sizeof(s->port), "%s", colon + 1);
    else
        fprintf(stderr, "bench: cannot start %s backend\n", program);
    return ok && colon;
}

void server_stop(struct server *s)
{
    kill(s->pid, SIGTERM);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

bool server_run_client(const char *name, double *numbers, unsigned n, const char *fmt, ...)
{
    char command[1024];
    va_list arguments;
    int at = snprintf(command, sizeof(command), "'%s/%s' ", server_own_folder(), name);
    va_start(arguments, fmt);
    vsnprintf(command + at, sizeof(command) - (size_t)at, fmt, arguments);
    va_end(arguments);
    FILE *p = popen(command, "r");
    bool ok = p != NULL;
    for (unsigned i = 0; ok && i < n; i++)
        ok = fscanf(p, "%lf", &numbers[i]) == 1;
    if (p && pclose(p) != 0)
        ok = false;
    if (!ok)
        fprintf(stderr, "bench: %s failed\n", command);
    return ok;
}

bool server_have_client(const char *name, const char *title)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", server_own_folder(), name);
    if (access(path, X_OK) == 0)
        return true;
    printf("skipped: %s (%s was not built: its library is not installed)\n", title, name);
    return false;
}
