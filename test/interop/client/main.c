/* The client side of gRPC's interop suite, on generated code.
 * usage: interop_client --target ADDR --case NAME [--ca FILE --authority NAME] [--iterations N]
 * Exit 0 when the case passed, 1 with the reason on stderr, 2 for wrong usage. --list, --list-http2 and
 * --list-two-streams each print the names of the cases for one kind of server (enum needs), and exit 0. */
#include "rpc.h"

/* The server that a case needs: any, the one of the HTTP/2 negative cases, or one that allows 2 streams on a
 * connection. */
enum needs { EVERY_SERVER, HTTP2_SERVER, TWO_STREAMS, N_NEEDS };

static const char *const lists[N_NEEDS] = {"--list", "--list-http2", "--list-two-streams"};

static const struct {
    const char *name;
    interop_case_fn run;
    enum needs needs;
} cases[] = {
    {"empty_unary", case_empty_unary, EVERY_SERVER},
    {"large_unary", case_large_unary, EVERY_SERVER},
    {"client_compressed_unary", case_client_compressed_unary, EVERY_SERVER},
    {"server_compressed_unary", case_server_compressed_unary, EVERY_SERVER},
    {"client_streaming", case_client_streaming, EVERY_SERVER},
    {"client_compressed_streaming", case_client_compressed_streaming, EVERY_SERVER},
    {"server_streaming", case_server_streaming, EVERY_SERVER},
    {"server_compressed_streaming", case_server_compressed_streaming, EVERY_SERVER},
    {"ping_pong", case_ping_pong, EVERY_SERVER},
    {"empty_stream", case_empty_stream, EVERY_SERVER},
    {"custom_metadata", case_custom_metadata, EVERY_SERVER},
    {"status_code_and_message", case_status_code_and_message, EVERY_SERVER},
    {"special_status_message", case_special_status_message, EVERY_SERVER},
    {"unimplemented_method", case_unimplemented_method, EVERY_SERVER},
    {"unimplemented_service", case_unimplemented_service, EVERY_SERVER},
    {"cancel_after_begin", case_cancel_after_begin, EVERY_SERVER},
    {"cancel_after_first_response", case_cancel_after_first_response, EVERY_SERVER},
    {"timeout_on_sleeping_server", case_timeout_on_sleeping_server, EVERY_SERVER},
    {"rpc_soak", case_rpc_soak, EVERY_SERVER},
    {"channel_soak", case_channel_soak, EVERY_SERVER},
    {"goaway", case_goaway, HTTP2_SERVER},
    {"rst_after_header", case_rst_after_header, HTTP2_SERVER},
    {"rst_during_data", case_rst_during_data, HTTP2_SERVER},
    {"rst_after_data", case_rst_after_data, HTTP2_SERVER},
    {"ping", case_ping, HTTP2_SERVER},
    {"max_streams", case_max_streams, HTTP2_SERVER},
    {"max_concurrent_streams_connection_scaling", case_connection_scaling, TWO_STREAMS},
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

/* Returns the text of a file of 1 to 1048575 bytes. The caller frees it. */
static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    CHECK(f, "%s", path);
    size_t cap = 1 << 20;
    char *text = malloc(cap + 1);
    CHECK(text, "no memory");
    size_t n = fread(text, 1, cap, f);
    fclose(f);
    CHECK(n > 0 && n < cap, "%s: %zu bytes", path, n);
    text[n] = '\0';
    return text;
}

/* Returns the case of that name; NULL if there is none, or for NULL. */
static interop_case_fn find(const char *name)
{
    for (size_t i = 0; name && i < N_CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return cases[i].run;
    return NULL;
}

/* Returns credentials that trust the certificates in this PEM file. The caller calls torc_credentials_unref. */
static torc_credentials *tls(const char *ca)
{
    char *roots = read_file(ca);
    torc_error *error = NULL;
    struct torc_tls_options options = {TORC_SIZE(torc_tls_options), .roots_pem = roots};
    torc_credentials *credentials = torc_credentials_tls(&options, &error);
    CHECK(credentials, "%s: %s", ca, torc_error_text(error));
    free(roots);
    return credentials;
}

int main(int argc, char **argv)
{
    struct interop t = {.options = {TORC_SIZE(torc_channel_options)}, .soak_iterations = 100};
    const char *name = NULL, *ca = NULL;
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        enum needs needs = EVERY_SERVER;
        while (needs < N_NEEDS && strcmp(flag, lists[needs]) != 0)
            needs++;
        if (needs < N_NEEDS) {
            for (size_t c = 0; c < N_CASES; c++)
                if (cases[c].needs == needs)
                    puts(cases[c].name);
            return 0;
        }
        i++;
        if (value && strcmp(flag, "--target") == 0)
            t.target = value;
        else if (value && strcmp(flag, "--case") == 0)
            name = value;
        else if (value && strcmp(flag, "--ca") == 0)
            ca = value;
        else if (value && strcmp(flag, "--authority") == 0)
            t.options.authority = value;
        else if (value && strcmp(flag, "--iterations") == 0)
            t.soak_iterations = (int)strtol(value, NULL, 10);
        else
            return 2;
    }
    interop_case_fn run = find(name);
    if (!run || !t.target || t.soak_iterations < 1) {
        fprintf(stderr,
                "usage: %s --target ADDR --case NAME [--ca FILE --authority NAME] [--iterations N] | "
                "--list[-http2|-two-streams]\n",
                argv[0]);
        return 2;
    }
    t.options.credentials = ca ? tls(ca) : torc_credentials_insecure();
    t.runtime = torc_runtime_new(NULL, NULL);
    CHECK(t.runtime, "no runtime");
    t.channel = interop_channel(&t);
    run(&t);
    torc_channel_free(t.channel);
    torc_credentials_unref(t.options.credentials);
    CHECK(torc_runtime_free(t.runtime) == 0, "runtime");
    return 0;
}
