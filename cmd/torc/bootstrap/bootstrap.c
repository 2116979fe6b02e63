/* torc bootstrap: writes a bootstrap, or checks one.
 *
 * parse() reads the command line into struct bootstrap_args. Then cmd_bootstrap calls write_bootstrap() or, with
 * --check, check().
 *
 * A bootstrap is checked before it is printed. A value that no channel would accept is a usage error, which names the
 * member's JSON path. Warnings follow the bootstrap, on standard error; none is printed for a file that cannot be read.
 *
 * --check prints one line for each fault and each warning, with the JSON path if there is one, and one line for a
 * bootstrap without faults. -o json prints one object. A fault makes the exit status 1, a warning does not. One
 * thread. */
#include "bootstrap/bootstrap.h"

#include <getopt.h>
#include <stdio.h>

#include "api/builtin.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli.h"
#include "cli_options.h"
#include "commands.h"

#define NAME BOOTSTRAP_NAME

/* clang-format off */
static const char help[] =
    "usage: torc bootstrap [options]\n\n"
    "Writes an xDS bootstrap to standard output, for GRPC_XDS_BOOTSTRAP; or says all that is wrong with one.\n\n"
    "      --server URI           a control plane, repeatable: the later ones are fallbacks\n"
    "      --istio                for a pod with Istio's agent: its socket, certificates and node id, which INSTANCE_IP,\n"
    "                             POD_NAME and POD_NAMESPACE give. --server: istiod, without an agent\n"
    "      --gke                  for Google Cloud's Traffic Director, with --project\n"
    "      --project NUMBER       the project's number\n"
    "      --network NAME         the network, or mesh:NAME (default)\n"
    "      --creds TYPE           insecure, tls or google_default, for every server (insecure; --gke: google_default)\n"
    "      --ca, --cert, --key FILE   names of PEM files for the bootstrap, which imply --creds tls\n"
    "      --feature NAME         a server feature, such as fail_on_data_errors, repeatable\n"
    "      --node-id ID           who this client is (the machine's name)\n"
    "      --node-cluster NAME    the cluster that this client is of\n"
    "      --locality REGION[/ZONE[/SUB_ZONE]]   where this client is\n"
    "      --metadata NAME=VALUE  of the node, repeatable\n"
    "      --check FILE           checks that bootstrap (-: standard input) instead of writing one: each fault with its\n"
    "                             path, and as warnings what is ignored\n"
    "  -o text|json               form of what --check says (text)\n\n"
    "Examples:\n"
    "  torc bootstrap --server 127.0.0.1:18000 --node-id shop-7 > bootstrap.json\n"
    "  torc bootstrap --check bootstrap.json && GRPC_XDS_BOOTSTRAP=bootstrap.json torc xds xds:///orders\n";
/* clang-format on */

enum {
    OPT_SERVER = 256,
    OPT_ISTIO,
    OPT_GKE,
    OPT_PROJECT,
    OPT_NETWORK,
    OPT_CREDS,
    OPT_CA,
    OPT_CERT,
    OPT_KEY,
    OPT_FEATURE,
    OPT_NODE_ID,
    OPT_NODE_CLUSTER,
    OPT_LOCALITY,
    OPT_METADATA,
    OPT_CHECK,
};

