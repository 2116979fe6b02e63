/* torc demo: the servers, on a thread with its own loop.
 *
 * The main thread never touches servers: world_* functions post a job to the loop and wait until it is done. Backends
 * keep their ports, so that a stopped backend comes back at the same address. Resources live in one set; world_put
 * replaces parts of it and pushes. */
#include "world.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "controlplane/backend.h"
#include "controlplane/control_plane.h"

struct node {
    struct tc_server *server;
    struct tc_backend *backend; /* NULL for the control plane's server */
    struct tc_addr addr;
    char *text;
};

struct world {
    pthread_t thread;
    struct tc_loop *loop;
    struct node control_plane, backends[WORLD_BACKENDS];
    struct tc_control_plane *cp;
    bool stop;
};

/* Work for the servers' thread. The main thread waits until it is done. */
struct job {
    struct tc_task task;
    struct world *world;
    void (*fn)(struct job *job);
    int index;
    const char *yaml;
    uint64_t count;
    bool ok;
    char *why;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
};

static void run_job(struct tc_task *task)
{
    struct job *job = TC_CONTAINER_OF(task, struct job, task);
    job->fn(job);
    pthread_mutex_lock(&job->lock);
    job->done = true;
    pthread_cond_signal(&job->done_cond);
    pthread_mutex_unlock(&job->lock);
}

static void do_job(struct world *w, struct job *job, void (*fn)(struct job *job))
{
    job->world = w;
    job->fn = fn;
    tc_task_init(&job->task, run_job);
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->done_cond, NULL);
    tc_loop_post(w->loop, &job->task);
    pthread_mutex_lock(&job->lock);
    while (!job->done)
        pthread_cond_wait(&job->done_cond, &job->lock);
    pthread_mutex_unlock(&job->lock);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->done_cond);
}

static bool node_listen(struct node *n, char **why)
{
    struct tc_status error = {0};
    struct tc_addr bound;
    bool ok = tc_server_listen(n->server, &n->addr, &bound, &error) == 0;
    if (ok) {
        tc_addr_fini(&n->addr);
        n->addr = bound;
        tc_free(n->text);
        n->text = tc_addr_text(&n->addr);
    } else {
        *why = tc_strdup(tc_status_text(&error));
    }
    tc_status_fini(&error);
    return ok;
}

static bool node_init(struct world *w, struct node *n, const char *name, char **why)
{
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    n->server = tc_server_new(w->loop, &opts);
    if (name)
        n->backend = tc_backend_new(n->server, &(struct tc_backend_opts){.name = name});
    tc_addr_parse(&n->addr, tc_slice_str("127.0.0.1:0"));
    return node_listen(n, why);
}

static void node_fini(struct node *n)
{
    if (n->server)
        tc_server_free(n->server);
    tc_backend_free(n->backend);
    tc_addr_fini(&n->addr);
    tc_free(n->text);
}

static void *serve(void *arg)
{
    struct world *w = arg;
    while (!w->stop)
        tc_loop_turn(w->loop, -1);
    return NULL;
}

struct world *world_new(char **why)
{
    struct world *w = TC_NEW(struct world);
    w->loop = tc_loop_new(NULL);
    if (!w->loop) {
        *why = tc_strdup("cannot make an event loop");
        tc_free(w);
        return NULL;
    }
    bool ok = node_init(w, &w->control_plane, NULL, why);
    w->cp = tc_control_plane_new(w->control_plane.server);
    for (int i = 0; i < WORLD_BACKENDS && ok; i++) {
        char name[3] = {'b', (char)('1' + i), '\0'};
        ok = node_init(w, &w->backends[i], name, why);
    }
    if (ok && pthread_create(&w->thread, NULL, serve, w) == 0)
        return w;
    if (ok)
        *why = tc_strdup("cannot start a thread");
    w->stop = true;
    for (int i = 0; i < WORLD_BACKENDS; i++)
        node_fini(&w->backends[i]);
    node_fini(&w->control_plane);
    tc_control_plane_free(w->cp);
    tc_loop_free(w->loop);
    tc_free(w);
    return NULL;
}

static void stop_job(struct job *job)
{
    job->world->stop = true;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    struct job job = {0};
    do_job(w, &job, stop_job);
    pthread_join(w->thread, NULL);
    for (int i = 0; i < WORLD_BACKENDS; i++)
        node_fini(&w->backends[i]);
    node_fini(&w->control_plane);
    tc_control_plane_free(w->cp);
    tc_loop_free(w->loop);
    tc_free(w);
}

const char *world_control_plane(const struct world *w)
{
    return w->control_plane.text;
}

const char *world_backend(const struct world *w, int i)
{
    return w->backends[i].text;
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

static void stop_backend_job(struct job *job)
{
    struct node *n = &job->world->backends[job->index];
    tc_server_stop_listening(n->server);
    tc_server_close_connections(n->server);
}

void world_stop_backend(struct world *w, int i)
{
    struct job job = {.index = i};
    do_job(w, &job, stop_backend_job);
}

static void start_backend_job(struct job *job)
{
    job->ok = node_listen(&job->world->backends[job->index], &job->why);
}

bool world_start_backend(struct world *w, int i, char **why)
{
    struct job job = {.index = i};
    do_job(w, &job, start_backend_job);
    *why = job.why;
    return job.ok;
}

static void count_job(struct job *job)
{
    job->count = tc_backend_requests(job->world->backends[job->index].backend);
}

uint64_t world_requests(struct world *w, int i)
{
    struct job job = {.index = i};
    do_job(w, &job, count_job);
    return job.count;
}
