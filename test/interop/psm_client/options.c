/* Reads the PSM client's command line into struct psm_options, and its flags --rpc and --metadata into a struct
 * psm_config.
 *
 * psm_options_parse checks each flag but these two, and keeps pointers into argv. psm_config_init reads these two, and
 * cuts their texts into parts where they stand, so it is called once. A config owns the metadata of each kind of RPC,
 * which psm_config_fini frees. psm_options_parse and psm_config_init run on the main thread and print to stderr what is
 * wrong; psm_config_fini runs on any thread. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "psm.h"

enum {
    OPT_FAIL = 256,
    OPT_CHANNELS,
    OPT_PRINT,
    OPT_QPS,
    OPT_TIMEOUT,
    OPT_RPC,
    OPT_METADATA,
    OPT_SERVER,
    OPT_PORT,
    OPT_SECURE
};

/* A flag with optional_argument takes a value only in the form --name=value, which is how the test driver writes it.
 * Without a value it is true. */
static const struct option options[] = {
    {"fail_on_failed_rpc", optional_argument, NULL, OPT_FAIL},
    {"fail_on_failed_rpcs", optional_argument, NULL, OPT_FAIL},
    {"num_channels", required_argument, NULL, OPT_CHANNELS},
    {"print_response", optional_argument, NULL, OPT_PRINT},
    {"qps", required_argument, NULL, OPT_QPS},
    {"rpc_timeout_sec", required_argument, NULL, OPT_TIMEOUT},
    {"rpc", required_argument, NULL, OPT_RPC},
    {"metadata", required_argument, NULL, OPT_METADATA},
    {"server", required_argument, NULL, OPT_SERVER},
    {"stats_port", required_argument, NULL, OPT_PORT},
    {"secure_mode", optional_argument, NULL, OPT_SECURE},
    {NULL, 0, NULL, 0},
};

/* Two spellings of each kind of RPC, both allowed in --rpc and --metadata. */
static const struct {
    const char *flag, *enumerator;
} names[PSM_RPCS] = {{"EmptyCall", "EMPTY_CALL"}, {"UnaryCall", "UNARY_CALL"}};

/* Stores a decimal number. Returns false, with *out meaningless, if the text is not one or the number is above max. */
static bool number(const char *text, unsigned long max, unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *out = (unsigned)value;
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && value <= max;
}

/* Stores a truth value; NULL, a flag without a value, is true. Returns false if the text is neither "true" nor
 * "false"; upper and lower case are the same. */
static bool boolean(const char *text, bool *out)
{
    *out = !text || strcasecmp(text, "true") == 0;
    return *out || strcasecmp(text, "false") == 0;
}

/* Stores the value of the flag `c`, which getopt left in optarg. Returns false if the flag or its value is wrong. */
static bool apply(struct psm_options *o, int c)
{
    unsigned seconds = 0;
    switch (c) {
    case OPT_FAIL:
        return boolean(optarg, &o->fail_on_failed_rpc);
    case OPT_CHANNELS:
        return number(optarg, 1000, &o->channels);
    case OPT_PRINT:
        return boolean(optarg, &o->print_response);
    case OPT_QPS:
        return number(optarg, 100000, &o->qps);
    case OPT_TIMEOUT:
        if (!number(optarg, 1000000, &seconds))
            return false;
        o->timeout_ms = (int64_t)seconds * 1000;
        return true;
    case OPT_RPC:
        o->rpcs = optarg;
        return true;
    case OPT_METADATA:
        o->metadata = optarg;
        return true;
    case OPT_SERVER:
        o->server = optarg;
        return true;
    case OPT_PORT:
        return number(optarg, 65535, &o->stats_port);
    case OPT_SECURE:
        return boolean(optarg, &o->secure);
    default:
        return false;
    }
}

int psm_options_parse(struct psm_options *o, int argc, char **argv)
{
    int c;
    *o = (struct psm_options){
        .server = "localhost:8080", .channels = 1, .qps = 1, .stats_port = 50052, .timeout_ms = 20000};
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!apply(o, c)) {
            if (c != '?')
                fprintf(stderr, "%s: '%s' is not a value of that flag\n", argv[0], optarg);
            return 2;
        }
    }
    if (optind != argc) {
        fprintf(stderr, "%s: unexpected argument '%s'\n", argv[0], argv[optind]);
        return 2;
    }
    return 0;
}

/* Stores the kind of RPC with this name. Returns false if there is none. */
static bool rpc_of(const char *name, enum psm_rpc *out)
{
    for (unsigned i = 0; i < PSM_RPCS; i++) {
        if (strcmp(name, names[i].flag) == 0 || strcmp(name, names[i].enumerator) == 0) {
            *out = (enum psm_rpc)i;
            return true;
        }
    }
    return false;
}

/* Adds an entry "EmptyCall:key:value". Returns false if it is malformed or torc_metadata refuses it. */
static bool add_metadata(struct psm_config *c, const char *entry)
{
    char name[16], key[128];
    int value = 0;
    enum psm_rpc rpc;
    return sscanf(entry, "%15[^:]:%127[^:]:%n", name, key, &value) == 2 && value > 0 && rpc_of(name, &rpc) &&
           torc_metadata_add_string(c->metadata[rpc], key, entry + value) == 0;
}

bool psm_config_init(struct psm_config *c, const struct psm_options *o)
{
    char usual[] = "UnaryCall", *rest = o->rpcs ? o->rpcs : usual, *part;
    bool ok = true;
    *c = (struct psm_config){.timeout_ms = o->timeout_ms};
    for (unsigned i = 0; i < PSM_RPCS; i++)
        c->metadata[i] = torc_metadata_new();
    while (ok && (part = strsep(&rest, ","))) {
        enum psm_rpc rpc;
        ok = rpc_of(part, &rpc);
        if (ok)
            c->wanted[rpc] = true;
        else
            fprintf(stderr, "--rpc: '%s' is neither EmptyCall nor UnaryCall\n", part);
    }
    rest = o->metadata && *o->metadata ? o->metadata : NULL;
    while (ok && (part = strsep(&rest, ","))) {
        ok = add_metadata(c, part);
        if (!ok)
            fprintf(stderr, "--metadata: '%s' is not like EmptyCall:key:value\n", part);
    }
    if (!ok)
        psm_config_fini(c);
    return ok;
}

void psm_config_fini(struct psm_config *c)
{
    for (unsigned i = 0; i < PSM_RPCS; i++) {
        torc_metadata_free(c->metadata[i]);
        c->metadata[i] = NULL;
    }
}
