/* Stateful sessions over real sockets: the filter's config as YAML, and RPCs that send and get cookies. The cookie's
 * name is "s". A failure in the kit fails the test. */
#ifndef TC_SUPPORT_KITS_SESSION_H
#define TC_SUPPORT_KITS_SESSION_H

#include "support/kits/mesh.h"

/* SESSION("name: s, path: /x") and NO_SESSION (without a cookie) are HTTP filters for kit_mesh_put_filtered.
 * SESSION_OFF and SESSION_ON are overrides for a route. */
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

/* The result of one RPC, for kit_session_answer_fini. */
struct kit_session_answer {
    size_t backend;   /* that the RPC reached last; SIZE_MAX: none */
    int code;         /* a TORC_STATUS_... */
    char *set_cookie; /* the value of "set-cookie"; owned; NULL: none was set */
};

void kit_session_answer_fini(struct kit_session_answer *a);
/* Makes one RPC with the text `request` and a deadline of 60 s; the RPC may fail. cookies: values of "cookie" fields,
 * ended by NULL. */
struct kit_session_answer kit_session_call_with(struct kit_mesh_world *w, const char *method, const char *request,
                                                const char *const *cookies);
/* Makes one RPC of KIT_SESSION_METHOD, which must succeed. cookie: NULL for none. */
struct kit_session_answer kit_session_call(struct kit_mesh_world *w, const char *cookie);
/* Makes an RPC that must succeed and must not get a new cookie. Returns the backend that answered. */
size_t kit_session_reaches(struct kit_mesh_world *w, const char *cookie);
/* Makes an RPC with the cookie `old` (NULL: none) that must succeed and get a new cookie, for the backend that answers
 * and this cluster. Returns the backend that answered. Stores the cookie to send back in *cookie (tc_free). */
size_t kit_session_begin(struct kit_mesh_world *w, const char *old, const char *cluster, char **cookie);
/* Makes the cookie "s=..." of this plain text (printf form). The caller frees it with tc_free. */
char *kit_session_cookie(const char *fmt, ...) TC_PRINTF(1, 2);
/* Decodes a set-cookie. Returns its plain text, and stores the cookie to send back in *cookie. The caller frees both
 * with tc_free. */
char *kit_session_read_cookie(const char *set_cookie, char **cookie);
/* kit_session_wait calls with the cookie until backend i answers: 100,000 calls at most, which may fail with
 * UNAVAILABLE. kit_session_wait_leaves calls with the cookie, without a limit, until another backend answers: then the
 * client has an update that moves the session. Each call of kit_session_wait_leaves must succeed. */
void kit_session_wait(struct kit_mesh_world *w, const char *cookie, size_t i);
void kit_session_wait_leaves(struct kit_mesh_world *w, const char *cookie, size_t i);

#endif
