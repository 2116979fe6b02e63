/* Starts and stops a client's process, sends it orders, and reads its answers. */
#include "update_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Called in the child: sets the environment and becomes the program. Does not return. */
static void run(const char *const *argv, const char *control_plane, const char *node, bool incremental)
{
    char bootstrap[512];
    snprintf(bootstrap, sizeof(bootstrap),
             "{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}],"
             "\"server_features\":[\"xds_v3\"%s]}],\"node\":{\"id\":\"%s\"}}",
             control_plane, incremental ? ",\"torc.incremental_ads\"" : "", node);
    unsetenv("GRPC_XDS_BOOTSTRAP");
    setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap, 1);
    setenv("GRPC_RING_HASH_CAP", "8388608", 1);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "bench/update: cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

bool update_client_start(struct update_client *c, const char *const *argv, const char *control_plane, const char *node,
                         bool incremental)
{
    int in[2], out[2];
    *c = (struct update_client){0};
    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    c->pid = fork();
    if (c->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        run(argv, control_plane, node, incremental);
    }
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return c->pid > 0 && c->to && c->from;
}

void update_client_stop(struct update_client *c)
{
    if (c->to)
        fclose(c->to);
    if (c->from)
        fclose(c->from);
    while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *c = (struct update_client){0};
}

static bool say(struct update_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool say(struct update_client *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(c->to, fmt, args);
    va_end(args);
    return fflush(c->to) == 0;
}

/* Reads the next line and strips the word that it must begin with. Returns false with a message if it does not. */
static bool hear(struct update_client *c, const char *word, char *rest, size_t size)
{
    char line[512] = "";
    size_t n = strlen(word);
    if (!fgets(line, sizeof(line), c->from) || strncmp(line, word, n) != 0) {
        fprintf(stderr, "bench/update: a client said \"%s\" instead of \"%s\"\n", line, word);
        return false;
    }
    snprintf(rest, size, "%s", line + n);
    return true;
}

bool update_client_first(struct update_client *c, const char *method, const char *key, struct update_first *out)
{
    char rest[512];
    double ns;
    if (!say(c, "first %s %s\n", method, key) || !hear(c, "first", rest, sizeof(rest)) ||
        sscanf(rest, "%lf %lf %lf", &ns, &out->before_kb, &out->peak_kb) != 3)
        return false;
    out->ms = ns / 1e6;
    return true;
}

bool update_client_each(struct update_client *c, const char *method, const char *key, double *ns)
{
    char rest[512];
    return say(c, "each %s %s\n", method, key) && hear(c, "each", rest, sizeof(rest)) && sscanf(rest, "%lf", ns) == 1;
}

bool update_client_until(struct update_client *c, const char *method, const char *key, const char *backend,
                         const char *address)
{
    char rest[512];
    return say(c, "until %s %s %s %s\n", method, key, backend, address) && hear(c, "going", rest, sizeof(rest));
}

bool update_client_reached(struct update_client *c, struct update_reached *out)
{
    char rest[512];
    if (!hear(c, "reached", rest, sizeof(rest)))
        return false;
    char *at = rest;
    memset(out, 0, sizeof(*out));
    out->at_ns = strtoull(at, &at, 10);
    for (int i = 0; i < UPDATE_PHASES; i++)
        out->phase_ns[i] = strtoull(at, &at, 10);
    return out->at_ns != 0;
}
