/* torc ring: reads its options into struct ring_opts.
 *
 * Endpoints come from -e, --endpoints or --resources. Changes (--add, --remove, --reweight) are collected in the order
 * given and applied by change.c. finish() checks that the options fit together, reads the resources, and fills in
 * defaults.
 *
 * Endpoints of -e and --endpoints that have the same key become one, as endpoints with the same addresses become one in
 * the policy.
 *
 * Endpoints and changes hold copies of their texts, which ring_opts_fini frees. Other texts are borrowed from argv.
 * Functions that read options return 0, or an exit status with the error printed. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "channel/options.h"
#include "cli.h"
#include "cli_options.h"
#include "endpoints.h"
#include "ring_command.h"

static const char help[] =
    "usage: torc ring [options]\n\n"
    "Shows the hash ring that ring_hash builds of these endpoints: who owns how much of it, where a key goes, what a\n"
    "change moves. Everything is computed here, from the same code as the policy's.\n\n"
    "  -e, --endpoint KEY[=WEIGHT]  an endpoint, repeatable: its hash_key or its address as text (ip:port, "
    "[v6]:port);\n"
    "                               one given twice counts with both weights\n"
    "      --endpoints FILE         the same from a file (-: standard input), one a line; '#' begins a comment line\n"
    "      --resources PATH         instead, the endpoints of a cluster in xDS resources (files as serve-xds "
    "takes\n"
    "                               them, or folders), repeatable: weights of localities and endpoints, hash keys, "
    "health\n"
    "                               and the ring's sizes are those that a client takes\n"
    "      --cluster NAME           of this cluster (needed)\n"
    "      --priority N             and this priority (0)\n"
    "      --min N                  smallest number of entries (1024)\n"
    "      --max N                  largest number of entries (4096, or --min when that is larger)\n"
    "      --cap N                  the client's own limit on both (GRPC_RING_HASH_CAP's, or 4096; at most 8388608)\n"
    "      --maglev                 instead of a ring, the Maglev table that the policy maglev builds, as Envoy does\n"
    "      --table-size N           of so many slots, a prime up to 5000011 (65537)\n\n"
    "Without one of the following: a table of the endpoints and what each owns.\n"
    "      --dump                   one line per entry in ring order: hash and endpoint\n"
    "      --key K                  where the key goes, repeatable (-: keys from standard input, one a line)\n"
    "      --walk K                 the order in which endpoints are tried for the key, repeatable\n"
    "      --add KEY[=WEIGHT]       what moves when this endpoint comes,\n"
    "      --remove KEY             goes,\n"
    "      --reweight KEY=WEIGHT    or changes its weight; repeatable, applied in the order given\n\n"
    "      --svg FILE               also a picture of the ring (-: standard output, and nothing else)\n"
    "  -o text|json                 form of the output (text)\n\n"
    "Examples:\n"
    "  torc ring -e 10.0.0.1:80 -e 10.0.0.2:80 -e 10.0.0.3:80=2\n"
    "  torc ring --resources mesh.yaml --cluster orders --key user-17\n"
    "  torc ring --endpoints backends.txt --key user-17 --key user-18\n"
    "  torc ring -e a -e b -e c --remove b\n"
    "  torc ring -e 127.0.0.1:90 -e 127.0.0.1:91 --min 12 --dump\n";

enum {
    OPT_ENDPOINTS = 256,
    OPT_RESOURCES,
    OPT_CLUSTER,
    OPT_PRIORITY,
    OPT_MIN,
    OPT_MAX,
    OPT_CAP,
    OPT_MAGLEV,
    OPT_TABLE_SIZE,
    OPT_DUMP,
    OPT_KEY,
    OPT_WALK,
    OPT_ADD,
    OPT_REMOVE,
    OPT_REWEIGHT,
    OPT_SVG
};

static const struct option options[] = {
    {"endpoint", required_argument, NULL, 'e'},
    {"endpoints", required_argument, NULL, OPT_ENDPOINTS},
    {"resources", required_argument, NULL, OPT_RESOURCES},
    {"cluster", required_argument, NULL, OPT_CLUSTER},
    {"priority", required_argument, NULL, OPT_PRIORITY},
    {"min", required_argument, NULL, OPT_MIN},
    {"max", required_argument, NULL, OPT_MAX},
    {"cap", required_argument, NULL, OPT_CAP},
    {"maglev", no_argument, NULL, OPT_MAGLEV},
    {"table-size", required_argument, NULL, OPT_TABLE_SIZE},
    {"dump", no_argument, NULL, OPT_DUMP},
    {"key", required_argument, NULL, OPT_KEY},
    {"walk", required_argument, NULL, OPT_WALK},
    {"add", required_argument, NULL, OPT_ADD},
    {"remove", required_argument, NULL, OPT_REMOVE},
    {"reweight", required_argument, NULL, OPT_REWEIGHT},
    {"svg", required_argument, NULL, OPT_SVG},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

void ring_list_fini(struct ring_list *l)
{
    for (size_t i = 0; i < l->at.len; i++) {
        tc_free(l->at.data[i].key);
        tc_free(l->at.data[i].address);
        tc_free(l->at.data[i].locality);
    }
    tc_vec_fini(&l->at);
}

void ring_opts_fini(struct ring_opts *o)
{
    ring_list_fini(&o->endpoints);
    tc_vec_fini(&o->keys);
    tc_vec_fini(&o->resources);
    for (size_t i = 0; i < o->changes.len; i++)
        tc_free(o->changes.data[i].endpoint.key);
    tc_vec_fini(&o->changes);
}

size_t ring_list_find(const struct ring_list *l, const char *key)
{
    size_t i = 0;
    while (i < l->at.len && strcmp(l->at.data[i].key, key) != 0)
        i++;
    return i;
}

/* Parses KEY[=WEIGHT]. The caller frees out->key. */
static int parse_endpoint(const char *option, struct tc_slice text, struct ring_endpoint *out, bool *weighted)
{
    struct tc_slice key;
    uint64_t weight;
    int rc = endpoints_parse(RING_COMMAND, option, text, &key, &weight, weighted);
    if (rc == 0)
        *out = (struct ring_endpoint){.key = tc_slice_dup(key), .weight = weight};
    return rc;
}

