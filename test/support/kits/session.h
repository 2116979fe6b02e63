/* Stateful sessions over real sockets: the filter as YAML, RPCs with cookies, and the cookies set. The cookie's name is
 * "s". A failure in the kit fails the test. */
#ifndef TC_SUPPORT_KITS_SESSION_H
#define TC_SUPPORT_KITS_SESSION_H

#include "support/kits/mesh.h"

/* HTTP filters for kit_mesh_put_filtered, and the per-route override: SESSION("name: s, path: /x") */
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
#define KIT_SESSION_METHOD "/test.Service/Method"

/* The result of one RPC. */
struct kit_session_answer {
    size_t backend; /* SIZE_MAX: none */
    int code;
    char *set_cookie; /* NULL: none was set */
};

void kit_session_answer_fini(struct kit_session_answer *a);
/* Makes one RPC with a deadline of 60 s, whatever its outcome. cookies: values of "cookie" fields, ended by NULL. */
struct kit_session_answer kit_session_call_with(struct kit_mesh_world *w, const char *method, const char *request,
                                                const char *const *cookies);
/* Makes one RPC, which must succeed. cookie: NULL for none. */
struct kit_session_answer kit_session_call(struct kit_mesh_world *w, const char *cookie);
/* Makes an RPC that must not get a new cookie. Returns the backend that it reached. */
size_t kit_session_reaches(struct kit_mesh_world *w, const char *cookie);
/* Makes an RPC with the cookie `old` (NULL: none) that must get a new cookie, for the backend that answers and this
 * cluster. Returns that backend, and the cookie to send back in *cookie (tc_free). */
size_t kit_session_begin(struct kit_mesh_world *w, const char *old, const char *cluster, char **cookie);
/* Makes the cookie "s=..." of this plain text (printf form), for tc_free. */
char *kit_session_cookie(const char *fmt, ...) TC_PRINTF(1, 2);
/* Decodes a set-cookie: returns its plain text, and in *cookie the value to send back. Both for tc_free. */
char *kit_session_read_cookie(const char *set_cookie, char **cookie);
/* kit_session_wait calls until an RPC of the session reaches the backend (100,000 calls at most, which may fail with
 * UNAVAILABLE). kit_session_wait_leaves calls, without a limit, until an RPC reaches another backend: the client then
 * has an update that moves the session. */
void kit_session_wait(struct kit_mesh_world *w, const char *cookie, size_t i);
void kit_session_wait_leaves(struct kit_mesh_world *w, const char *cookie, size_t i);

#endif
