/* torc demo: the servers, on the thread of a runtime.
 *
 * Only that thread uses the control plane: do_job runs a function there and waits until it has returned. The backends
 * are servers of the public API (torc/server.h), which any thread may stop and start. A backend that is started again
 * has the same address, and keeps its counts.
 *
 * The end has an order (world_free): the servers, then the runtime, then the echoes. The last turns of the runtime may
 * still release calls, which use their echo. */
#include "world.h"

#include <stdio.h>

#include <torc/torc.h>

#include "base/mem.h"
#include "controlplane/control_plane.h"
#include "echo.h"
#include "runtime/blocking.h"
#include "runtime/runtime.h"

struct backend {
    torc_server *server; /* NULL while it is stopped */
    struct echo *echo;
    char name[16];
    char *address;
};

struct world {
    torc_runtime *runtime;
    struct tc_server *server; /* the control plane's */
    struct tc_control_plane *cp;
    char *control_plane;
    struct backend backends[WORLD_BACKENDS];
};

/* Frees an error, and returns its text, for tc_free. */
static char *error_take(torc_error *error)
{
    char *why = tc_strdup(torc_error_text(error));
    torc_error_free(error);
    return why;
}

/* Starts a server for a backend, on the backend's last address if there is one; else the system chooses the port. On
 * failure returns false with a text in *why. A server that was made stays in b->server then, for world_free. */
static bool backend_start(struct world *w, struct backend *b, char **why)
{
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = w->runtime};
    torc_error *error = NULL;
    char *bound = NULL;
    b->server = torc_server_new(&o, &error);
    if (b->server && echo_add(b->echo, b->server, &error) == 0 &&
        torc_server_listen(b->server, b->address ? b->address : "127.0.0.1:0", torc_credentials_insecure(), &bound,
                           &error) == 0 &&
        torc_server_start(b->server, &error) == 0) {
        torc_free(b->address);
        b->address = bound;
        return true;
    }
    torc_free(bound);
    *why = error_take(error);
    return false;
}

/* A function for the runtime's thread, with its arguments (`world`, `yaml`) and results (`ok`, `why`). */
struct job {
    struct world *world;
    void (*fn)(struct job *job);
    const char *yaml;
    bool ok;
    char *why; /* NULL: no failure; the caller of do_job takes it over */
};

static void run_job(void *arg)
{
    struct job *job = arg;
    job->fn(job);
}

static void do_job(struct world *w, struct job *job, void (*fn)(struct job *job))
{
    job->world = w;
    job->fn = fn;
    tc_runtime_do(w->runtime, run_job, job);
}

static void start_job(struct job *job)
{
    struct world *w = job->world;
    struct tc_server_opts opts;
    struct tc_addr any, bound;
    struct tc_status error = {0};
    tc_server_opts_init(&opts);
    w->server = tc_server_new(tc_runtime_loop(w->runtime), &opts);
    w->cp = tc_control_plane_new(w->server);
    tc_addr_parse(&any, tc_slice_str("127.0.0.1:0"));
    job->ok = tc_server_listen(w->server, &any, &bound, &error) == 0;
    if (job->ok) {
        w->control_plane = tc_addr_text(&bound);
        tc_addr_fini(&bound);
    } else {
        job->why = tc_strdup(tc_status_text(&error));
    }
    tc_addr_fini(&any);
    tc_status_fini(&error);
}

static void stop_job(struct job *job)
{
    if (job->world->server)
        tc_server_free(job->world->server);
    tc_control_plane_free(job->world->cp);
}

struct world *world_new(char **why)
{
    struct world *w = TC_NEW(struct world);
    torc_error *error = NULL;
    w->runtime = torc_runtime_new(NULL, &error);
    if (!w->runtime) {
        *why = error_take(error);
        tc_free(w);
        return NULL;
    }
    struct job job = {0};
    do_job(w, &job, start_job);
    *why = job.why;
    for (int i = 0; i < WORLD_BACKENDS; i++) {
        struct backend *b = &w->backends[i];
        snprintf(b->name, sizeof(b->name), "b%d", i + 1);
        b->echo = echo_new(&(struct echo_opts){.name = b->name});
        job.ok = job.ok && backend_start(w, b, why);
    }
    if (job.ok)
        return w;
    world_free(w);
    return NULL;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    struct job job = {0};
    do_job(w, &job, stop_job);
    for (int i = 0; i < WORLD_BACKENDS; i++)
        torc_server_free(w->backends[i].server);
    torc_runtime_free(w->runtime);
    for (int i = 0; i < WORLD_BACKENDS; i++) {
        echo_free(w->backends[i].echo);
        torc_free(w->backends[i].address);
    }
    tc_free(w->control_plane);
    tc_free(w);
}

const char *world_control_plane(const struct world *w)
{
    return w->control_plane;
}

const char *world_backend(const struct world *w, int i)
{
    return w->backends[i].address;
}

static void put_job(struct job *job)
{
    job->ok = tc_control_plane_put(job->world->cp, job->yaml, &job->why) == 0;
}

bool world_put(struct world *w, const char *yaml, char **why)
{
    struct job job = {.yaml = yaml};
    do_job(w, &job, put_job);
    *why = job.why;
    return job.ok;
}

void world_stop_backend(struct world *w, int i)
{
    torc_server_free(w->backends[i].server);
    w->backends[i].server = NULL;
}

bool world_start_backend(struct world *w, int i, char **why)
{
    return backend_start(w, &w->backends[i], why);
}

uint64_t world_requests(struct world *w, int i)
{
    return echo_requests(w->backends[i].echo);
}