static int add_endpoint(struct ring_opts *o, const char *option, struct tc_slice text)
{
    struct ring_endpoint e;
    bool weighted;
    int rc = parse_endpoint(option, text, &e, &weighted);
    if (rc == 0)
        *tc_vec_push(&o->endpoints.at) = e;
    return rc;
}

static int on_line(void *arg, struct tc_slice line)
{
    struct ring_opts *o = arg;
    return add_endpoint(o, o->endpoints_file, line);
}

static int parse_change(struct ring_opts *o, enum ring_change_kind kind, const char *option, const char *text)
{
    struct ring_change c = {.kind = kind};
    bool weighted = false;
    int rc = 0;
    if (kind == RING_REMOVE)
        c.endpoint.key = tc_strdup(text);
    else
        rc = parse_endpoint(option, tc_slice_str(text), &c.endpoint, &weighted);
    if (rc)
        return rc;
    *tc_vec_push(&o->changes) = c;
    if (kind == RING_REWEIGHT && !weighted)
        return cli_usage(RING_COMMAND, "--reweight: '%s' has no weight: KEY=WEIGHT", text);
    return 0;
}

static int by_key(const void *pa, const void *pb)
{
    const struct ring_endpoint *const *a = pa, *const *b = pb;
    int c = strcmp((*a)->key, (*b)->key);
    return c ? c : *a < *b ? -1 : *a > *b;
}

/* Merges endpoints of the same key into the first, whose weight becomes the sum (at most UINT64_MAX). */
static void merge_repeated(struct ring_list *l)
{
    size_t n = l->at.len, kept = 0;
    struct ring_endpoint **sorted = tc_reallocarray(NULL, n + 1, sizeof(struct ring_endpoint *));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &l->at.data[i];
    qsort(sorted, n, sizeof(struct ring_endpoint *), by_key);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (i == first || strcmp(sorted[i]->key, sorted[first]->key) != 0) {
            first = i;
            continue;
        }
        uint64_t *sum = &sorted[first]->weight, more = sorted[i]->weight;
        *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
        sorted[i]->weight = 0; /* dropped below */
    }
    for (size_t i = 0; i < n; i++) {
        if (l->at.data[i].weight)
            l->at.data[kept++] = l->at.data[i];
        else
            tc_free(l->at.data[i].key);
    }
    l->at.len = kept;
    tc_free(sorted);
}

static int set_mode(struct ring_opts *o, enum ring_mode mode)
{
    if (o->mode != RING_TABLE && o->mode != mode)
        return cli_usage(RING_COMMAND, "--dump, --key, --walk and changes do not go together: one kind at a time");
    o->mode = mode;
    return 0;
}

