/* torc xds: subscribes as a client of the target would, and prints every resource with its state.
 *
 * It runs a channel's xds resolver without a channel, so that no backend is connected to. The resolver takes its xDS
 * client from the runtime's pool; this command takes the same client, to watch the listener itself. Each look of
 * xds_view (view.c) reads the caches of the pool's clients and compares them with the last look. Without --watch,
 * settle() waits until the resolver has reported and no resource is pending, or --timeout is over; then everything is
 * printed once. With --watch, watch() prints what each look finds changed.
 *
 * The whole command runs on one thread: the runtime is a TORC_RUNTIME_CALLER one, whose loop runs inside
 * torc_runtime_poll. struct xds lives in cmd_xds, and owns what it points at; stop() gives up the resolver, the watch
 * and the client on the loop. */
#include "xds.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include <torc/torc.h>

#include "api/builtin.h"
#include "base/mem.h"
#include "channel/options.h"
#include "cli.h"
#include "cli_options.h"
#include "commands.h"
#include "runtime/runtime.h"
#include "signals.h"
#include "xds/domain/client_pool.h"
#include "xds/resolver/listener_name.h"
#include "xds/resolver/xds_resolver.h"
#include "xds/resource/listener.h"

#define NAME "xds"
#define PROGRESS_NS (2 * TC_NS_PER_S)

static const char help[] =
    "usage: torc xds [options] TARGET\n\n"
    "Subscribes to the control plane of the bootstrap as a client of TARGET (xds:///NAME) would, and prints every\n"
    "resource with its state, version, error and content. States: REQUESTED, ACKED, NACKED, DOES_NOT_EXIST,\n"
    "RECEIVED_ERROR, TIMEOUT. No backend is connected to.\n\n"
    "      --watch           keep running and print changes, until interrupted\n"
    "      --timeout T       give up when the target did not resolve within T (20s)\n"
    "  -o text|json          json: one line, envoy.service.status.v3.ClientConfig as proto3 JSON; with --watch one "
    "line\n"
    "                        for each change, with what changed (no longer requested: without a "
    "clientStatus)\n"
    "  -v, -vv               log to standard error\n\n"
    "Exit status 1 when the target does not resolve.\n\n"
    "Examples:\n"
    "  GRPC_XDS_BOOTSTRAP=bootstrap.json torc xds xds:///orders\n"
    "  torc xds xds:///orders -o json | jq '.genericXdsConfigs[] | {name, clientStatus, versionInfo}'\n"
    "  torc xds --watch xds:///orders\n";

enum { OPT_WATCH = 256, OPT_TIMEOUT };

