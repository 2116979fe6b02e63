/* Name resolvers of the application's own. SPDX-License-Identifier: Apache-2.0
 *
 * An application gives a channel its factories (torc/channel.h), and a target's scheme chooses one. A resolver reports
 * endpoints, or an error, through the listener that `start` is given, at once or later, as often as it likes; the
 * newest report counts. Reports are copied. The factory's functions are called on the loop's thread, except `release`;
 * the listener's functions may be called on any thread.
 *
 *     static void *start(const char *target_rest, torc_resolver_listener *listener, void *arg)
 *     {
 *         static const char *const addresses[] = {"10.0.0.1:80", "10.0.0.2:80"};
 *         struct torc_endpoint both[2];
 *         for (int i = 0; i < 2; i++)
 *             both[i] = (struct torc_endpoint){TORC_SIZE(torc_endpoint), .addresses = &addresses[i], .n_addresses = 1};
 *         if (torc_resolver_report(listener, both, 2, NULL) != 0)
 *             torc_resolver_report_error(listener, TORC_STATUS_UNAVAILABLE, "no addresses for the shards");
 *         return NULL;
 *     }
 *
 *     static const struct torc_resolver_factory shards = {TORC_SIZE(torc_resolver_factory), .scheme = "shards",
 *                                                         .start = start};
 *     static const struct torc_resolver_factory *const resolvers[] = {&shards, NULL};
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = credentials,
 *                                      .resolvers = resolvers};
 *     torc_channel *channel = torc_channel_new(NULL, "shards:all", &o, &error);
 *
 * A resolver that reports nothing leaves RPCs waiting, until their deadlines. */
#ifndef TORC_RESOLVER_H
#define TORC_RESOLVER_H

#include <stddef.h>
#include <stdint.h>

#include <torc/export.h>
#include <torc/size.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One endpoint: the addresses of one server, and its attributes. All borrowed for the call that takes it. */
struct torc_endpoint {
    uint64_t size;
    const char *const *addresses; /* "127.0.0.1:80", "[::1]:80", "unix:/path" */
    const char *hash_key;         /* A76: its place on the ring; NULL or "": the first address */
    uint64_t n_addresses;         /* >= 1 */
    uint64_t weight;              /* for ring_hash, maglev, least_request, and pick_first where it shuffles by weight;
                                     at most 4294967295; 0: 1 */
};

/* The channel's side of a resolver. */
typedef struct torc_resolver_listener torc_resolver_listener;

/* Reports new endpoints, an array of n (0: Torc's policies then fail RPCs with UNAVAILABLE), and optionally a service
 * config (JSON; NULL: none). All endpoints have the same `size`, the distance from one element to the next. Returns 0;
 * or an error, and nothing is reported: TORC_EINVAL for a NULL listener, a NULL array with n > 0, an endpoint without
 * addresses, an address that is not a literal, a weight or size out of range, or sizes that differ; TORC_EUNSUPPORTED
 * for fields of a newer version; TORC_EFORK; TORC_ECLOSED if the runtime has ended. The log (resolver=warn) names what
 * is refused of an endpoint. A service config that is malformed is not an error here: the channel keeps the config of
 * the last report that it could use; until there is such a report, RPCs fail with UNAVAILABLE. Any thread. */
TORC_API int torc_resolver_report(torc_resolver_listener *listener, const struct torc_endpoint *endpoints, size_t n,
                                  const char *service_config_json);
/* Reports that resolution failed. RPCs fail with this status unless endpoints were reported before; wait-for-ready ones
 * wait. INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE and DATA_LOSS become
 * INTERNAL (A54: only servers give these codes); TORC_STATUS_OK and numbers that are not a code become UNKNOWN. message
 * (copied, may be NULL): the reason, for the text of RPCs. Returns 0, TORC_EINVAL for a NULL listener, TORC_EFORK, or
 * TORC_ECLOSED if the runtime has ended. Any thread. */
TORC_API int torc_resolver_report_error(torc_resolver_listener *listener, enum torc_status_code code,
                                        const char *message);
/* Take and give back a reference. A thread that may report after `stop` was called needs one. NULL is allowed. Any
 * thread. */
TORC_API void torc_resolver_listener_ref(torc_resolver_listener *listener);
TORC_API void torc_resolver_listener_unref(torc_resolver_listener *listener);

/* Makes resolvers for targets of one scheme. Torc copies the struct; `scheme` and what `arg` points at must live until
 * `release` is called. */
struct torc_resolver_factory {
    uint64_t size;
    const char *scheme; /* required; "myscheme": targets "myscheme:...". A lower-case letter, then lower-case letters,
                           digits, "+", "-" and "."; targets may have it in upper case. If two factories have the same
                           scheme, the first counts */
    /* Required. Starts a resolver for the part of the target behind "scheme:" ("///x" of "list:///x"); returns its
     * state, which may be NULL. It may report at once. target_rest and the listener are valid until `stop` returns, the
     * listener longer with a reference. Called when the channel leaves IDLE (at the first RPC, say), not in
     * torc_channel_new. When the channel becomes IDLE again, `stop` is called; when it leaves IDLE once more, `start`
     * with another listener. */
    void *(*start)(const char *target_rest, torc_resolver_listener *listener, void *arg);
    /* Asks for newer results. May be NULL. */
    void (*request_reresolution)(void *state);
    /* Ends the resolver; later reports to its listener are dropped. May be NULL. */
    void (*stop)(void *state);
    void *arg; /* handed to start; may be NULL */
    /* The channel gives the factory up, and calls none of its functions again: this function may free `arg`. Called
     * once for each channel that was made with the factory, when the channel and the handles of its RPCs have been
     * freed, by the thread that frees the last of them or that drives the loop. Not called if torc_channel_new failed.
     * May be NULL. */
    void (*release)(void *arg);
};

#ifdef __cplusplus
}
#endif
#endif
