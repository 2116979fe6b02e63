/* The application of a simulation. It is the only user of Torc's public API, except that the oracle and the servers use
 * its constants, and the oracle torc_status_code_name. Everything runs on the world's one thread. The caller frees
 * every handle, those of calls and channels before their runtime's. A runtime, a channel, a call or a client status
 * that cannot be made aborts the program. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/mesh.h"

struct app_domain;
struct app_runtime;
struct app_channel;
struct app_call;

struct app_domain *app_domain_new(void);
/* Frees the handle; the runtimes of the domain may go on. NULL is allowed. */
void app_domain_free(struct app_domain *d);
/* `domain` may be NULL. */
struct app_runtime *app_runtime_new(struct app_domain *domain);
void app_runtime_free(struct app_runtime *rt);
/* Returns a ClientStatusResponse of the runtime's xDS clients, without the resources' contents, as *size bytes. The
 * caller frees them with app_memory_free. */
void *app_client_status(struct app_runtime *rt, size_t *size);
void app_memory_free(void *bytes);

/* Strings are borrowed for app_channel_new. */
struct app_channel_options {
    const char *bootstrap;      /* NULL: none */
    const char *service_config; /* NULL: none */
    int64_t backoff_max_ms, connect_timeout_ms, keepalive_time_ms, keepalive_timeout_ms;
};
struct app_channel *app_channel_new(struct app_runtime *rt, const char *target, const struct app_channel_options *o);
void app_channel_free(struct app_channel *ch);

/* Valid inside on_done. */
struct app_outcome {
    int code;
    const char *message, *peer; /* "": none */
    const char *set_cookie;     /* of the response's headers, else of its trailers; NULL: none */
    const void *response;       /* NULL: none */
    size_t response_size;
    uint32_t attempts;
    int layer; /* enum torc_layer */
};

/* Strings are borrowed for app_call_start. */
struct app_call_options {
    enum sim_kind kind;
    const char *request; /* the message of a unary call; of streams, the header x-call */
    unsigned n_messages; /* how many a stream sends; `make` makes them */
    const char *key;     /* header x-key; NULL: none */
    const char *cookie;  /* header cookie; NULL: none */
    int64_t timeout_ms;  /* < 0: none; 0: the deadline has passed already */
    bool wait_for_ready;
};

struct app_call_events {
    /* Returns message number `index` (from 0) to send; it is copied. Called again for a message that found no room. */
    const void *(*make)(void *arg, unsigned index, size_t *size);
    /* A message of a stream came. The bytes are borrowed until on_message returns. */
    void (*on_message)(void *arg, const void *data, size_t size);
    void (*on_done)(void *arg, const struct app_outcome *outcome);
};

/* Starts a call. `make` may be called inside this function, the other events only from the loop. on_done comes once,
 * as the last event. No event comes after app_call_free, not even on_done. `events` is copied. */
struct app_call *app_call_start(struct app_channel *ch, const struct app_call_options *o,
                                const struct app_call_events *events, void *arg);
void app_call_cancel(struct app_call *call);
/* Frees the handle; a call that runs is cancelled. The call's memory is freed once Torc has reported the end, so that a
 * call whose end is never reported shows as a leak. */
void app_call_free(struct app_call *call);

#endif
