/* torc simulate: reads its options into struct sim_opts.
 *
 * Endpoints come from -e and --endpoints, which add theirs at once, or from --backends, or from --resources. Changes
 * name endpoints; --add brings more. finish() runs after the last option: it adds the endpoints of --backends or
 * --resources, reads the changes, sorts them by time, and checks each but --slow against the state that the changes
 * before it leave (a dead backend cannot be killed). check_sizes() comes last: nothing is allocated for clients and
 * keys yet.
 *
 * The functions that read and check options return 0, or an exit status with the error printed. The texts of options
 * are borrowed from argv. */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/builtin.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli.h"
#include "cli_options.h"
#include "endpoints.h"
#include "lb/registry.h"
#include "simulate.h"

#define NAME SIMULATE_COMMAND

/* clang-format off */
static const char help[] =
    "usage: torc simulate [options]\n\n"
    "Shows how clients would spread their calls over backends: the real LB policies in virtual time. Nothing is\n"
    "connected. The same options and the same seed give the same output.\n\n"
    "  -e, --endpoint ADDR[=WEIGHT]  a backend, repeatable: ip:port, [v6]:port, unix:path\n"
    "      --endpoints FILE          the same from a file (-: standard input), one a line; '#' begins a comment line\n"
    "      --backends N              instead, N backends of made-up addresses: 10.0.0.1:80, 10.0.0.2:80, ...\n"
    "      --resources PATH          instead, those of a cluster in xDS resources (files as serve-xds takes them, or\n"
    "                                folders), repeatable, with its LB policy\n"
    "      --cluster NAME            of this cluster (needed)\n"
    "      --priority N              and this priority (0)\n"
    "      --policy NAME[=CONFIG]    an LB policy, with its config as JSON, as a service config has it (round_robin);\n"
    "                                repeatable: policies are compared, with the same calls\n\n"
    "      --clients N               each with a channel of its own (100)\n"
    "      --rate R                  calls a second of each client (10)\n"
    "      --even                    calls come at even intervals; without it by chance (a Poisson process)\n"
    "      --duration T              for so long (60s)\n"
    "      --warm-up T               after this time, which counts nothing (0s)\n"
    "      --keys N                  each call has one of the keys key-0, key-1, ..., which is hashed (10000)\n"
    "      --zipf S                  key i is drawn in proportion to 1/(i+1)^S; without it all alike\n"
    "      --hot PERCENT[:N]         so many calls draw from the first N keys (1), not from all\n"
    "      --service T               a backend takes so long for a call (10ms)\n"
    "      --capacity N              and serves so many at a time, others wait; without it any number\n"
    "      --connect T               a connection takes so long (1ms)\n\n"
    "Changes, repeatable; ADDR is a backend, T counts from the end of the warm-up:\n"
    "      --kill ADDR@T             the backend dies, with the calls that it has; connections are refused\n"
    "      --restore ADDR@T          it lives again\n"
    "      --add ADDR[=WEIGHT]@T     the backend joins the clients' list of endpoints (not with --resources)\n"
    "      --remove ADDR@T           it leaves the list\n"
    "      --slow ADDR=F[@T]         its calls take F times as long; without T from the start\n\n"
    "      --seed N                  of all chance (1)\n"
    "      --memory SIZE             refuse what may take more, and end what does (half of this machine's)\n"
    "      --calls FILE              write each call: microseconds,client,key,backend\n"
    "      --svg FILE                also a picture of the calls by backend (-: standard output, and nothing else)\n"
    "  -o, --output text|json|csv    form of the output (text)\n\n"
    "Examples:\n"
    "  torc simulate --backends 40 --policy ring_hash --zipf 1.1 --kill 10.0.0.7:80@20s\n"
    "  torc simulate --backends 200 --policy ring_hash --policy maglev --policy round_robin --svg load.svg\n"
    "  torc simulate --backends 20 --policy 'ring_hash={\"hashBalanceFactor\": 125}' --hot 30 --capacity 60\n"
    "  torc simulate --resources mesh.yaml --cluster orders --clients 1000 -o json\n";
