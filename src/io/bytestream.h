/* A connected, non-blocking stream of bytes in both directions: a socket, TLS over another byte stream, or a test's
 * pipe. The owner pulls: it reads after an event, and writes when it likes, until TORC_EAGAIN.
 *
 * on_event comes from the loop, never from inside a call on the byte stream. After READABLE the owner reads until
 * TORC_EAGAIN (or stops wanting to read with set_reading(false)): the event need not come again for bytes that are
 * left. WRITABLE comes once after a write returned TORC_EAGAIN. End of stream and errors show up as READABLE and then
 * in read's result. A stream belongs to one owner, until `close`. Loop thread only. */
#ifndef TC_IO_BYTESTREAM_H
#define TC_IO_BYTESTREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/status.h"
#include "io/addr.h"

enum { TC_BS_READABLE = 1, TC_BS_WRITABLE = 2 };

struct tc_bytestream;
struct tc_tls_identity;

struct tc_bytestream_ops {
    /* Returns the bytes read; 0: the peer ended its side; TORC_EAGAIN: READABLE follows; or another error, with its
     * text in bs->error. */
    ssize_t (*read)(struct tc_bytestream *bs, void *buf, size_t len);
    /* Returns the bytes taken, which may be fewer than given; TORC_EAGAIN: WRITABLE follows; or another error, with its
     * text in bs->error. */
    ssize_t (*writev)(struct tc_bytestream *bs, const struct iovec *iov, int n);
    /* Says whether READABLE is wanted; on at first. */
    void (*set_reading)(struct tc_bytestream *bs, bool on);
    /* Ends the stream: no event comes after. The owner must not use *bs after it; the memory is freed here or later in
     * the loop. Bytes written before still go to the kernel as far as that does not block. */
    void (*close)(struct tc_bytestream *bs);
    /* Returns true when the peer's certificate is also valid for `host` (a name or an IP literal), or is not checked
     * for names. Where a hook has judged the peer (struct tc_tls_opts: one_name), returns false for every name but the
     * handshake's. NULL: there is no TLS. */
    bool (*peer_is)(struct tc_bytestream *bs, struct tc_slice host);
};

struct tc_bytestream {
    const struct tc_bytestream_ops *ops;
    void (*on_event)(void *arg, unsigned events); /* the owner's: TC_BS_* in `events`; NULL: nobody is called */
    void *arg;
    struct tc_status error;           /* set with an error other than TORC_EAGAIN; owned by the byte stream */
    struct tc_addr peer, local;       /* owned by the byte stream; len 0: not known */
    struct tc_tls_identity *tls_peer; /* on servers: the client; NULL: it was not asked for a certificate, or there
                                         is no TLS. Borrowed */
    const char *alpn;                 /* the protocol that TLS negotiated ("h2"), NULL without TLS; borrowed */
    bool secure;                      /* confidentiality and integrity: call credentials may be sent */
    bool cut;                         /* read returned 0 without the close_notify that ends a TLS stream */
};

/* Sets the function that hears the events; NULL: none. */
static inline void tc_bytestream_set_handler(struct tc_bytestream *bs, void (*on_event)(void *arg, unsigned events),
                                             void *arg)
{
    bs->on_event = on_event;
    bs->arg = arg;
}

#endif
