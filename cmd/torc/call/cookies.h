/* torc call --cookies (RFC 6265): stores the cookies of responses and gives those whose path matches to later requests,
 * until Max-Age is over. A jar serves one target. Domain and Expires are ignored. At most 50 cookies, of 4096 bytes. */
#ifndef TORC_COOKIES_H
#define TORC_COOKIES_H

#include <torc/torc.h>

#include "base/buf.h"
#include "base/vec.h"

struct cookie {
    char *name, *value, *path;
    bool secure;
    uint64_t expires_ns; /* UINT64_MAX: never */
};

/* Zero-initialised: empty. */
struct cookie_jar {
    TC_VEC(struct cookie) cookies; /* oldest first */
};

/* Stores the set-cookie fields of the response to a request with this path. `metadata` may be NULL. */
void cookie_jar_take(struct cookie_jar *jar, const torc_metadata *metadata, const char *path, uint64_t now_ns);
/* Stores the cookie field for a request in *out, which must be empty: "a=1; b=2", longer paths first. *out stays empty
 * if no cookie matches. Secure cookies need `tls`. */
void cookie_jar_give(struct cookie_jar *jar, const char *path, bool tls, uint64_t now_ns, struct tc_buf *out);
void cookie_jar_fini(struct cookie_jar *jar);

#endif
