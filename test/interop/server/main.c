/* The server of gRPC's interop suite, on generated code.
 * usage: interop_server [--listen ADDR] [--tls-cert FILE --tls-key FILE] [--max-streams N]
 * A flag may also be written as --name=value. Prints "version VERSION" and "listening ADDR", serves until its standard
 * input ends, then stops gracefully. Exit 0; 1, with the reason on stderr, if it cannot serve; 2 for wrong usage. */
#include <stdlib.h>
#include <unistd.h>

#include "grpc/testing/empty.torc.h"
#include "grpc/testing/messages.torc.h"
#include "service.h"

/* How long RPCs under way may go on when the server stops. */
enum { GRACE_MS = 10000 };

struct flags {
    const char *listen, *cert, *key;
    int64_t max_streams;
};

static bool flags_read(struct flags *f, int argc, char **argv)
{
    *f = (struct flags){.listen = "127.0.0.1:0"};
    for (int i = 1; i < argc; i++) {
        char *flag = argv[i], *value = strchr(flag, '=');
        if (value)
            *value++ = '\0';
        else
            value = argv[++i];
        if (!value)
            return false;
        if (strcmp(flag, "--listen") == 0)
            f->listen = value;
        else if (strcmp(flag, "--tls-cert") == 0)
            f->cert = value;
        else if (strcmp(flag, "--tls-key") == 0)
            f->key = value;
        else if (strcmp(flag, "--max-streams") == 0)
            f->max_streams = strtol(value, NULL, 10);
        else
            return false;
    }
    return !f->cert == !f->key;
}

static torc_credentials *credentials_of(const struct flags *f, torc_error **error)
{
    if (!f->cert)
        return torc_credentials_insecure();
    struct torc_server_tls_files files = {TORC_SIZE(torc_server_tls_files), .certificate_file = f->cert,
                                          .private_key_file = f->key};
    return torc_server_credentials_tls_files(&files, error);
}

static int fail(const torc_error *error)
{
    fprintf(stderr, "interop_server: %s\n", torc_error_text(error));
    return 1;
}

int main(int argc, char **argv)
{
    struct flags flags;
    if (!flags_read(&flags, argc, argv)) {
        fprintf(stderr, "usage: %s [--listen ADDR] [--tls-cert FILE --tls-key FILE] [--max-streams N]\n", argv[0]);
        return 2;
    }
    torc_error *error = NULL;
    char *bound = NULL;
    struct torc_server_options options = {TORC_SIZE(torc_server_options), .gzip = TORC_ON,
                                          .max_concurrent_streams = flags.max_streams};
    torc_credentials *credentials = credentials_of(&flags, &error);
    torc_server *server = torc_server_new(&options, &error);
    torc_pool *pool = torc_pool_new(INTEROP_THREADS, 1024, &error);
    torc_health *health = error ? NULL : torc_health_new(server, &error);
    torc_reflection *reflection = error ? NULL : torc_reflection_new(server, &error);
    torc_reflection_add(reflection, &torc_stub_file__services_proto, &error);
    torc_reflection_add(reflection, &torc_stub_file__grpc__testing__messages_proto, &error);
    torc_reflection_add(reflection, &torc_stub_file__grpc__testing__empty_proto, &error);
    torc_orca *orca = error ? NULL : torc_orca_new(server, 1000, &error);
    interop_service_add(server, pool, orca, &error);
    torc_server_listen(server, flags.listen, credentials, &bound, &error);
    if (torc_server_start(server, &error) != 0)
        return fail(error);
    torc_health_set(health, "grpc.testing.TestService", TORC_HEALTH_SERVING);
    printf("version %s\nlistening %s\n", torc_version(), bound);
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    torc_server_stop(server, GRACE_MS);
    torc_server_free(server);
    torc_pool_free(pool);
    torc_health_free(health);
    torc_reflection_free(reflection);
    torc_orca_free(orca);
    torc_credentials_unref(credentials);
    torc_free(bound);
    return 0;
}
