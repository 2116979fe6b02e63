/* torc serve-xds: the embedded control plane, serving files.
 *
 * A source is the files of --resources, or those of --node-id for one node. load() reads each source into a set of
 * resources, which the control plane takes over; a file watch runs load() again after a change. At the start an error
 * ends the command. Later a source with an error (a file that cannot be read, or does not parse, or with --strict has
 * an invalid resource) keeps its last good set, and the other sources are updated.
 *
 * All this runs on the command's one thread, which turns the loop. cmd_serve_xds frees the server before the services
 * that the server calls.
 *
 * log.c prints --log json; strict.c checks resources; references.c checks the references between them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli.h"
#include "cli_options.h"
#include "commands.h"
#include "controlplane/csds.h"
#include "controlplane/resource_load.h"
#include "io/file_watch.h"
#include "serve.h"
#include "serve_xds.h"
#include "signals.h"

#define NAME "serve-xds"
#define SETTLE_MS 20u

static const char help[] =
    "usage: torc serve-xds --resources FILE|DIR [options]\n\n"
    "Runs an xDS control plane: an ADS server (state of the world and incremental) that serves resources from files\n"
    "and pushes each change of them at once. A file that does not parse is reported and the last good content stays.\n"
    "It takes load reports (LRS), and says what its clients were served and made of it (CSDS).\n\n"
    "      --listen ADDR            repeatable (127.0.0.1:18000; port 0: any)\n"
    "      --resources FILE|DIR     proto3 JSON or YAML, repeatable\n"
    "      --node-id ID=FILE|DIR    what to serve this node instead of --resources, repeatable\n"
    "      --strict                 read resources as the client would, and refuse a file with an invalid one; warn\n"
    "                               of names of resources that no file has, and of localities without a weight. The\n"
    "                               bootstrap of the environment, if any, says which certificate providers there are\n"
    "      --lrs-interval T         how often clients are to report load (10s)\n"
    "      --lrs-cluster NAME       of which cluster, repeatable (all)\n"
    "      --lrs-endpoints          by endpoint, too\n"
    "      --log json               one line for each request and each load report of a client\n"
    "  -v, -vv                      log to standard error\n\n"
    "A file holds resources in the shape of Envoy's filesystem xDS:\n"
    "  version_info: \"1\"\n"
    "  resources:\n"
    "  - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
    "    name: orders\n"
    "    type: EDS\n"
    "    eds_cluster_config: {eds_config: {ads: {}}}\n\n"
    "Examples:\n"
    "  torc serve-xds --resources mesh.yaml --log json\n"
    "  torc serve-xds --strict --resources mesh/ --node-id canary=canary.yaml\n";

enum {
    OPT_LISTEN = 256,
    OPT_RESOURCES,
    OPT_NODE,
    OPT_STRICT,
    OPT_LRS_INTERVAL,
    OPT_LRS_CLUSTER,
    OPT_LRS_ENDPOINTS,
    OPT_LOG
};

static const struct option options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"resources", required_argument, NULL, OPT_RESOURCES},
    {"node-id", required_argument, NULL, OPT_NODE},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"lrs-interval", required_argument, NULL, OPT_LRS_INTERVAL},
    {"lrs-cluster", required_argument, NULL, OPT_LRS_CLUSTER},
    {"lrs-endpoints", no_argument, NULL, OPT_LRS_ENDPOINTS},
    {"log", required_argument, NULL, OPT_LOG},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* The files and folders for one node; node_id NULL: for every node without a source of its own. `node_id` is owned; the
 * paths are borrowed from argv. */
struct source {
    char *node_id;
    TC_VEC(const char *) paths;
};

struct serve {
    TC_VEC(const char *) listen;
    TC_VEC(struct source) sources;
    TC_VEC(const char *) paths; /* every path, for the file watch */
    /* check: --strict. files_are_bad: a source had an error when the files changed last. */
    bool log, check, files_are_bad;
    uint64_t lrs_interval_ms;
    TC_VEC(const char *) lrs_clusters;
    bool lrs_endpoints;
    struct strict strict;
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_control_plane *cp;
    struct tc_lrs *lrs;
    struct tc_csds *csds;
};

/* Returns the source of a node, made if there is none; for an empty id, the source of --resources. Valid until the
 * next source is made. */
static struct source *source_of(struct serve *s, struct tc_slice node_id)
{
    for (size_t i = 0; i < s->sources.len; i++) {
        const char *have = s->sources.data[i].node_id;
        if (have ? tc_slice_eq_str(node_id, have) : node_id.len == 0)
            return &s->sources.data[i];
    }
    struct source *new = tc_vec_push(&s->sources);
    new->node_id = node_id.len ? tc_slice_dup(node_id) : NULL;
    return new;
}

/* Adds the source of --node-id ID=FILE|DIR. Returns 0, or CLI_USAGE with the error printed. */
static int add_node(struct serve *s, const char *text)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return cli_usage(NAME, "--node-id: '%s' does not have the form ID=FILE|DIR", text);
    *tc_vec_push(&source_of(s, tc_slice_of(text, (size_t)(eq - text)))->paths) = eq + 1;
    *tc_vec_push(&s->paths) = eq + 1;
    return 0;
}

