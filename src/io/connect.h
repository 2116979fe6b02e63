/* One attempt to connect to one address, bounded in time. Loop thread only. */
#ifndef TC_IO_CONNECT_H
#define TC_IO_CONNECT_H

#include "io/bytestream.h"
#include "io/loop.h"

struct tc_connect;

struct tc_connect_opts {
    bool proxy;          /* the address is a proxy's: texts say so */
    uint64_t timeout_ms; /* 0: none */
    /* How long sent bytes may go unacknowledged on the connection before the system gives it up (TCP_USER_TIMEOUT,
     * A18). 0: the system's default, about a quarter of an hour. */
    uint64_t user_timeout_ms;
};

/* Called once from the loop, never from inside tc_connect_start: with a byte stream that the callee owns, or with NULL
 * and a status (UNAVAILABLE; the text names the address and the reason), which is borrowed. With a byte stream `error`
 * is NULL or OK. */
typedef void (*tc_connect_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Starts an attempt, which frees itself before it calls fn. Never returns NULL. addr and opts are borrowed for the
 * call; opts may be NULL (no timeout). */
struct tc_connect *tc_connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                    const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg);
/* Gives up; fn is not called afterwards. Must not be called once fn has been called, nor from inside it. */
void tc_connect_cancel(struct tc_connect *c);

#endif
