/* A connected, non-blocking run of bytes in both directions: a socket, TLS over another byte stream, or a test's pipe.
 * Pull in style: the owner reads and writes when told that it can.
 *
 * on_event comes from the loop, never from inside a call on the byte stream. READABLE is level-like: after it the owner
 * reads until TORC_EAGAIN (or stops wanting to read with set_reading(false)). WRITABLE comes once after a write
 * returned TORC_EAGAIN. End of stream and errors show up as READABLE and then in read's result. */
#ifndef TC_IO_BYTESTREAM_H
#define TC_IO_BYTESTREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/status.h"
#include "io/addr.h"

enum { TC_BS_READABLE = 1, TC_BS_WRITABLE = 2 };

struct tc_bytestream;

struct tc_bytestream_ops {
    /* > 0: bytes read; 0: the peer ended its side; TORC_EAGAIN: READABLE follows; else an error, with its text in
     * bs->error. */
    ssize_t (*read)(struct tc_bytestream *bs, void *buf, size_t len);
    /* > 0: bytes taken, maybe fewer than given; TORC_EAGAIN: WRITABLE follows; else an error as above. */
    ssize_t (*writev)(struct tc_bytestream *bs, const struct iovec *iov, int n);
    /* Whether READABLE is wanted (on at first). */
    void (*set_reading)(struct tc_bytestream *bs, bool on);
    /* Ends it: no event comes after; the memory goes when the loop is done with it. Everything written so far is still
     * handed to the kernel where that does not block. */
    void (*close)(struct tc_bytestream *bs);
    /* Whether what the peer has proved of itself holds for that host (a name or an IP literal). NULL: it proved
     * nothing, and nobody wanted it to. */
    bool (*peer_is)(struct tc_bytestream *bs, struct tc_slice host);
};

struct tc_bytestream {
    const struct tc_bytestream_ops *ops;
    void (*on_event)(void *arg, unsigned events);
    void *arg;
    struct tc_status error; /* set with an error result; owned by the byte stream */
    struct tc_addr peer, local;
    const char *alpn; /* what TLS negotiated ("h2"), NULL without TLS; borrowed */
    bool secure;      /* confidentiality and integrity: call credentials may be sent */
    bool cut;         /* read gave 0, and the peer's TLS had not said that this would be the end */
};

static inline void tc_bytestream_set_handler(struct tc_bytestream *bs, void (*on_event)(void *arg, unsigned events),
                                             void *arg)
{
    bs->on_event = on_event;
    bs->arg = arg;
}

#endif