/* clang-format on */

enum {
    OPT_ENDPOINTS = 256,
    OPT_BACKENDS,
    OPT_RESOURCES,
    OPT_CLUSTER,
    OPT_PRIORITY,
    OPT_POLICY,
    OPT_CLIENTS,
    OPT_RATE,
    OPT_EVEN,
    OPT_DURATION,
    OPT_WARM_UP,
    OPT_KEYS,
    OPT_ZIPF,
    OPT_HOT,
    OPT_SERVICE,
    OPT_CAPACITY,
    OPT_CONNECT,
    OPT_SEED,
    OPT_MEMORY,
    OPT_CALLS,
    OPT_SVG,
    OPT_KILL, /* from here in the order of enum sim_change_kind */
    OPT_RESTORE,
    OPT_ADD,
    OPT_REMOVE,
    OPT_SLOW,
};

static const struct option options[] = {
    {"endpoint", required_argument, NULL, 'e'},
    {"endpoints", required_argument, NULL, OPT_ENDPOINTS},
    {"backends", required_argument, NULL, OPT_BACKENDS},
    {"resources", required_argument, NULL, OPT_RESOURCES},
    {"cluster", required_argument, NULL, OPT_CLUSTER},
    {"priority", required_argument, NULL, OPT_PRIORITY},
    {"policy", required_argument, NULL, OPT_POLICY},
    {"clients", required_argument, NULL, OPT_CLIENTS},
    {"rate", required_argument, NULL, OPT_RATE},
    {"even", no_argument, NULL, OPT_EVEN},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"zipf", required_argument, NULL, OPT_ZIPF},
    {"hot", required_argument, NULL, OPT_HOT},
    {"service", required_argument, NULL, OPT_SERVICE},
    {"capacity", required_argument, NULL, OPT_CAPACITY},
    {"connect", required_argument, NULL, OPT_CONNECT},
    {"kill", required_argument, NULL, OPT_KILL},
    {"restore", required_argument, NULL, OPT_RESTORE},
    {"add", required_argument, NULL, OPT_ADD},
    {"remove", required_argument, NULL, OPT_REMOVE},
    {"slow", required_argument, NULL, OPT_SLOW},
    {"seed", required_argument, NULL, OPT_SEED},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"calls", required_argument, NULL, OPT_CALLS},
    {"svg", required_argument, NULL, OPT_SVG},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

const char *const sim_change_names[SIM_CHANGES] = {"kill", "restore", "add", "remove", "slow"};

/* Bounds of options, whatever the memory: MOST_BACKENDS of --backends, MOST_HOURS of each time; MOST_CALLS bounds the
 * run. The *_BYTES estimate the memory: PAIR_BYTES is for a client and one backend, with the policy that takes most
 * (weighted_round_robin). */
enum { MOST_CLIENTS = 1000000, MOST_BACKENDS = 100000, MOST_KEYS = 10000000, MOST_HOURS = 24 };
#define MOST_CALLS 1e10
#define PAIR_BYTES 1024.0
#define CLIENT_BYTES 4096.0
#define KEY_BYTES 32.0

void sim_opts_fini(struct sim_opts *o)
{
    for (size_t i = 0; i < o->endpoints.len; i++) {
        tc_endpoint_unref(o->endpoints.data[i].endpoint);
        tc_free(o->endpoints.data[i].name);
    }
    for (size_t i = 0; i < o->policies.len; i++)
        tc_lb_config_unref(o->policies.data[i].config);
    tc_endpoints_unref(o->tree);
    tc_vec_fini(&o->endpoints);
    tc_vec_fini(&o->policies);
    tc_vec_fini(&o->changes);
    tc_vec_fini(&o->resources);
}

