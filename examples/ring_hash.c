/* Consistent hashing without xDS (gRFC A76): a resolver of the application's own names the endpoints and their hash
 * keys. Its service config chooses ring_hash and the header to hash. The resolver's start and stop run on the thread of
 * the default runtime.
 *
 * usage: ring_hash ADDRESS ADDRESS ...
 *
 * The hash keys are "shard-0", "shard-1", ... Addresses after the sixteenth are ignored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#define MAX_BACKENDS 16

struct backends {
    int n;
    const char *addresses[MAX_BACKENDS];
    char keys[MAX_BACKENDS][20];
};

/* Reports an error, with which calls fail. */
static void refused(torc_resolver_listener *listener, const struct backends *b)
{
    char text[1024] = "one of these is not an address such as 127.0.0.1:80:";
    for (int i = 0; i < b->n; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, " %s", b->addresses[i]);
    }
    torc_resolver_report_error(listener, TORC_STATUS_UNAVAILABLE, text);
}

static void *start(const char *rest, torc_resolver_listener *listener, void *arg)
{
    struct backends *b = arg;
    struct torc_endpoint endpoints[MAX_BACKENDS];
    (void)rest;
    for (int i = 0; i < b->n; i++)
        endpoints[i] = (struct torc_endpoint){TORC_SIZE(torc_endpoint), .addresses = &b->addresses[i], .n_addresses = 1,
                                              .hash_key = b->keys[i]};
    int rc = torc_resolver_report(listener, endpoints, (size_t)b->n,
                                  "{\"loadBalancingConfig\":[{\"ring_hash\":{\"requestHashHeader\":\"session\"}}]}");
    if (rc != 0)
        refused(listener, b); /* without a report, calls would wait until their deadlines */
    return b;
}

static void stop(void *state)
{
    (void)state;
}

static int call(torc_channel *channel, const char *session)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add_string(metadata, "session", session);
    o.metadata = metadata;
    torc_result *r = torc_unary(channel, "echo.Echo/Say", "", 0, &o);
    torc_metadata_free(metadata);
    printf("%-8s -> %s %s\n", session, torc_result_peer(r), torc_error_text(torc_result_error(r)));
    int rc = torc_result_code(r);
    torc_result_free(r);
    return rc;
}

int main(int argc, char **argv)
{
    struct backends b = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: ring_hash ADDRESS ADDRESS ...\n");
        return 1;
    }
    for (int i = 1; i < argc && b.n < MAX_BACKENDS; i++, b.n++) {
        b.addresses[b.n] = argv[i];
        snprintf(b.keys[b.n], sizeof(b.keys[b.n]), "shard-%d", b.n);
    }
    const struct torc_resolver_factory shards = {
        .size = sizeof(shards), .scheme = "shards", .start = start, .stop = stop, .arg = &b};
    const struct torc_resolver_factory *const resolvers[] = {&shards, NULL};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .resolvers = resolvers};
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, "shards:all", &o, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_clear(&error);
        return 1;
    }
    int failed = 0;
    static const char *const sessions[] = {"alice", "bob", "carol", "dave", "alice", "bob", "carol", "dave"};
    for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
        failed += call(channel, sessions[i]) != 0;
    torc_channel_free(channel);
    return failed;
}
