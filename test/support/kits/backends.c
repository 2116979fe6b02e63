/* Echo servers on a runtime with its own thread.
 *
 * The runtime's loop runs the servers. A function that needs a server posts a job to this loop and waits until the job
 * is done (run): only jobs touch servers and echoes. The server and the echo of a stopped backend are NULL. Servers
 * keep their addresses over stop and restart, as a second socket holds each port. A client's runtime is separate:
 * kit_backends_runtime makes one in either mode. */
#include "support/kits/backends.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "base/mem.h"
#include "runtime/runtime.h"
#include "support/cmocka.h"
#include "support/net/port.h"

struct kit_backends {
    torc_runtime *runtime;
    size_t n;
    struct tc_server_opts opts;
    struct tc_server *servers[KIT_BACKENDS_MAX];
    struct kit_echo *backends[KIT_BACKENDS_MAX];
    struct tc_addr addrs[KIT_BACKENDS_MAX];
    int ports[KIT_BACKENDS_MAX];   /* sockets that hold the ports (port_hold), also while no servers listen there */
    char *texts[KIT_BACKENDS_MAX]; /* of addrs */
    char *target;
};

/* Work on server i for the runtime's thread; on the stack of the thread that waits for it. */
struct job {
    void (*fn)(struct kit_backends *kit, struct job *job);
    struct kit_backends *kit;
    size_t i;
    void (*user)(struct tc_server *server, void *arg); /* with `arg`: of kit_backends_do */
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done; /* under the mutex */
};

static void run_job(void *arg)
{
    struct job *job = arg;
    job->fn(job->kit, job);
    pthread_mutex_lock(&job->mutex);
    job->done = true;
    pthread_cond_signal(&job->cond);
    pthread_mutex_unlock(&job->mutex);
}

static void run(struct kit_backends *kit, struct job *job)
{
    job->kit = kit;
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->cond, NULL);
    torc_runtime_post(kit->runtime, run_job, job);
    pthread_mutex_lock(&job->mutex);
    while (!job->done)
        pthread_cond_wait(&job->cond, &job->mutex);
    pthread_mutex_unlock(&job->mutex);
    pthread_mutex_destroy(&job->mutex);
    pthread_cond_destroy(&job->cond);
}

/* Makes the server and its echo, and listens on the backend's address. */
static void start(struct kit_backends *kit, struct job *job)
{
    size_t i = job->i;
    char name[] = {'b', (char)('0' + i), '\0'};
    struct tc_addr bound;
    struct tc_status error = {0};
    kit->servers[i] = tc_server_new(tc_runtime_loop(kit->runtime), &kit->opts);
    kit->backends[i] = kit_echo_new(kit->servers[i], &(struct kit_echo_opts){.name = name});
    if (tc_server_listen(kit->servers[i], &kit->addrs[i], &bound, &error) != 0)
        abort();
    tc_addr_fini(&kit->addrs[i]);
    kit->addrs[i] = bound;
}

static void stop(struct kit_backends *kit, struct job *job)
{
    if (kit->servers[job->i]) {
        tc_server_free(kit->servers[job->i]);
        kit_echo_free(kit->backends[job->i]);
    }
    kit->servers[job->i] = NULL;
    kit->backends[job->i] = NULL;
}

struct kit_backends *kit_backends_new(size_t n, const struct tc_server_opts *opts)
{
    struct kit_backends *kit = TC_NEW(struct kit_backends);
    struct tc_buf target = {0};
    kit->runtime = torc_runtime_new(NULL, NULL);
    kit->n = n;
    if (opts)
        kit->opts = *opts;
    else
        tc_server_opts_init(&kit->opts);
    tc_buf_append_str(&target, "ipv4:");
    for (size_t i = 0; i < n; i++) {
        uint16_t port;
        kit->ports[i] = port_hold(&port);
        tc_addr_parse(&kit->addrs[i], tc_slice_str("127.0.0.1:0"));
        kit->addrs[i].sa.in.sin_port = htons(port);
        run(kit, &(struct job){.fn = start, .i = i});
        kit->texts[i] = tc_addr_text(&kit->addrs[i]);
        tc_buf_printf(&target, "%s%s", i ? "," : "", kit->texts[i]);
    }
    kit->target = tc_buf_take(&target);
    return kit;
}

