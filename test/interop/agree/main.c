/* Torc as one of the clients that suite_agreement.py compares: all should send the same key to the same backend. Other
 * suites use the program to see which backends calls reach.
 *
 * Prints {"version": "..."} first. Each line of stdin is then an order,
 * {"target":"xds:///m1","calls":[[["name","value"],...],...]}, with a list of headers for each call. An order whose
 * target is not xds may have a "service_config", a string of JSON. The answer is {"peers":["127.0.0.1:1",...]}, a peer
 * for each call, in the sequence of the calls; a failed call has "!CODE message" instead. At most WIDTH calls run at a
 * time. The channel is kept for the next order if the target and the service_config are the same.
 *
 * The main thread reads an order and waits on `done` until all calls of the order have ended. Meanwhile only the loop's
 * thread touches the order (start_all, start_next, on_result), so the order has no lock. Exit 0 at the end of stdin, or
 * at text that is not JSON. Exit 1, with a reason on stderr, if an order is wrong, the runtime, a channel or a call
 * cannot be made, or a peer is not the backend that answered. */
#include <jansson.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#define WIDTH 32

/* The order that runs, and what main keeps from one order to the next: the runtime, the channel, its service config and
 * the semaphore. */
struct order {
    torc_runtime *runtime;
    torc_channel *channel; /* NULL: none yet */
    json_t *config;        /* the "service_config" of the channel, owned; NULL: none */
    json_t *calls, *peers; /* calls: borrowed from the order's JSON; peers: owned until the answer takes it over */
    size_t next, running;  /* next: the index of the call to start next; running: how many calls run */
    sem_t done;            /* posted when no call runs and none is left */
};

/* A call that runs. on_result frees it. */
struct slot {
    struct order *order;
    size_t index;
};

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Returns the headers of one call, which the caller frees with torc_metadata_free. */
static torc_metadata *metadata_of(const json_t *headers)
{
    torc_metadata *metadata = torc_metadata_new();
    size_t i;
    json_t *header;
    json_array_foreach(headers, i, header)
    {
        const char *name = json_string_value(json_array_get(header, 0));
        const char *value = json_string_value(json_array_get(header, 1));
        if (!name || !value || torc_metadata_add_string(metadata, name, value) != 0)
            die("a header without a name or a value, or with one that metadata refuses");
    }
    return metadata;
}

/* Starts the next call, unless none is left. */
static void start_next(struct order *o);

static void on_result(const torc_result *result, void *arg)
{
    struct slot *slot = arg;
    struct order *o = slot->order;
    json_t *peer =
        torc_result_code(result) == TORC_STATUS_OK
            ? json_stringn(torc_message_data(torc_result_response(result)),
                           torc_message_size(torc_result_response(result)))
            : json_sprintf("!%s %s", torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    /* The backend answers with its own address: torc_result_peer must be the same. */
    if (torc_result_code(result) == TORC_STATUS_OK && strcmp(json_string_value(peer), torc_result_peer(result)) != 0)
        die("torc_result_peer is not the address of the backend that answered");
    json_array_set_new(o->peers, slot->index, peer);
    free(slot);
    o->running--;
    start_next(o);
    if (o->running == 0)
        sem_post(&o->done);
}

static void start_next(struct order *o)
{
    if (o->next == json_array_size(o->calls))
        return;
    struct slot *slot = malloc(sizeof(*slot));
    if (!slot)
        die("no memory");
    *slot = (struct slot){o, o->next++};
    torc_metadata *metadata = metadata_of(json_array_get(o->calls, slot->index));
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 20000, .metadata = metadata};
    if (torc_unary_async(o->channel, "torc.test.Backend/Who", "", 0, &options, on_result, slot, NULL, NULL) != 0)
        die("a call could not be started");
    torc_metadata_free(metadata);
    o->running++;
}

/* Starts the first WIDTH calls; each result starts the next. Runs on the loop's thread, as on_result does. */
static void start_all(void *arg)
{
    struct order *o = arg;
    for (int i = 0; i < WIDTH; i++)
        start_next(o);
    if (o->running == 0)
        sem_post(&o->done);
}

/* Opens a channel to the target with the service config, unless the channel that is open has both. */
static void open_channel(struct order *o, const json_t *asked)
{
    const char *text = json_string_value(json_object_get(asked, "target"));
    json_t *config = json_object_get(asked, "service_config");
    if (!text)
        die("an order without a target");
    bool same_config = config == o->config || json_equal(config, o->config);
    if (o->channel && strcmp(torc_channel_target(o->channel), text) == 0 && same_config)
        return;
    torc_channel_free(o->channel);
    json_decref(o->config);
    o->config = json_incref(config);
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .service_config_json = json_string_value(config)};
    torc_error *error = NULL;
    o->channel = torc_channel_new(o->runtime, text, &options, &error);
    if (!o->channel)
        die(torc_error_text(error));
}

/* Makes the calls of an order and waits for their ends. Returns the answer, which the caller frees. */
static json_t *run(struct order *o, const json_t *asked)
{
    open_channel(o, asked);
    o->calls = json_object_get(asked, "calls");
    o->peers = json_array();
    o->next = 0;
    for (size_t i = 0; i < json_array_size(o->calls); i++)
        json_array_append_new(o->peers, json_null());
    if (torc_runtime_post(o->runtime, start_all, o) != 0)
        die("the loop does not run");
    while (sem_wait(&o->done) != 0)
        continue;
    return json_pack("{s:o}", "peers", o->peers);
}

int main(void)
{
    /* The pool keeps no idle connection: an order with another target makes new connections, as with other clients. */
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .idle_connection_ms = -1};
    struct order o = {.runtime = torc_runtime_new(&options, NULL)};
    if (!o.runtime || sem_init(&o.done, 0, 0) != 0)
        die("no runtime");
    printf("{\"version\": \"%s\"}\n", torc_version());
    fflush(stdout);
    json_error_t error;
    json_t *asked;
    while ((asked = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &error))) {
        json_t *answer = run(&o, asked);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(asked);
    }
    torc_channel_free(o.channel);
    json_decref(o.config);
    torc_runtime_free(o.runtime);
    return 0;
}
