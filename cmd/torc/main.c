/* torc: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include <torc/version.h>

#include "base/common.h"
#include "cli.h"
#include "commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"call", cmd_call, "send RPCs, as JSON or bytes, and show where each went"},
    {"list", cmd_list, "show the services of a server or of .proto files, or the methods of one"},
    {"describe", cmd_describe, "show a service, method or message as .proto text, or JSON to fill in"},
    {"backend", cmd_backend, "run an echo server for tries and tests"},
    {"serve-xds", cmd_serve_xds, "run the embedded xDS control plane from files"},
    {"xds", cmd_xds, "show what the control plane serves a client: every resource with its state"},
    {"bootstrap", cmd_bootstrap, "write an xDS bootstrap, or say all that is wrong with one"},
    {"ring", cmd_ring, "show a hash ring: who owns what, where a key goes, what a change moves"},
    {"simulate", cmd_simulate, "show how clients and an LB policy spread calls over backends, in virtual time"},
    {"bench", cmd_bench, "send load: rate, latency, CPU time of each RPC, errors by status"},
    {"demo", cmd_demo, "show the main job with real RPCs, within ten seconds"},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: torc COMMAND [options]\n\n"
                 "Torc is gRPC for C programs, with a proxyless service mesh built in.\n\n");
    for (size_t i = 0; i < TC_ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(out,
            "\n'torc help COMMAND' (or 'torc COMMAND --help') shows options and examples; 'torc version' the version.\n"
            "xDS settings come from GRPC_XDS_BOOTSTRAP (a path) or GRPC_XDS_BOOTSTRAP_CONFIG (JSON).\n");
}

static int unexpected(const char *argument)
{
    struct tc_buf shown = {0};
    fprintf(stderr, "torc: unexpected argument '%s' (try 'torc --help')\n", cli_shown(&shown, argument));
    tc_buf_fini(&shown);
    return CLI_USAGE;
}

static int run_command(int argc, char **argv)
{
    struct tc_buf shown = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(commands); i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return cli_end_output(argv[0], commands[i].run(argc, argv));
    struct cli_nearest near = {.text = tc_slice_str(argv[0])};
    for (size_t i = 0; i < TC_ARRAY_LEN(commands); i++)
        cli_nearest_try(&near, commands[i].name);
    cli_nearest_try(&near, "help");
    cli_nearest_try(&near, "version");
    fprintf(stderr, "torc: unknown command '%s'%s%s%s (try 'torc --help')\n", cli_shown(&shown, argv[0]),
            near.name ? ": did you mean " : "", near.name ? near.name : "", near.name ? "?" : "");
    tc_buf_fini(&shown);
    return CLI_USAGE;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Runs "help" and "help COMMAND". The commands help and version have no options: their help is that of torc. */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    char *args[] = {argv[1], option, NULL};
    if (argc > 2)
        return unexpected(argv[2]);
    if (argc == 2 && !asks_for_help(argv[1]) && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "version") != 0)
        return run_command(2, args);
    print_help(stdout);
    return cli_end_output(NULL, CLI_OK);
}

int main(int argc, char **argv)
{
    cli_guard_output();
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    argc--;
    argv++;
    if (strcmp(argv[0], "help") == 0)
        return help(argc, argv);
    bool helps = asks_for_help(argv[0]);
    bool alone = helps || strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0; /* takes no argument */
    if (alone && argc == 2 && asks_for_help(argv[1]))
        return help(1, argv);
    if (alone && argc > 1)
        return unexpected(argv[1]);
    if (helps)
        return help(1, argv);
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0) {
        printf("torc %s\n", torc_version());
        return cli_end_output(NULL, CLI_OK);
    }
    return run_command(argc, argv);
}