/* --- endpoints --- */

/* Returns the index of the backend whose name, its first address, is this text; or the number of backends if there is
 * none. */
static size_t find_endpoint(const struct sim_opts *o, struct tc_slice name)
{
    size_t i = 0;
    while (i < o->endpoints.len && !tc_slice_eq_str(name, o->endpoints.data[i].name))
        i++;
    return i;
}

/* Takes ownership of the reference. */
static void push_endpoint(struct sim_opts *o, struct tc_endpoint *e)
{
    *tc_vec_push(&o->endpoints) = (struct sim_endpoint){.endpoint = e, .name = tc_addr_text(&e->addrs[0])};
}

/* Adds ADDR[=WEIGHT]. */
static int add_endpoint(struct sim_opts *o, const char *option, struct tc_slice text)
{
    struct tc_slice key;
    uint64_t weight;
    bool weighted;
    struct tc_addr addr;
    int rc = endpoints_parse(NAME, option, text, &key, &weight, &weighted);
    if (rc)
        return rc;
    if (tc_addr_parse(&addr, key) != 0)
        return cli_usage(NAME, "%s: '%.*s' is not an address such as 10.0.0.1:80", option, (int)key.len, key.data);
    struct tc_endpoint *e = tc_endpoint_new(&addr, 1);
    tc_addr_fini(&addr);
    e->weight = weight;
    e->lb_weight = (uint32_t)TC_MIN(weight, UINT32_MAX);
    push_endpoint(o, e);
    return 0;
}

struct line_reader {
    struct sim_opts *o;
    const char *path;
};

static int on_line(void *arg, struct tc_slice line)
{
    const struct line_reader *r = arg;
    return add_endpoint(r->o, r->path, line);
}

static int read_lines(struct sim_opts *o, const char *path)
{
    struct line_reader r = {o, path};
    size_t before = o->endpoints.len;
    int rc = endpoints_each_line(NAME, path, on_line, &r);
    if (rc == 0 && o->endpoints.len == before)
        rc = cli_usage(NAME, "--endpoints %s: the file has no endpoints", path);
    return rc;
}

/* Adds each endpoint of a cluster's list once: localities may share an endpoint. */
static void take_listed(struct sim_opts *o, const struct tc_endpoints *list)
{
    struct tc_endpoint_map seen;
    tc_endpoint_map_init(&seen, list->n);
    for (size_t i = 0; i < list->n; i++)
        if (tc_endpoint_map_add(&seen, list->at[i], (uint32_t)i) == i)
            push_endpoint(o, tc_endpoint_ref(list->at[i]));
    tc_endpoint_map_fini(&seen);
}

static int read_resources(struct sim_opts *o)
{
    struct tc_lb_config *config;
    int rc =
        endpoints_of_cluster(NAME, o->resources.data, o->resources.len, o->cluster, o->priority, &config, &o->tree);
    if (rc)
        return rc;
    take_listed(o, o->tree);
    if (o->policies.len == 0)
        *tc_vec_push(&o->policies) = (struct sim_policy){config->factory->name, tc_lb_config_ref(config)};
    tc_lb_config_unref(config);
    return 0;
}

static int make_up_backends(struct sim_opts *o)
{
    char text[32];
    for (uint64_t i = 1; i <= o->backends; i++) {
        int len = snprintf(text, sizeof(text), "10.%u.%u.%u:80", (unsigned)(i >> 16), (unsigned)(i >> 8 & 255),
                           (unsigned)(i & 255));
        add_endpoint(o, "--backends", tc_slice_of(text, (size_t)len));
    }
    return 0;
}

