/* bench/update's client on Torc (update_client.h). Its "reached" tells when each phase of the update ended, which it
 * takes from the library's log lines.
 *
 * The main thread drives the runtime in its blocking calls, so the log lines of the phases are written on this thread.
 * Only the first line of a phase since "going" counts. The order "first" makes the runtime and the channel, which live
 * until standard input ends or an order fails; after a failure the exit status is 1. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "measure.h"
#include "update_client.h"

#define WORD 255

static char failure[512]; /* of the last failed RPC */

struct client {
    torc_runtime *runtime;
    torc_channel *channel;
};

/* The phases since "going". */
static struct {
    uint64_t at_ns[UPDATE_PHASES];                    /* of a phase's first log line, or of the answer; 0: not yet */
    char connecting[WORD + 32], connected[WORD + 32]; /* log lines of the new endpoint */
} seen;

static void on_log(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level;
    (void)module;
    (void)arg;
    int phase = strstr(message, "response ") && strstr(message, " version ") ? UPDATE_RECEIVED
                : strstr(message, ": config of ")                            ? UPDATE_DECODED
                : strstr(message, ": config in use")                         ? UPDATE_IN_USE
                : strcmp(message, seen.connecting) == 0                      ? UPDATE_PICKED
                : strcmp(message, seen.connected) == 0                       ? UPDATE_CONNECTED
                                                                             : UPDATE_PHASES;
    if (phase < UPDATE_PHASES && seen.at_ns[phase] == 0)
        seen.at_ns[phase] = measure_wall_ns();
}

/* Makes one RPC and sets *answered: whether the backend answered it, or, for "-", whether the RPC failed. Returns false
 * if the RPC could not start. */
static bool call(struct client *c, const char *method, const char *key, const char *backend, bool *answered)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add_string(metadata, UPDATE_KEY_HEADER, key);
    o.metadata = metadata;
    o.timeout_ms = UPDATE_TIMEOUT_MS;
    torc_result *r = torc_unary(c->channel, method, "x", 1, &o);
    torc_metadata_free(metadata);
    if (torc_result_error(r) && torc_error_code(torc_result_error(r)) != TORC_ESTATUS) {
        torc_result_free(r);
        return false;
    }
    const char *who = torc_result_headers(r) ? torc_metadata_find(torc_result_headers(r), "x-backend", NULL) : NULL;
    *answered = strcmp(backend, torc_result_code(r) == TORC_STATUS_OK && who ? who : "-") == 0;
    if (torc_result_code(r) != TORC_STATUS_OK)
        snprintf(failure, sizeof(failure), "%s", torc_result_text(r));
    torc_result_free(r);
    return true;
}

/* Returns a field of /proc/self/status in units of 1,024 bytes, 0 if it is not there. `field` ends with its colon. */
static long memory_kb(const char *field)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            kb = strtol(line + strlen(field), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static bool first(struct client *c, const char *method, const char *key)
{
    bool answered;
    long before = memory_kb("VmRSS:");
    uint64_t began = measure_wall_ns();
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    c->runtime = torc_runtime_new(&options, NULL);
    c->channel = c->runtime ? torc_channel_new(c->runtime, UPDATE_TARGET, NULL, NULL) : NULL;
    if (!c->channel || !call(c, method, key, "old", &answered) || !answered)
        return false;
    printf("first %" PRIu64 " %ld %ld\n", measure_wall_ns() - began, before, memory_kb("VmHWM:"));
    return true;
}

static bool until(struct client *c, const char *method, const char *key, const char *backend, const char *address)
{
    bool answered;
    if (!call(c, method, key, backend, &answered) || answered)
        return false;
    memset(&seen, 0, sizeof(seen));
    snprintf(seen.connecting, sizeof(seen.connecting), "%s: connection CONNECTING", address);
    snprintf(seen.connected, sizeof(seen.connected), "%s: connection READY", address);
    printf("going\n");
    fflush(stdout);
    uint64_t began = measure_wall_ns();
    while (!answered) {
        if (!call(c, method, key, backend, &answered))
            return false;
        if (measure_wall_ns() - began > UPDATE_GIVE_UP_S * UINT64_C(1000000000)) {
            fprintf(stderr, "bench_update_torc: %s does not answer; last failure: %s\n", backend, failure);
            return false;
        }
    }
    seen.at_ns[UPDATE_ANSWERED] = measure_wall_ns();
    printf("reached %" PRIu64, seen.at_ns[UPDATE_ANSWERED]);
    for (int i = 0; i < UPDATE_PHASES; i++)
        printf(" %" PRIu64, seen.at_ns[i]);
    printf("\n");
    return true;
}

static bool each(struct client *c, const char *method, const char *key)
{
    double ns[MEASURE_PAIRS_MAX];
    bool answered;
    for (size_t i = 0; i < MEASURE_PAIRS_MAX; i++) {
        uint64_t began = measure_wall_ns();
        if (!call(c, method, key, "old", &answered))
            return false;
        ns[i] = (double)(measure_wall_ns() - began);
    }
    printf("each %.0f\n", measure_median(ns, MEASURE_PAIRS_MAX));
    return true;
}

int main(void)
{
    struct client c = {0};
    char line[4 * WORD], order[WORD + 1], method[WORD + 1], key[WORD + 1], backend[WORD + 1], address[WORD + 1];
    bool ok = true;
    torc_log_set_sink(on_log, NULL);
    torc_log_set_levels("xds=debug,mesh=debug,channel=debug");
    while (ok && fgets(line, sizeof(line), stdin)) {
        int n = sscanf(line, "%255s %255s %255s %255s %255s", order, method, key, backend, address);
        ok = n >= 3;
        if (ok && strcmp(order, "first") == 0)
            ok = first(&c, method, key);
        else if (ok && strcmp(order, "each") == 0)
            ok = each(&c, method, key);
        else if (ok)
            ok = n == 5 && until(&c, method, key, backend, address);
        fflush(stdout);
    }
    torc_channel_free(c.channel);
    torc_runtime_free(c.runtime);
    return ok ? 0 : 1;
}
