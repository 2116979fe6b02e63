/* Stateful sessions for tests on real sockets: the filter as YAML, RPCs with cookies and what they set. The cookie's
 * name is "s". Whatever fails in here fails the test. */
#ifndef TC_SUPPORT_SESSION_KIT_H
#define TC_SUPPORT_SESSION_KIT_H

#include "support/mesh_kit.h"

/* HTTP filters for mesh_kit_put_filtered, and what routes add: SESSION("name: s, path: /x") */
#define SESSION_TYPE(x) "\"@type\": type.googleapis.com/envoy.extensions." x
#define COOKIE_TYPE SESSION_TYPE("http.stateful_session.cookie.v3.CookieBasedSessionState")
#define FILTER_TYPE SESSION_TYPE("filters.http.stateful_session.v3.StatefulSession")
#define PER_ROUTE_TYPE SESSION_TYPE("filters.http.stateful_session.v3.StatefulSessionPerRoute")
#define STATE(cookie) "session_state: {name: x, typed_config: {" COOKIE_TYPE ", cookie: {" cookie "}}}"
#define SESSION(cookie) "{name: session, typed_config: {" FILTER_TYPE ", " STATE(cookie) "}},"
#define NO_SESSION "{name: session, typed_config: {" FILTER_TYPE "}},"
#define PER_ROUTE(fields) "typed_per_filter_config: {session: {" PER_ROUTE_TYPE ", " fields "}}"
#define SESSION_OFF PER_ROUTE("disabled: true")
#define SESSION_ON PER_ROUTE("stateful_session: {" STATE("name: s") "}")
#define SESSION_METHOD "/test.Service/Method"

struct session_world {
    struct mesh_kit *k;
    torc_channel *ch;
};

/* What came of one RPC. */
struct session_answer {
    size_t backend;
    int code;
    char *set_cookie; /* NULL: none */
};

void session_answer_fini(struct session_answer *a);
/* cookies: values of "cookie" fields, up to a NULL. */
struct session_answer session_call_with(struct session_world *w, const char *method, const char *request,
                                        const char *const *cookies);
/* One RPC that must succeed; cookie: NULL for none. */
struct session_answer session_call(struct session_world *w, const char *cookie);
/* The backend that it reaches, of an RPC that gets no new cookie. */
size_t session_reaches(struct session_world *w, const char *cookie);
/* An RPC that begins a session, or goes to another endpoint or cluster: that endpoint, and its cookie (tc_free). */
size_t session_begin(struct session_world *w, const char *old, const char *cluster, char **cookie);
/* "s=..." of that plain text (printf form), for tc_free. */
char *session_cookie(const char *fmt, ...) TC_PRINTF(1, 2);
/* What a set-cookie says in plain; the value to send back in *cookie. Both for tc_free. */
char *session_read_cookie(const char *set_cookie, char **cookie);
/* RPCs until one reaches the backend, or none does any more: what the control plane sent has arrived. */
void session_wait(struct session_world *w, const char *cookie, size_t i);
void session_wait_leaves(struct session_world *w, const char *cookie, size_t i);

#endif