static const struct option options[] = {
    {"watch", no_argument, NULL, OPT_WATCH},  {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"output", required_argument, NULL, 'o'}, {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

struct xds {
    bool watch, json;
    uint64_t timeout_ms;
    torc_runtime *runtime;
    torc_credentials *credentials;
    struct tc_target target;
    struct tc_buf authority;
    struct tc_resolver_env env;
    struct tc_resolver *resolver;
    struct tc_pool_client *shared;
    struct tc_xds_watcher watcher; /* of the listener, for its ambient errors */
    struct tc_status ambient;      /* the watcher's present ambient error; OK: none */
    bool reported, stopped;        /* reported: by the resolver; stopped: stop() ran, or start() found no xDS client */
    struct tc_status status;       /* of the resolver's last report; with `shared` NULL: why there is no xDS client */
    struct xds_view view;
};

static bool is_xds(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "xds");
}

static int parse_target(struct xds *x, const char *text)
{
    char *why = NULL;
    int rc = 0;
    if (tc_target_parse(&x->target, text, is_xds, NULL, &why) != 0) {
        rc = cli_usage(NAME, "%s", why);
    } else if (strcmp(x->target.scheme, "xds") != 0) {
        rc = cli_usage(NAME, "'%s' is not an xds: target such as xds:///orders", text);
    } else if (!tc_xds_resolver_class.authority(&tc_xds_resolver_class, &x->target, &x->authority, &why)) {
        rc = cli_usage(NAME, "%s", why);
    }
    tc_free(why);
    return rc;
}

/* Returns 0, -1 if --help was printed, or an exit status with the error printed. */
static int parse_args(struct xds *x, int argc, char **argv)
{
    int c, rc, verbose = 0;
    if ((rc = cli_long_options(NAME, argc, argv, ":o:vh", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":o:vh", options, NULL)) != -1) {
        switch (c) {
        case OPT_WATCH:
            x->watch = true;
            break;
        case OPT_TIMEOUT:
            if ((rc = cli_duration_ms(NAME, "--timeout", optarg, &x->timeout_ms)) != 0)
                return rc;
            break;
        case 'o':
            if ((rc = cli_output(NAME, optarg, &x->json)) != 0)
                return rc;
            break;
        case 'v':
            verbose++;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return cli_bad_option(NAME, c, argv);
        }
    }
    if (optind == argc)
        return cli_usage(NAME, "give a TARGET such as xds:///orders");
    if (optind + 1 != argc)
        return cli_usage(NAME, "unexpected argument '%s'", argv[optind + 1]);
    cli_verbose(verbose);
    return parse_target(x, argv[optind]);
}

/* --- the resolver: its callbacks, start() and stop() run on the loop --- */

static bool on_result(void *arg, struct tc_resolver_result *result)
{
    struct xds *x = arg;
    x->reported = true;
    tc_status_set(&x->status, tc_status_ref(&result->status));
    tc_resolver_result_fini(result);
    return true;
}

static void on_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_token *token)
{
    struct xds *x = TC_CONTAINER_OF(w, struct xds, watcher);
    (void)resource;
    (void)error; /* the resolver reports it too */
    (void)token;
    tc_status_set(&x->ambient, (struct tc_status){0});
}

static void on_ambient_error(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_token *token)
{
    struct xds *x = TC_CONTAINER_OF(w, struct xds, watcher);
    (void)token;
    tc_status_set(&x->ambient, tc_status_ref(error));
}

static const struct tc_xds_watcher_ops watcher_ops = {.on_changed = on_changed, .on_ambient_error = on_ambient_error};

/* Watches the listener to hear of trouble with the control plane. A target whose authority the bootstrap lacks gets no
 * watch: the resolver reports that error. */
static void watch_listener(struct xds *x)
{
    struct tc_buf name = {0};
    x->watcher.ops = &watcher_ops;
    if (tc_listener_name(tc_xds_client_bootstrap(x->shared->client), &x->target, &name) == 0)
        tc_xds_client_watch(x->shared->client, &tc_listener_type, tc_buf_slice(&name), &x->watcher);
    tc_buf_fini(&name);
}

static void start(void *arg)
{
    struct xds *x = arg;
    struct torc_channel_options o;
    tc_channel_options_complete(&o, NULL, NULL);
    x->env = (struct tc_resolver_env){
        .loop = tc_runtime_loop(x->runtime),
        .lb_registry = tc_builtin_policies(),
        .authority = tc_buf_slice(&x->authority),
        .dns_min_interval_ms = (uint64_t)o.dns_min_interval_ms,
        .xds_resource_timeout_ms = (uint64_t)o.xds_resource_timeout_ms,
        .credentials = x->credentials,
        .runtime = x->runtime,
        .backoff = {.initial_ms = (uint64_t)o.backoff_initial_ms,
                    .max_ms = (uint64_t)o.backoff_max_ms,
                    .multiplier = o.backoff_multiplier,
                    .jitter = o.backoff_jitter},
        .on_result = on_result,
        .arg = x,
    };
    /* The pool gives the same client to the target's resolver. */
    x->shared =
        tc_pool_client_get(tc_xds_client_pool_of(x->runtime), &x->env, tc_slice_str(x->target.text), &x->status);
    if (!x->shared) {
        x->stopped = true;
        return;
    }
    x->resolver = tc_xds_resolver_class.create(&tc_xds_resolver_class, &x->target, &x->env);
    x->resolver->ops->start(x->resolver);
    watch_listener(x);
}

