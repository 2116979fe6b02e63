/* The command line of torc list and torc describe.
 *
 * With --protoset or --proto, and without --reflect, the types come from files: no server is asked, and the line has no
 * TARGET. Otherwise TARGET is the first argument, and its reflection is asked. */
#include "inspect/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli.h"

static int apply(struct inspect *a, int c, int *verbose)
{
    switch (c) {
    case INSPECT_DEADLINE:
        return cli_seconds_ms(a->name, "--deadline", optarg, &a->deadline_ms);
    case INSPECT_WAIT:
        a->wait_for_ready = true;
        return 0;
    case INSPECT_TEMPLATE:
        a->template = true;
        return 0;
    case 'o':
        return cli_output(a->name, optarg, &a->json);
    case 'v':
        (*verbose)++;
        return 0;
    default:
        if (headers_option(&a->headers, c, optarg) || schema_option(&a->from, c, optarg))
            return 0;
        return connect_option(a->name, &a->connect, c, optarg);
    }
}

/* Takes [TARGET] [SYMBOL], the arguments from getopt's optind on, and calls connect_settle. */
static int positionals(struct inspect *a, int argc, char **argv)
{
    bool server = a->from.reflect || !schema_args_offline(&a->from);
    if (server && optind == argc)
        return cli_usage(a->name, "give a TARGET, or files by --protoset or --proto");
    if (server)
        a->connect.target = argv[optind++];
    if (optind < argc)
        a->symbol = argv[optind++];
    if (optind < argc)
        return cli_usage(a->name, "unexpected argument '%s'%s", argv[optind],
                         server ? "" : "; with --protoset and --proto, a TARGET goes with --reflect");
    return connect_settle(a->name, &a->connect);
}

/* Makes the runtime and the channel, which the schema's questions use from then on. After a failure inspect_close frees
 * what was made. */
static int open_channel(struct inspect *a)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    a->runtime = torc_runtime_new(&o, &error);
    if (!a->runtime)
        return cli_fail_error(a->name, error);
    int rc = connect_channels(a->name, &a->connect, a->runtime, 1, &a->channels);
    if (rc != 0)
        return rc;
    a->metadata = headers_make(&a->headers.reflect, 0, NULL);
    a->schema.reflect.channel = a->channels[0];
    a->schema.reflect.metadata = a->metadata;
    a->schema.reflect.timeout_ms = (int64_t)a->deadline_ms;
    a->schema.reflect.wait_for_ready = a->wait_for_ready;
    return 0;
}

int inspect_open(struct inspect *a, const char *name, int argc, char **argv, const struct option *options,
                 const char *help)
{
    static const char letters[] = ":H:o:vh";
    int c, rc, verbose = 0;
    *a = (struct inspect){.name = name, .deadline_ms = 10000};
    schema_init(&a->schema, name);
    if ((rc = cli_long_options(name, argc, argv, letters, options, connect_foreign)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(name, c, argv);
        if ((rc = apply(a, c, &verbose)) != 0)
            return rc;
    }
    if ((rc = positionals(a, argc, argv)) != 0 || (rc = headers_finish(name, &a->headers)) != 0 ||
        (rc = schema_args_check(name, &a->from)) != 0)
        return rc;
    cli_verbose(verbose);
    rc = schema_load(&a->schema, &a->from);
    return rc == 0 && a->connect.target ? open_channel(a) : rc;
}

int inspect_need(struct inspect *a, const char *symbol)
{
    int rc = schema_need(&a->schema, symbol);
    if (rc == SCHEMA_NO_REFLECTION)
        return cli_fail(a->name, "%s", tc_buf_cstr(&a->schema.reflect.why));
    if (rc == SCHEMA_ABSENT && a->schema.reflect.why.len)
        return cli_fail(a->name, "%s", tc_buf_cstr(&a->schema.reflect.why));
    return rc == SCHEMA_ABSENT ? cli_fail(a->name, "nothing has the name '" TC_SHOWN "'", TC_SHOW(symbol)) : rc;
}

int inspect_need_member(struct inspect *a, const char *symbol)
{
    const char *dot = strrchr(symbol, '.');
    int rc = schema_need(&a->schema, symbol);
    if (rc == SCHEMA_ABSENT && dot && dot > symbol) {
        struct tc_buf owner = {0};
        tc_buf_append(&owner, symbol, (size_t)(dot - symbol));
        rc = schema_need(&a->schema, tc_buf_cstr(&owner));
        tc_buf_fini(&owner);
    }
    return rc == SCHEMA_ABSENT || rc == SCHEMA_NO_REFLECTION ? inspect_need(a, symbol) : rc;
}

int inspect_end(struct inspect *a, int rc)
{
    return rc ? rc : schema_write(&a->schema, &a->from);
}

void inspect_close(struct inspect *a)
{
    schema_fini(&a->schema);
    connect_channels_free(a->channels, 1);
    torc_runtime_free(a->runtime);
    torc_metadata_free(a->metadata);
    headers_args_fini(&a->headers);
    schema_args_fini(&a->from);
    connect_args_fini(&a->connect);
}

void inspect_put(struct tc_buf *line)
{
    tc_buf_append_char(line, '\n');
    fwrite(line->data, 1, line->len, stdout);
    tc_buf_fini(line);
}