/* Returns 0, or CLI_USAGE with the error printed, or -1 if --help was printed. Strings are borrowed from argv. */
static int parse_args(struct serve *s, int argc, char **argv)
{
    int c, rc, verbose = 0;
    if ((rc = cli_long_options(NAME, argc, argv, ":vh", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":vh", options, NULL)) != -1) {
        switch (c) {
        case OPT_LISTEN:
            *tc_vec_push(&s->listen) = optarg;
            break;
        case OPT_RESOURCES:
            if ((rc = cli_path(NAME, "--resources", optarg)) != 0)
                return rc;
            *tc_vec_push(&source_of(s, tc_slice_of(NULL, 0))->paths) = optarg;
            *tc_vec_push(&s->paths) = optarg;
            break;
        case OPT_NODE:
            if ((rc = add_node(s, optarg)) != 0)
                return rc;
            break;
        case OPT_STRICT:
            s->check = true;
            break;
        case OPT_LRS_INTERVAL:
            if ((rc = cli_duration_ms(NAME, "--lrs-interval", optarg, &s->lrs_interval_ms)) != 0)
                return rc;
            if (s->lrs_interval_ms == 0)
                return cli_usage(NAME, "--lrs-interval: '%s' is not above 0", optarg);
            break;
        case OPT_LRS_CLUSTER:
            *tc_vec_push(&s->lrs_clusters) = optarg;
            break;
        case OPT_LRS_ENDPOINTS:
            s->lrs_endpoints = true;
            break;
        case OPT_LOG:
            if (strcmp(optarg, "json") != 0)
                return cli_usage(NAME, "--log: '%s' is not json", optarg);
            s->log = true;
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
    if (optind != argc)
        return cli_usage(NAME, "unexpected argument '%s'", argv[optind]);
    if (s->sources.len == 0)
        return cli_usage(NAME, "give --resources FILE or DIR");
    if (s->listen.len == 0)
        *tc_vec_push(&s->listen) = "127.0.0.1:18000";
    cli_verbose(verbose);
    return 0;
}

/* Reads all sources. Serves each source that has no error, and prints the error of each source that has one. Returns
 * false if a source had an error. */
static bool load(struct serve *s)
{
    bool ok = true;
    for (size_t i = 0; i < s->sources.len; i++) {
        const struct source *source = &s->sources.data[i];
        struct tc_resource_set *set = tc_resource_set_new();
        char *why = NULL;
        set->check = s->check ? strict_check : NULL;
        set->check_arg = &s->strict;
        set->warn = s->check ? NULL : cli_left_out;
        set->warn_arg = NAME;
        if (tc_resource_set_load(set, source->paths.data, source->paths.len, &why) == 0) {
            tc_control_plane_set(s->cp, source->node_id, set);
            references_report(&s->strict.references, NAME);
        } else {
            cli_fail(NAME, "%s", why);
            tc_resource_set_free(set);
            ok = false;
        }
        references_fini(&s->strict.references);
        tc_free(why);
    }
    return ok;
}

static void on_files_changed(void *arg)
{
    struct serve *s = arg;
    bool were_bad = s->files_are_bad;
    s->files_are_bad = !load(s);
    if (s->files_are_bad)
        cli_fail(NAME, "the last good content stays in use");
    else if (were_bad)
        cli_fail(NAME, "the files are good again, and in use");
}

static int listen_all(struct serve *s)
{
    for (size_t i = 0; i < s->listen.len; i++) {
        int rc = cli_listen(NAME, s->server, s->listen.data[i]);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int run(struct serve *s)
{
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    cli_guard_server(&opts);
    opts.http2.limits.max_receive_message_bytes = 64u << 20;
    s->server = tc_server_new(s->loop, &opts);
    s->cp = tc_control_plane_new(s->server);
    s->lrs = tc_lrs_new(s->server);
    s->csds = tc_csds_new(s->server, s->cp);
    tc_lrs_set(s->lrs, &(struct tc_lrs_config){.interval_ms = s->lrs_interval_ms,
                                               .send_all_clusters = s->lrs_clusters.len == 0,
                                               .clusters = s->lrs_clusters.data,
                                               .n_clusters = s->lrs_clusters.len,
                                               .endpoint_granularity = s->lrs_endpoints});
    if (s->log) {
        tc_control_plane_observe(s->cp, serve_log_ads, s);
        tc_lrs_observe(s->lrs, serve_log_lrs, s);
    }
    /* The watch starts before the files are read, so that no change is missed in between. */
    struct tc_file_watch *watch =
        tc_file_watch_new(s->loop, s->paths.data, s->paths.len, SETTLE_MS, on_files_changed, s);
    int error = errno, rc = load(s) ? 0 : CLI_FAILED;
    errno = error;
    if (rc == 0 && !watch)
        rc = cli_fail(NAME, "cannot watch the resource files for changes: %m");
    signals_catch(s->loop); /* before "listening" is printed: a signal may follow at once */
    if (rc == 0)
        rc = listen_all(s);
    while (rc == 0 && !signals_stop())
        tc_loop_turn(s->loop, -1);
    signals_release();
    tc_file_watch_free(watch);
    return rc;
}

int cmd_serve_xds(int argc, char **argv)
{
    struct serve s = {.lrs_interval_ms = 10000};
    int rc = parse_args(&s, argc, argv);
    if (rc == 0 && s.check)
        rc = strict_init(&s.strict, NAME);
    if (rc == 0) {
        s.loop = tc_loop_new(NULL);
        rc = s.loop ? run(&s) : cli_fail(NAME, "cannot make an event loop: %m");
    }
    if (s.server)
        tc_server_free(s.server);
    tc_control_plane_free(s.cp);
    tc_lrs_free(s.lrs);
    tc_csds_free(s.csds);
    strict_fini(&s.strict);
    if (s.loop)
        tc_loop_free(s.loop);
    for (size_t i = 0; i < s.sources.len; i++) {
        tc_free(s.sources.data[i].node_id);
        tc_vec_fini(&s.sources.data[i].paths);
    }
    tc_vec_fini(&s.sources);
    tc_vec_fini(&s.paths);
    tc_vec_fini(&s.listen);
    tc_vec_fini(&s.lrs_clusters);
    return rc < 0 ? CLI_OK : rc;
}