static void stop(void *arg)
{
    struct xds *x = arg;
    if (x->resolver)
        x->resolver->ops->shutdown(x->resolver);
    x->resolver = NULL;
    if (x->watcher.internal)
        tc_xds_client_unwatch(x->shared->client, &x->watcher);
    tc_pool_client_release(x->shared);
    x->shared = NULL;
    x->stopped = true;
}

static void stop_and_wait(struct xds *x)
{
    x->stopped = false;
    torc_runtime_post(x->runtime, stop, x);
    while (!x->stopped)
        torc_runtime_poll(x->runtime, -1);
}

/* --- showing --- */

static void show(struct xds *x, const xds_list *list)
{
    const struct tc_xds_bootstrap *bootstrap = tc_xds_client_bootstrap(x->shared->client);
    if (x->json)
        xds_print_json(list, bootstrap, x->target.text);
    else if (x->watch)
        xds_print_changes(list, tc_system_clock.realtime_ns(NULL));
    else
        xds_print_all(list);
}

/* Prints a change that concerns no single resource: on stdout, with -o json on stderr. The line has `what`, then `good`
 * if the status is OK, else `bad` with the status's text. */
static void tell(const struct xds *x, const char *what, const struct tc_status *status, const char *good,
                 const char *bad)
{
    FILE *out = x->json ? stderr : stdout;
    char when[32];
    struct tc_buf scratch = {0};
    xds_format_time(tc_system_clock.realtime_ns(NULL), when);
    fprintf(out, "%s %s %s%s\n", when, what, tc_status_ok(status) ? good : bad,
            cli_shown(&scratch, tc_status_text(status)));
    tc_buf_fini(&scratch);
    fflush(out);
}

/* Returns whether the listener's own line already shows the ambient error. */
static bool said_already(const struct xds *x)
{
    for (const struct xds_seen *s = x->view.table; s && !tc_status_ok(&x->ambient); s = s->hh.next)
        if (s->type == &tc_listener_type && tc_rstr_eq(s->error, x->ambient.text))
            return true;
    return false;
}

static int watch(struct xds *x)
{
    struct tc_status resolution = {TORC_STATUS_UNKNOWN, TORC_LAYER_XDS, NULL}, ambient = {0};
    signals_catch(tc_runtime_loop(x->runtime));
    while (!signals_stop() && !ferror(stdout)) {
        xds_view_look(&x->view, tc_xds_client_pool_of(x->runtime));
        if (x->view.changed.len)
            show(x, &x->view.changed);
        if (x->reported && !tc_status_eq(&resolution, &x->status)) {
            tell(x, x->target.text, &x->status, "resolved", "does not resolve: ");
            tc_status_set(&resolution, tc_status_ref(&x->status));
        }
        if (!tc_status_eq(&ambient, &x->ambient) && !said_already(x)) {
            tell(x, "control plane", &x->ambient, "is there again", "trouble: ");
            tc_status_set(&ambient, tc_status_ref(&x->ambient));
        }
        torc_runtime_poll(x->runtime, -1);
    }
    signals_release();
    tc_status_fini(&resolution);
    tc_status_fini(&ambient);
    return CLI_OK;
}

static void show_progress(const struct xds *x, uint64_t begin_ns, uint64_t now_ns, uint64_t *last_ns)
{
    if (!isatty(STDERR_FILENO) || now_ns - *last_ns < PROGRESS_NS)
        return;
    *last_ns = now_ns;
    fprintf(stderr, "torc xds: %.0f s, waiting for %zu of %u resources\n", (double)(now_ns - begin_ns) / 1e9,
            x->view.pending, HASH_COUNT(x->view.table));
}