void kit_backends_free(struct kit_backends *kit)
{
    for (size_t i = 0; i < kit->n; i++) {
        run(kit, &(struct job){.fn = stop, .i = i});
        close(kit->ports[i]);
        tc_addr_fini(&kit->addrs[i]);
        tc_free(kit->texts[i]);
    }
    torc_runtime_free(kit->runtime);
    tc_free(kit->target);
    tc_free(kit);
}

const char *kit_backends_address(const struct kit_backends *kit, size_t i)
{
    return kit->texts[i];
}

const char *kit_backends_target(struct kit_backends *kit)
{
    return kit->target;
}

static void listen_everywhere(struct tc_server *server, void *arg)
{
    struct tc_addr any, bound;
    struct tc_status error = {0};
    if (tc_addr_parse(&any, tc_slice_str("0.0.0.0:0")) != 0 || tc_server_listen(server, &any, &bound, &error) != 0)
        abort();
    *(uint16_t *)arg = ntohs(bound.sa.in.sin_port);
    tc_addr_fini(&bound);
    tc_addr_fini(&any);
}

uint16_t kit_backends_listen_everywhere(struct kit_backends *kit, size_t i)
{
    uint16_t port = 0;
    kit_backends_do(kit, listen_everywhere, i, &port);
    return port;
}

static void run_user(struct kit_backends *kit, struct job *job)
{
    job->user(kit->servers[job->i], job->arg);
}

void kit_backends_do(struct kit_backends *kit, void (*fn)(struct tc_server *server, void *arg), size_t i, void *arg)
{
    run(kit, &(struct job){.fn = run_user, .user = fn, .i = i, .arg = arg});
}

void kit_backends_stop(struct kit_backends *kit, size_t i)
{
    run(kit, &(struct job){.fn = stop, .i = i});
}

void kit_backends_restart(struct kit_backends *kit, size_t i)
{
    run(kit, &(struct job){.fn = start, .i = i});
}

static void goaway(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_goaway(server);
}

void kit_backends_goaway(struct kit_backends *kit, size_t i)
{
    kit_backends_do(kit, goaway, i, NULL);
}

static void counts(struct tc_server *server, void *arg)
{
    tc_server_counts(server, arg);
}

struct tc_server_counts kit_backends_counts(struct kit_backends *kit, size_t i)
{
    struct tc_server_counts c;
    kit_backends_do(kit, counts, i, &c);
    return c;
}

struct kit_backends *kit_backends_one;

int kit_backends_one_setup(void **state)
{
    (void)state;
    kit_backends_one = kit_backends_new(1, NULL);
    return 0;
}

int kit_backends_one_teardown(void **state)
{
    (void)state;
    kit_backends_free(kit_backends_one);
    kit_backends_one = NULL;
    return 0;
}

torc_runtime *kit_backends_runtime(enum torc_runtime_mode mode)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = mode};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    return rt;
}

struct kit_backends *kit_backends_open(enum torc_runtime_mode mode, torc_runtime **rt, torc_channel **ch)
{
    struct kit_backends *kit = kit_backends_new(1, NULL);
    *rt = kit_backends_runtime(mode);
    *ch = torc_channel_new(*rt, kit_backends_target(kit), NULL, NULL);
    assert_non_null(*ch);
    return kit;
}

int kit_backends_close(struct kit_backends *kit, torc_runtime *rt, torc_channel *ch)
{
    torc_channel_free(ch);
    int rc = torc_runtime_free(rt);
    kit_backends_free(kit);
    return rc;
}

uint64_t kit_backends_expect(torc_channel *ch, bool wait_for_ready, int64_t timeout_ms, int code, const char *part)
{
    torc_result *r;
    uint64_t begun = tc_system_clock.monotonic_ns(tc_system_clock.arg);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = wait_for_ready,
                                  .timeout_ms = timeout_ms};
    r = torc_unary(ch, "/a.B/C", "x", 1, &o);
    if (torc_result_code(r) != code || !strstr(torc_result_text(r), part))
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
    return (tc_system_clock.monotonic_ns(tc_system_clock.arg) - begun) / TC_NS_PER_MS;
}

torc_channel *kit_backends_channel(struct kit_backends *kit, torc_runtime *rt,
                                   const struct torc_channel_options *options, const char *service_config)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (options)
        o = *options;
    if (service_config)
        o.service_config_json = service_config;
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    return ch;
}
