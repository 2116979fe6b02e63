/* torc call --cookies (RFC 6265): stores the cookies of responses and gives those whose path matches to later requests,
 * until Max-Age is over. A jar serves one target. Domain and Expires are ignored. A jar has at most 50 cookies. A
 * set-cookie field of more than 4096 bytes is ignored. One thread. */
#ifndef TORC_COOKIES_H
#define TORC_COOKIES_H

#include <torc/torc.h>

#include "base/buf.h"
#include "base/vec.h"

struct cookie {
    char *name, *value, *path; /* owned */
    bool secure;
    uint64_t expires_ns; /* on the clock of `now_ns` below; UINT64_MAX: never */
};

/* Zero-initialised: empty. */
struct cookie_jar {
    TC_VEC(struct cookie) cookies; /* oldest first */
};

/* Stores the cookies of the set-cookie fields of the response to a request with this path. `metadata` may be NULL.
 * `now_ns` here and below: the monotonic clock. */
void cookie_jar_take(struct cookie_jar *jar, const torc_metadata *metadata, const char *path, uint64_t now_ns);
/* Stores the cookie field for a request in *out, which must be empty: "a=1; b=2", longer paths first, then older
 * cookies first. *out stays empty if no cookie matches. Secure cookies need `tls`. */
void cookie_jar_give(struct cookie_jar *jar, const char *path, bool tls, uint64_t now_ns, struct tc_buf *out);
void cookie_jar_fini(struct cookie_jar *jar);

#endif