/* The long options are in the order of the enum: apply() finds an option's name by its code. */
static const struct option options[] = {
    {"server", required_argument, NULL, OPT_SERVER},
    {"istio", no_argument, NULL, OPT_ISTIO},
    {"gke", no_argument, NULL, OPT_GKE},
    {"project", required_argument, NULL, OPT_PROJECT},
    {"network", required_argument, NULL, OPT_NETWORK},
    {"creds", required_argument, NULL, OPT_CREDS},
    {"ca", required_argument, NULL, OPT_CA},
    {"cert", required_argument, NULL, OPT_CERT},
    {"key", required_argument, NULL, OPT_KEY},
    {"feature", required_argument, NULL, OPT_FEATURE},
    {"node-id", required_argument, NULL, OPT_NODE_ID},
    {"node-cluster", required_argument, NULL, OPT_NODE_CLUSTER},
    {"locality", required_argument, NULL, OPT_LOCALITY},
    {"metadata", required_argument, NULL, OPT_METADATA},
    {"check", required_argument, NULL, OPT_CHECK},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Returns where to store the value of an option. NULL for -o, and for options that are repeatable or have no value. */
static const char **value_of(struct bootstrap_args *a, int c)
{
    switch (c) {
    case OPT_PROJECT:
        return &a->project;
    case OPT_NETWORK:
        return &a->network;
    case OPT_CREDS:
        return &a->creds;
    case OPT_CA:
        return &a->ca;
    case OPT_CERT:
        return &a->cert;
    case OPT_KEY:
        return &a->key;
    case OPT_NODE_ID:
        return &a->node_id;
    case OPT_NODE_CLUSTER:
        return &a->node_cluster;
    case OPT_LOCALITY:
        return &a->locality;
    case OPT_CHECK:
        return &a->check;
    default:
        return NULL;
    }
}

static int apply(struct bootstrap_args *a, int c)
{
    const char **value = value_of(a, c);
    if (optarg && !tc_utf8_valid(tc_slice_str(optarg)))
        return cli_usage(NAME, "'%s' is not UTF-8", optarg);
    if (value && !*optarg)
        return cli_usage(NAME, "option '--%s' has an empty value", options[c - OPT_SERVER].name);
    if (value)
        *value = optarg;
    else if (c == OPT_SERVER)
        *tc_vec_push(&a->servers) = optarg;
    else if (c == OPT_FEATURE)
        *tc_vec_push(&a->features) = optarg;
    else if (c == OPT_METADATA)
        *tc_vec_push(&a->metadata) = optarg;
    else if (c == OPT_ISTIO)
        a->istio = true;
    else if (c == OPT_GKE)
        a->gke = true;
    else
        return cli_output(NAME, optarg, &a->json);
    return 0;
}

/* Checks that the options that write a bootstrap agree, and sets the default network. */
static int settle_write(struct bootstrap_args *a)
{
    uint64_t number;
    bool tls = a->ca || a->cert || a->key;
    if (!a->servers.len && !a->istio && !a->gke)
        return cli_usage(NAME, "give --server, --istio or --gke, or --check FILE");
    if (a->istio && a->gke)
        return cli_usage(NAME, "--istio and --gke contradict");
    if (a->json)
        return cli_usage(NAME, "-o goes with --check: a bootstrap is JSON anyhow");
    if (a->gke && !a->project)
        return cli_usage(NAME, "--gke needs --project, the project's number");
    if (!a->gke && (a->project || a->network))
        return cli_usage(NAME, "--project and --network go with --gke");
    if (a->project && tc_parse_u64(tc_slice_str(a->project), INT64_MAX, &number) != 0)
        return cli_usage(NAME, "--project: '%s' is not a number; gcloud projects describe NAME has it", a->project);
    a->network = a->network ? a->network : "default";
    if (a->creds && strcmp(a->creds, "insecure") != 0 && strcmp(a->creds, "tls") != 0 &&
        strcmp(a->creds, "google_default") != 0)
        return cli_usage(NAME, "--creds: unknown type '%s'; use insecure, tls or google_default", a->creds);
    if (tls && a->creds && strcmp(a->creds, "tls") != 0)
        return cli_usage(NAME, "--ca, --cert and --key go with --creds tls");
    if (!a->cert != !a->key)
        return cli_usage(NAME, "--cert and --key go together");
    return 0;
}

static int parse(struct bootstrap_args *a, int argc, char **argv)
{
    int c, rc;
    if ((rc = cli_long_options(NAME, argc, argv, ":o:h", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if ((rc = apply(a, c)) != 0)
            return rc;
    }
    if (optind != argc)
        return cli_usage(NAME, "unexpected argument '%s'%s", argv[optind],
                         a->check ? "" : "; --check FILE checks a file");
    bool writes = a->servers.len || a->features.len || a->metadata.len || a->istio || a->gke || a->creds || a->ca ||
                  a->cert || a->key || a->node_id || a->node_cluster || a->locality || a->project || a->network;
    if (a->check && writes)
        return cli_usage(NAME, "--check goes with -o alone: the other options write a bootstrap");
    return a->check ? 0 : settle_write(a);
}

/* --- check --- */

static void append_text(const char *file, const char *kind, const struct bootstrap_list *list, struct tc_buf *out)
{
    struct tc_buf line = {0};
    for (size_t i = 0; i < list->all.len; i++) {
        const struct bootstrap_finding *one = &list->all.data[i];
        tc_buf_clear(&line);
        tc_buf_printf(&line, "%s: %s: %s%s%s", file, kind, one->path, *one->path ? ": " : "", one->text);
        cli_append_shown(out, line.data, line.len);
        tc_buf_append_char(out, '\n');
    }
    tc_buf_fini(&line);
}

static void append_json(const char *kind, const struct bootstrap_list *list, struct tc_buf *out)
{
    tc_buf_printf(out, ",\"%s\":[", kind);
    for (size_t i = 0; i < list->all.len; i++) {
        const struct bootstrap_finding *one = &list->all.data[i];
        tc_buf_append_str(out, i ? ",{\"path\":" : "{\"path\":");
        cli_json_string(out, one->path, strlen(one->path));
        tc_buf_append_str(out, ",\"text\":");
        cli_json_string(out, one->text, strlen(one->text));
        tc_buf_append_char(out, '}');
    }
    tc_buf_append_char(out, ']');
}

static void print(const struct bootstrap_args *a, const struct bootstrap_findings *f)
{
    const char *file = strcmp(a->check, "-") == 0 ? "standard input" : a->check;
    struct tc_buf out = {0}, scratch = {0};
    if (a->json) {
        tc_buf_append_str(&out, "{\"bootstrap\":{\"file\":");
        cli_json_string(&out, file, strlen(file));
        tc_buf_printf(&out, ",\"ok\":%s", f->faults.all.len ? "false" : "true");
        append_json("faults", &f->faults, &out);
        append_json("warnings", &f->warnings, &out);
        tc_buf_append_str(&out, "}}\n");
    } else {
        append_text(file, "fault", &f->faults, &out);
        append_text(file, "warning", &f->warnings, &out);
        if (f->summary) {
            cli_append_shown(&out, file, strlen(file));
            tc_buf_printf(&out, ": good: %s\n", cli_shown(&scratch, f->summary));
        }
    }
    fwrite(out.data, 1, out.len, stdout);
    tc_buf_fini(&out);
    tc_buf_fini(&scratch);
}

static int check(const struct bootstrap_args *a)
{
    struct tc_buf text = {0};
    struct bootstrap_findings f = {0};
    int rc = cli_read_regular(NAME, "--check", a->check, &text);
    if (rc == 0) {
        bootstrap_check(tc_buf_slice(&text), &f);
        print(a, &f);
        rc = f.faults.all.len ? CLI_FAILED : CLI_OK;
    }
    bootstrap_findings_fini(&f);
    tc_buf_fini(&text);
    return rc;
}

/* --- write --- */

static int write_bootstrap(const struct bootstrap_args *a)
{
    json_t *root = NULL;
    int rc = bootstrap_make(a, &root);
    char *text = rc == 0 ? tc_json_text(root, true) : NULL;
    struct bootstrap_findings f = {0};
    if (text) {
        bootstrap_check(tc_slice_str(text), &f);
        if (f.faults.all.len)
            rc = cli_usage(NAME, "no channel would take it: %s%s%s", f.faults.all.data[0].path,
                           *f.faults.all.data[0].path ? ": " : "", f.faults.all.data[0].text);
        else
            puts(text);
    }
    /* The bootstrap may be used on another machine, so its files need not exist on this one. */
    for (size_t i = 0; i < f.warnings.all.len && rc == 0; i++)
        if (!strstr(f.warnings.all.data[i].text, "cannot be read here"))
            cli_fail(NAME, "warning: %s: %s", f.warnings.all.data[i].path, f.warnings.all.data[i].text);
    bootstrap_findings_fini(&f);
    tc_free(text);
    json_decref(root);
    return rc;
}

int cmd_bootstrap(int argc, char **argv)
{
    struct bootstrap_args a = {0};
    tc_builtin_init(); /* makes the scheme xds known, so that a server_uri with it is a finding and not a DNS name */
    int rc = parse(&a, argc, argv);
    if (rc == 0)
        rc = a.check ? check(&a) : write_bootstrap(&a);
    tc_vec_fini(&a.servers);
    tc_vec_fini(&a.features);
    tc_vec_fini(&a.metadata);
    return rc < 0 ? CLI_OK : rc;
}