/* Waits until the resolver has reported and no resource is pending. Returns whether the target resolves; false also if
 * --timeout ends the wait. */
static bool settle(struct xds *x)
{
    uint64_t begin_ns = tc_system_clock.monotonic_ns(NULL), last_ns = begin_ns;
    uint64_t end_ns = begin_ns + TC_MIN(x->timeout_ms, UINT64_MAX / 2 / TC_NS_PER_MS) * TC_NS_PER_MS;
    for (;;) {
        xds_view_look(&x->view, tc_xds_client_pool_of(x->runtime));
        if (x->reported && x->view.pending == 0)
            return tc_status_ok(&x->status);
        uint64_t now_ns = tc_system_clock.monotonic_ns(NULL);
        if (now_ns >= end_ns)
            return false;
        show_progress(x, begin_ns, now_ns, &last_ns);
        uint64_t left_ms = (end_ns - now_ns + TC_NS_PER_MS - 1) / TC_NS_PER_MS;
        torc_runtime_poll(x->runtime, (int)TC_MIN(left_ms, 500));
    }
}

/* Appends the resources that did not come, such as 'Listener "a", Cluster "b"', and the ambient error if any. Names at
 * most MOST of them, and counts the rest: "and 7 more". */
static void append_awaited(const struct xds *x, struct tc_buf *out)
{
    enum { MOST = 4 };
    size_t n = 0;
    for (const struct xds_seen *s = x->view.table; s; s = s->hh.next)
        if (s->state == TC_XDS_REQUESTED && ++n <= MOST)
            tc_buf_printf(out, "%s%s \"%s\"", n > 1 ? ", " : "", s->type->short_name, s->name->data);
    if (n > MOST)
        tc_buf_printf(out, " and %zu more", n - MOST);
    if (!tc_status_ok(&x->ambient))
        tc_buf_printf(out, "%s%s", n ? ": " : "", tc_status_text(&x->ambient));
}

static int once(struct xds *x)
{
    int rc;
    xds_list all = {0};
    bool ok = settle(x);
    xds_view_all(&x->view, &all);
    show(x, &all);
    tc_vec_fini(&all);
    if (ok)
        return CLI_OK;
    if (x->reported && !tc_status_ok(&x->status))
        return cli_fail(NAME, "%s does not resolve: %s", x->target.text, tc_status_text(&x->status));
    struct tc_buf awaited = {0};
    append_awaited(x, &awaited);
    rc = cli_fail(NAME, "%s did not resolve within %.1f s%s%s", x->target.text, (double)x->timeout_ms / 1e3,
                  awaited.len ? ", waiting for " : "", tc_buf_cstr(&awaited));
    tc_buf_fini(&awaited);
    return rc;
}

static int run(struct xds *x)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    x->runtime = torc_runtime_new(&o, &error);
    if (!x->runtime)
        return cli_fail_error(NAME, error);
    x->credentials = torc_credentials_insecure();
    torc_runtime_post(x->runtime, start, x);
    while (!x->shared && !x->stopped)
        torc_runtime_poll(x->runtime, -1);
    if (!x->shared)
        return cli_fail(NAME, "%s", tc_status_text(&x->status));
    int rc = x->watch ? watch(x) : once(x);
    stop_and_wait(x);
    return rc;
}

int cmd_xds(int argc, char **argv)
{
    struct xds x = {.timeout_ms = 20000};
    int rc = parse_args(&x, argc, argv);
    if (rc == 0)
        rc = run(&x);
    if (x.runtime)
        torc_runtime_free(x.runtime);
    torc_credentials_unref(x.credentials);
    xds_view_fini(&x.view);
    tc_status_fini(&x.status);
    tc_status_fini(&x.ambient);
    tc_buf_fini(&x.authority);
    tc_target_fini(&x.target);
    return rc < 0 ? CLI_OK : rc;
}
