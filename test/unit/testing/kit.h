/* Shared by the tests that are linked with libtorc-testing: a server that says its name, and calls to it. Uses only
 * Torc's public API. */
#ifndef TC_UNIT_TESTING_KIT_H
#define TC_UNIT_TESTING_KIT_H

#include <stdio.h>
#include <string.h>

#include <torc/testing.h>
#include <torc/torc.h>

#include "support/cmocka.h"

/* A server that answers /t.Test/Say with its name. Only the thread that turns the world changes the members. */
struct says {
    torc_server *server; /* the test's */
    const char *name;    /* borrowed; valid as long as the server */
    int fails;           /* how many of the next calls end with UNAVAILABLE */
    int calls;           /* how many calls came */
    int64_t last;        /* when the last call came, by torc_time_ms */
};

static void says_on_call(torc_server_call *call, const torc_message *request, void *arg)
{
    struct says *s = arg;
    (void)request;
    s->calls++;
    s->last = torc_time_ms();
    if (s->fails > 0) {
        s->fails--;
        torc_server_call_finish(call, TORC_STATUS_UNAVAILABLE, "not now", NULL);
        return;
    }
    torc_server_call_reply(call, s->name, strlen(s->name));
}

/* Starts a server at `address` that answers with `name`. The test frees s->server; `s` must last until then. */
static inline void says_begin(struct says *s, const char *name, const char *address)
{
    struct torc_handler handler = {TORC_SIZE(torc_handler), .unary = says_on_call, .arg = s};
    *s = (struct says){.name = name, .server = torc_server_new(NULL, NULL)};
    assert_non_null(s->server);
    assert_int_equal(torc_server_add_method(s->server, "/t.Test/Say", &handler, NULL), 0);
    assert_int_equal(torc_server_listen(s->server, address, torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(s->server, NULL), 0);
}

/* Calls /t.Test/Say and waits. Stores the server's name, or the code's number and the text: "14 not now", cut to 127
 * bytes. Returns the code. `options` may be NULL. */
static inline int say(torc_channel *channel, const struct torc_call_options *options, char said[128])
{
    torc_result *r = torc_unary(channel, "t.Test/Say", "", 0, options);
    int code = torc_result_code(r);
    if (code == TORC_STATUS_OK)
        snprintf(said, 128, "%.*s", (int)torc_message_size(torc_result_response(r)),
                 (const char *)torc_message_data(torc_result_response(r)));
    else
        snprintf(said, 128, "%d %s", code, torc_result_text(r));
    torc_result_free(r);
    return code;
}

#endif