static int read_endpoints(struct sim_opts *o)
{
    bool read = o->resources.len > 0;
    if ((o->endpoints.len > 0) + (o->backends > 0) + read > 1)
        return cli_usage(NAME, "give endpoints, --backends or --resources, one of them");
    if (o->endpoints.len == 0 && !o->backends && !read)
        return cli_usage(NAME, "no endpoints: give -e ADDR, --endpoints FILE, --backends N, or --resources PATH "
                               "--cluster NAME");
    if (read != (o->cluster != NULL))
        return cli_usage(NAME, "--resources and --cluster go together");
    if (o->priority && !read)
        return cli_usage(NAME, "--priority goes with --resources and --cluster");
    return read ? read_resources(o) : make_up_backends(o);
}

/* Makes `tree` of all endpoints, unless --resources gave it. An endpoint that is given twice is a usage error. */
static int make_list(struct sim_opts *o)
{
    size_t n = o->endpoints.len;
    struct tc_endpoint_map seen;
    int rc = 0;
    if (o->tree)
        return 0;
    tc_endpoint_map_init(&seen, n);
    struct tc_endpoint **at = tc_reallocarray(NULL, n, sizeof(struct tc_endpoint *));
    for (size_t i = 0; i < n; i++) {
        at[i] = tc_endpoint_ref(o->endpoints.data[i].endpoint);
        if (rc == 0 && tc_endpoint_map_add(&seen, at[i], (uint32_t)i) != i)
            rc = cli_usage(NAME, "backend '%s' is given twice", o->endpoints.data[i].name);
    }
    tc_endpoint_map_fini(&seen);
    o->tree = tc_endpoints_take(at, n);
    return rc;
}

/* --- policies --- */

static int no_policy(const struct tc_lb_registry *registry, struct tc_slice name)
{
    struct cli_nearest near = {.text = name};
    for (size_t i = 0; i < registry->factories.len; i++)
        cli_nearest_try(&near, registry->factories.data[i]->name);
    return cli_usage(NAME, "--policy: there is no LB policy '%.*s'%s%s%s", (int)name.len, name.data,
                     near.name ? ": did you mean " : "", near.name ? near.name : "", near.name ? "?" : "");
}

/* Parses NAME[=CONFIG]. */
static int add_policy(struct sim_opts *o, const char *text)
{
    const char *config = strchr(text, '=');
    struct tc_slice name = tc_slice_of(text, config ? (size_t)(config - text) : strlen(text));
    const struct tc_lb_registry *registry = tc_builtin_policies();
    struct tc_validation_errors errors = {0};
    struct tc_lb_config *parsed = NULL;
    char *why = NULL;
    int rc = 0;
    if (!tc_lb_registry_find(registry, name))
        return no_policy(registry, name);
    json_t *json = tc_json_parse(tc_slice_str(config ? config + 1 : "{}"), &why);
    if (!json)
        rc = cli_usage(NAME, "--policy %s: the config is not JSON: %s", text, why);
    json_t *list = json_array(), *item = json_object();
    json_array_append_new(list, item);
    if (json) {
        char *key = tc_slice_dup(name);
        json_object_set_new(item, key, json);
        tc_free(key);
    }
    if (rc == 0 && !(parsed = tc_lb_parse_list(registry, list, 0, &errors)))
        rc = cli_usage(NAME, "--policy %s: %s", text, tc_validation_text(&errors));
    if (rc == 0)
        *tc_vec_push(&o->policies) = (struct sim_policy){text, parsed};
    json_decref(list);
    tc_validation_fini(&errors);
    tc_free(why);
    return rc;
}

/* --- changes --- */

static int bad_change(const struct sim_change *c, const char *why)
{
    return cli_usage(NAME, "--%s %s: %s", sim_change_names[c->kind], c->text, why);
}

static void add_change(struct sim_opts *o, enum sim_change_kind kind, const char *text)
{
    size_t place = o->changes.len;
    *tc_vec_push(&o->changes) = (struct sim_change){.kind = kind, .text = text, .place = place};
}

/* Adds the backend of --add, absent at the start. A known address adds none, and must have the same weight. Stores the
 * backend's index in c->backend. */