static int parse_option(struct ring_opts *o, int c, const char *value)
{
    int rc = 0;
    switch (c) {
    case 'e':
        return add_endpoint(o, "--endpoint", tc_slice_str(value));
    case OPT_ENDPOINTS:
        o->endpoints_file = value;
        return endpoints_each_line(RING_COMMAND, value, on_line, o);
    case OPT_RESOURCES:
        *tc_vec_push(&o->resources) = value;
        return cli_path(RING_COMMAND, "--resources", value);
    case OPT_CLUSTER:
        o->cluster = value;
        return 0;
    case OPT_PRIORITY:
        o->priority_given = true;
        return cli_u64(RING_COMMAND, "--priority", value, 0, UINT32_MAX, &o->priority);
    case OPT_MIN:
        return cli_u64(RING_COMMAND, "--min", value, 1, TC_RING_SIZE_MAX, &o->min);
    case OPT_MAX:
        return cli_u64(RING_COMMAND, "--max", value, 1, TC_RING_SIZE_MAX, &o->max);
    case OPT_CAP:
        return cli_u64(RING_COMMAND, "--cap", value, 1, TC_RING_SIZE_MAX, &o->cap);
    case OPT_MAGLEV:
        o->maglev = true;
        return 0;
    case OPT_TABLE_SIZE:
        if ((rc = cli_u64(RING_COMMAND, "--table-size", value, 2, TC_MAGLEV_SIZE_MAX, &o->table_size)) == 0 &&
            !tc_maglev_size_valid(o->table_size))
            rc = cli_usage(RING_COMMAND, "--table-size: '%s' is not a prime", value);
        return rc;
    case OPT_DUMP:
        return set_mode(o, RING_DUMP);
    case OPT_KEY:
    case OPT_WALK:
        if ((rc = set_mode(o, c == OPT_KEY ? RING_KEYS : RING_WALK)) == 0)
            *tc_vec_push(&o->keys) = value;
        return rc;
    case OPT_ADD:
        return (rc = set_mode(o, RING_CHANGE)) ? rc : parse_change(o, RING_ADD, "--add", value);
    case OPT_REMOVE:
        return (rc = set_mode(o, RING_CHANGE)) ? rc : parse_change(o, RING_REMOVE, "--remove", value);
    case OPT_REWEIGHT:
        return (rc = set_mode(o, RING_CHANGE)) ? rc : parse_change(o, RING_REWEIGHT, "--reweight", value);
    case OPT_SVG:
        o->svg = value;
        return cli_path(RING_COMMAND, "--svg", value);
    default:
        return cli_output(RING_COMMAND, value, &o->json);
    }
}

static int finish(struct ring_opts *o)
{
    bool given = o->endpoints.at.len > 0, read = o->resources.len > 0;
    if (given && read)
        return cli_usage(RING_COMMAND, "give endpoints or --resources, not both");
    if (!given && !read && o->endpoints_file)
        return cli_usage(RING_COMMAND, "--endpoints %s: the file has no endpoints", o->endpoints_file);
    if (!given && !read)
        return cli_usage(RING_COMMAND,
                         "no endpoints: give -e KEY, --endpoints FILE, or --resources PATH --cluster NAME");
    if (read != (o->cluster != NULL))
        return cli_usage(RING_COMMAND, "--resources and --cluster go together");
    if (o->priority_given && !read)
        return cli_usage(RING_COMMAND, "--priority goes with --resources and --cluster");
    if (o->maglev && (o->min || o->max || o->cap))
        return cli_usage(RING_COMMAND, "--min, --max and --cap are for rings; --maglev has --table-size");
    merge_repeated(&o->endpoints);
    int rc = read ? ring_read_resources(o) : 0;
    if (rc)
        return rc;
    if (o->table_size && !o->maglev)
        return cli_usage(RING_COMMAND, "--table-size goes with --maglev");
    if (o->maglev && !o->table_size)
        o->table_size = TC_MAGLEV_SIZE_DEFAULT;
    if (o->maglev && o->svg)
        return cli_usage(RING_COMMAND, "--svg draws rings; a Maglev table has no picture");
    if (!o->min)
        o->min = TC_RING_DEFAULT_MIN;
    if (o->max && o->max < o->min)
        return cli_usage(RING_COMMAND, "--max %llu is less than --min %llu", (unsigned long long)o->max,
                         (unsigned long long)o->min);
    if (!o->max)
        o->max = TC_MAX(o->min, TC_RING_DEFAULT_MAX);
    if (!o->cap)
        o->cap = tc_channel_default_ring_cap();
    return 0;
}

int ring_parse(int argc, char **argv, struct ring_opts *o)
{
    int c, rc;
    if ((rc = cli_long_options(RING_COMMAND, argc, argv, ":e:o:h", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":e:o:h", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            o->help = true;
            return 0;
        }
        if (c == '?' || c == ':')
            return cli_bad_option(RING_COMMAND, c, argv);
        if ((rc = parse_option(o, c, optarg)) != 0)
            return rc;
    }
    if (optind < argc)
        return cli_usage(RING_COMMAND,
                         "unexpected argument '%s'; endpoints are given with -e, those of a cluster with "
                         "--resources FILE --cluster NAME",
                         argv[optind]);
    return finish(o);
}
