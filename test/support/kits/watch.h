/* Two interceptors ("outer", "inner") that record calls of their hooks and return the test's verdict at one hook; a
 * backend with a thread of its own, a runtime, and a channel with both interceptors. Hooks run on the runtime's thread,
 * or on the test's if the test drives the runtime; release may run on either. */
#ifndef TC_SUPPORT_KITS_WATCH_H
#define TC_SUPPORT_KITS_WATCH_H

#include <stdatomic.h>

#include <torc/torc.h>

#include "support/kits/backends.h"

/* Methods of the backend. ECHO, HANG and FAIL are those of kits/echo.h. SEEN answers "seen". RETRY and HEDGE have a
 * retry and a hedging policy, and answer "done"; the first server_fails calls of both together fail with UNAVAILABLE.
 * The SILENT methods end with OK and without a message; SILENT_HEDGE has the hedging policy. */
#define KIT_WATCH_ECHO "/t/Echo"
#define KIT_WATCH_SEEN "/t/Seen"
#define KIT_WATCH_HANG "/torc.test.Backend/Hang"
#define KIT_WATCH_FAIL "/torc.test.Backend/Fail"
#define KIT_WATCH_RETRY "/retry/M"
#define KIT_WATCH_HEDGE "/hedge/M"
#define KIT_WATCH_SILENT "/t/Silent"
#define KIT_WATCH_SILENT_HEDGE "/hedge/Silent"

enum kit_watch_hook {
    KIT_WATCH_START,
    KIT_WATCH_ATTEMPT,
    KIT_WATCH_SENT,
    KIT_WATCH_RECEIVED,
    KIT_WATCH_STATUS,
    KIT_WATCH_HOOKS,
    KIT_WATCH_NEVER
};

struct kit_watcher {
    char name; /* the first letter of the interceptor's name */
    enum kit_watch_hook at;
    int verdict;                        /* at the hook `at` */
    const char *text;                   /* of the verdict; NULL: none */
    void (*in_hook)(torc_rpc *rpc);     /* called at the hook `at`, before its verdict; may be NULL */
    int starts, ends, releases, picks;  /* calls of on_start, on_end, release and on_pick */
    int opened, closed, sent, received; /* events of on_wire */
    int64_t bytes;                      /* of all these events */
    torc_pending *pending;              /* of the verdict TORC_PENDING; NULL: no RPC is delayed */
};

struct kit_watch {
    struct kit_backends *kit;
    torc_runtime *rt;
    torc_channel *ch;
    struct kit_watcher outer, inner;
    /* The hooks that were called, except on_pick, on_wire and release, in order, each after the letter of its
     * interceptor: s start, aN attempt, >(M) sent, <(M) received, =CODE status, .CODE end. Example:
     * "os is o=7 i.7 o.7" */
    char events[512];
    char last_text[128]; /* of the status, as the last on_end saw it */
    /* server_calls: the calls of RETRY and HEDGE since the setup. server_fails: how many of these calls, from the first
     * on, fail. The setup sets both to 0. */
    atomic_int server_calls, server_fails;
    char server_saw[32]; /* the header x-added of the last call of KIT_WATCH_SEEN; "-": it had none */
};
extern struct kit_watch kit_watch;

extern const char kit_watch_config[]; /* the service config */

/* Fixtures for cmocka. The group's fixtures make and free the backend, those of a test the runtime and the channel.
 * kit_watch_setup makes a runtime that the test drives, kit_watch_setup_thread a runtime with a thread. The teardown
 * asserts that each interceptor was released once. */
int kit_watch_group_setup(void **state);
int kit_watch_group_teardown(void **state);
int kit_watch_setup_in(enum torc_runtime_mode mode);
int kit_watch_setup(void **state);
int kit_watch_setup_thread(void **state);
int kit_watch_teardown(void **state);

/* Resets the watcher to no events and no verdict, and returns an interceptor that reports to the watcher. `name` is
 * borrowed by the interceptor. The watcher must outlive the interceptor's release. */
struct torc_interceptor kit_watch_interceptor_of(struct kit_watcher *w, const char *name);
/* Called after the test has freed the channel: drives the runtime until the channel's interceptors are released, makes
 * another channel, and resets the watchers. Not with kit_watch_setup_thread. */
void kit_watch_channel_renew(void);

/* Makes a unary RPC with the request "m". Asserts the status code, and that the status text contains `text`.
 * timeout_ms: as in struct torc_call_options; 0: none. */
void kit_watch_expect(const char *method, int64_t timeout_ms, int code, const char *text);
/* Asserts and clears the events. */
void kit_watch_expect_events(const char *wanted);
void kit_watch_expect_message(const torc_message *m, const char *text);

/* kit_watch_delay makes the watcher delay the next RPC that comes to the hook. kit_watch_turn_until_pending drives the
 * runtime until the RPC is delayed (not with kit_watch_setup_thread). kit_watch_resume ends the delay with this verdict
 * and text (NULL: none); the watcher then delays no further RPC. */
void kit_watch_delay(struct kit_watcher *w, enum kit_watch_hook at);
void kit_watch_turn_until_pending(const struct kit_watcher *w);
void kit_watch_resume(struct kit_watcher *w, int verdict, const char *text);
/* Starts a unary RPC of KIT_WATCH_ECHO with the request "m", and drives the runtime until the inner watcher delays the
 * RPC at the hook. *result is NULL until the RPC has ended, then a reference to its result. The caller frees the stream
 * that is returned, and *result. Not with kit_watch_setup_thread. */
torc_stream *kit_watch_start_delayed(enum kit_watch_hook at, torc_result **result);
/* Waits for the end of the RPC and frees the stream. Returns the result, which the caller frees. */
torc_result *kit_watch_finish(torc_stream *s);
/* The callback of torc_unary_async: stores a reference to the result, which the test frees, in the torc_result * at
 * `arg`. */
void kit_watch_drop_result(const torc_result *result, void *arg);

#endif