static int bring_backend(struct sim_opts *o, struct sim_change *c, struct tc_slice text)
{
    size_t n = o->endpoints.len;
    if (o->resources.len)
        return bad_change(c, "there is no adding to --resources");
    int rc = add_endpoint(o, "--add", text);
    if (rc)
        return rc;
    struct sim_endpoint *e = &o->endpoints.data[n];
    e->absent = true;
    c->backend = (uint32_t)find_endpoint(o, tc_slice_str(e->name));
    if (c->backend == n)
        return 0;
    bool other = e->endpoint->weight != o->endpoints.data[c->backend].endpoint->weight;
    tc_endpoint_unref(e->endpoint);
    tc_free(e->name);
    o->endpoints.len = n;
    return other ? bad_change(c, "a backend that comes again has its old weight") : 0;
}

/* Parses ADDR[=X][@T]. X: a weight for --add, a factor for --slow. */
static int read_change(struct sim_opts *o, struct sim_change *c)
{
    struct tc_slice text = tc_slice_str(c->text);
    const char *at = strrchr(c->text, '@');
    c->from_start = c->kind == SIM_SLOW && !at;
    if (!at && !c->from_start)
        return bad_change(c, "without a moment: end it with @T, such as @10s");
    if (at && tc_parse_duration_ns(tc_slice_str(at + 1), &c->at_ns) != 0)
        return bad_change(c, "what follows the @ is not a duration such as 250ms, 10s or 2m");
    if (c->at_ns >= o->duration_ns)
        return bad_change(c, "the run ends before; see --duration");
    text.len = at ? (size_t)(at - c->text) : text.len;
    if (c->kind == SIM_ADD)
        return bring_backend(o, c, text);
    if (c->kind == SIM_SLOW) {
        size_t eq = text.len;
        while (eq > 0 && text.data[eq - 1] != '=')
            eq--;
        if (eq == 0 || tc_parse_double(tc_slice_of(text.data + eq, text.len - eq), &c->factor) != 0 ||
            !(c->factor >= 0.001 && c->factor <= 1e6))
            return bad_change(c, "it needs =F, a factor from 0.001 to 1000000");
        text.len = eq - 1;
    }
    c->backend = (uint32_t)find_endpoint(o, text);
    return c->backend < o->endpoints.len ? 0 : bad_change(c, "there is no such backend");
}

/* Changes without a moment come first. Changes of one moment keep their order in the command line. */
static int by_moment(const void *pa, const void *pb)
{
    const struct sim_change *a = pa, *b = pb;
    if (a->from_start != b->from_start)
        return a->from_start ? -1 : 1;
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns ? -1 : 1 : a->place < b->place ? -1 : 1;
}

/* Checks each change but --slow, in order of time, against the state of its backend by then. */
static int check_changes(const struct sim_opts *o)
{
    bool *absent = tc_calloc(o->endpoints.len, sizeof(*absent)), *dead = tc_calloc(o->endpoints.len, sizeof(*dead));
    int rc = 0;
    for (size_t i = 0; i < o->endpoints.len; i++)
        absent[i] = o->endpoints.data[i].absent;
    for (size_t i = 0; i < o->changes.len && rc == 0; i++) {
        const struct sim_change *c = &o->changes.data[i];
        bool *state = c->kind == SIM_KILL || c->kind == SIM_RESTORE ? &dead[c->backend] : &absent[c->backend];
        if (c->kind == SIM_SLOW)
            continue;
        if (c->kind == SIM_KILL || c->kind == SIM_REMOVE)
            rc = *state ? bad_change(c, c->kind == SIM_KILL ? "it is dead by then" : "it is not in the list by then")
                        : 0;
        else
            rc = *state ? 0 : bad_change(c, c->kind == SIM_ADD ? "it is in the list by then" : "it lives by then");
        *state = !*state;
    }
    tc_free(absent);
    tc_free(dead);
    return rc;
}

static int read_changes(struct sim_opts *o)
{
    int rc = 0;
    for (int adds = 1; adds >= 0; adds--) /* --add first: other changes may name its backend */
        for (size_t i = 0; i < o->changes.len && rc == 0; i++)
            if ((o->changes.data[i].kind == SIM_ADD) == adds)
                rc = read_change(o, &o->changes.data[i]);
    if (rc || o->changes.len == 0)
        return rc;
    qsort(o->changes.data, o->changes.len, sizeof(o->changes.data[0]), by_moment);
    return check_changes(o);
}

/* --- options --- */

static int parse_double(const char *option, const char *text, double most, double *out)
{
    double v;
    if (tc_parse_double(tc_slice_str(text), &v) != 0 || !(v >= 0 && v <= most))
        return cli_usage(NAME, "%s: '%s' is not a number from 0 to %g", option, text, most);
    *out = v;
    return 0;
}

/* Parses PERCENT[:N]. */
static int parse_hot(struct sim_opts *o, const char *text)
{
    const char *colon = strchr(text, ':');
    struct tc_slice percent = tc_slice_of(text, colon ? (size_t)(colon - text) : strlen(text));
    double v;
    if (tc_parse_double(percent, &v) != 0 || !(v >= 0 && v <= 100))
        return cli_usage(NAME, "--hot: '%s' does not begin with a number from 0 to 100", text);
    o->hot = v / 100;
    return colon ? cli_u64(NAME, "--hot", colon + 1, 1, MOST_KEYS, &o->hot_keys) : 0;
}

static int parse_time(const char *option, const char *text, uint64_t *out)
{
    int rc = cli_duration_ns(NAME, option, text, out);
    if (rc == 0 && *out > MOST_HOURS * 3600 * TC_NS_PER_S)
        rc = cli_usage(NAME, "%s: '%s' is too long: at most %dh", option, text, MOST_HOURS);
    return rc;
}

static int parse_form(struct sim_opts *o, const char *text)
{
    static const char *const forms[] = {"text", "json", "csv"}; /* in the order of enum sim_form */
    for (size_t i = 0; i < TC_ARRAY_LEN(forms); i++) {
        if (strcmp(text, forms[i]) == 0) {
            o->output = (enum sim_form)i;
            return 0;
        }
    }
    return cli_usage(NAME, "-o: '%s' is neither text, json nor csv", text);
}

static int parse_load(struct sim_opts *o, int c, const char *value)
{
    switch (c) {
    case OPT_CLIENTS:
        return cli_u64(NAME, "--clients", value, 1, MOST_CLIENTS, &o->clients);
    case OPT_RATE:
        return cli_rate(NAME, "--rate", value, &o->rate);
    case OPT_EVEN:
        o->even = true;
        return 0;
    case OPT_DURATION:
        return parse_time("--duration", value, &o->duration_ns);
    case OPT_WARM_UP:
        return parse_time("--warm-up", value, &o->warm_up_ns);
    case OPT_KEYS:
        return cli_u64(NAME, "--keys", value, 1, MOST_KEYS, &o->keys);
    case OPT_ZIPF:
        return parse_double("--zipf", value, 10, &o->zipf);
    case OPT_HOT:
        return parse_hot(o, value);
    case OPT_SERVICE:
        return parse_time("--service", value, &o->service_ns);
    case OPT_CAPACITY:
        return cli_u64(NAME, "--capacity", value, 1, UINT32_MAX, &o->capacity);
    default:
        return parse_time("--connect", value, &o->connect_ns);
    }
}

static int parse_option(struct sim_opts *o, int c, const char *value)
{
    switch (c) {
    case 'e':
        return add_endpoint(o, "--endpoint", tc_slice_str(value));
    case OPT_ENDPOINTS:
        return read_lines(o, value);
    case OPT_BACKENDS:
        return cli_u64(NAME, "--backends", value, 1, MOST_BACKENDS, &o->backends);
    case OPT_RESOURCES:
        *tc_vec_push(&o->resources) = value;
        return cli_path(NAME, "--resources", value);
    case OPT_CLUSTER:
        o->cluster = value;
        return 0;
    case OPT_PRIORITY:
        return cli_u64(NAME, "--priority", value, 0, UINT32_MAX, &o->priority);
    case OPT_POLICY:
        return add_policy(o, value);
    case OPT_SEED:
        return cli_u64(NAME, "--seed", value, 0, UINT64_MAX, &o->seed);
    case OPT_MEMORY:
        return cli_size(NAME, "--memory", value, &o->memory);
    case OPT_CALLS:
        o->calls = value;
        return strcmp(value, "-") == 0 ? cli_usage(NAME, "--calls writes a file, not standard output")
                                       : cli_path(NAME, "--calls", value);
    case OPT_SVG:
        o->svg = value;
        return cli_path(NAME, "--svg", value);
    case 'o':
        return parse_form(o, value);
    default:
        if (c < OPT_KILL)
            return parse_load(o, c, value);
        add_change(o, (enum sim_change_kind)(c - OPT_KILL), value);
        return 0;
    }
}

/* Refuses more hot keys than keys, too many calls, and a run whose estimated memory is above --memory. */
static int check_sizes(const struct sim_opts *o)
{
    double seconds = (double)(o->duration_ns + o->warm_up_ns) / 1e9;
    double pairs = (double)o->clients * (double)o->endpoints.len, calls = (double)o->clients * o->rate * seconds;
    double bytes = pairs * PAIR_BYTES + (double)o->clients * CLIENT_BYTES + (double)o->keys * KEY_BYTES;
    if (o->hot_keys > o->keys)
        return cli_usage(NAME, "--hot: there are only %llu keys", (unsigned long long)o->keys);
    if (calls > MOST_CALLS)
        return cli_usage(NAME,
                         "--clients x --rate x (--warm-up + --duration) are %.0f calls; at most %.0f can be simulated",
                         calls, MOST_CALLS);
    if (bytes > (double)o->memory)
        return cli_usage(
            NAME,
            "--clients %llu with %zu backends and --keys %llu may take %.0f MB of memory, and %.0f MB may be "
            "taken; see --memory",
            (unsigned long long)o->clients, o->endpoints.len, (unsigned long long)o->keys, bytes / 1e6,
            (double)o->memory / 1e6);
    return 0;
}

static int finish(struct sim_opts *o)
{
    if (o->duration_ns == 0)
        return cli_usage(NAME, "--duration must be more than 0");
    int rc = read_endpoints(o);
    if (rc == 0)
        rc = read_changes(o);
    if (rc == 0)
        rc = make_list(o);
    if (rc == 0 && o->policies.len == 0)
        rc = add_policy(o, "round_robin");
    if (rc == 0 && o->calls && o->policies.len > 1)
        rc = cli_usage(NAME, "--calls goes with one --policy: its lines do not name one");
    return rc ? rc : check_sizes(o);
}

int sim_parse(int argc, char **argv, struct sim_opts *o)
{
    int c, rc;
    *o = (struct sim_opts){
        .clients = 100,
        .rate = 10,
        .keys = 10000,
        .hot_keys = 1,
        .seed = 1,
        .duration_ns = 60 * TC_NS_PER_S,
        .service_ns = 10 * TC_NS_PER_MS,
        .connect_ns = TC_NS_PER_MS,
        .memory = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE),
    };
    if ((rc = cli_long_options(NAME, argc, argv, ":e:o:h", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":e:o:h", options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if ((rc = parse_option(o, c, optarg)) != 0)
            return rc;
    }
    if (optind < argc)
        return cli_usage(NAME, "unexpected argument '%s'; endpoints are given with -e", argv[optind]);
    return finish(o);
}
