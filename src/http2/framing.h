/* gRPC's length-prefixed messages (PROTOCOL-HTTP2.md, "Length-Prefixed-Message"): a decoder that takes bytes as they
 * come, the five-byte prefix, and gzip with bounded output. */
#ifndef TC_HTTP2_FRAMING_H
#define TC_HTTP2_FRAMING_H

#include "base/rstr.h"
#include "base/status.h"
#include "http2/stream.h"

#define TC_H2_PREFIX_LEN 5

struct tc_h2_decoder {
    size_t max_bytes;             /* limit of a message, before and after decompression */
    struct tc_blocks *blocks;     /* where small messages lie; NULL (after init): in the system's memory */
    enum tc_h2_encoding encoding; /* what a set flag byte means */
    uint8_t prefix[TC_H2_PREFIX_LEN];
    uint8_t have;        /* bytes of the prefix so far */
    struct tc_rstr *msg; /* the message under way, once the prefix is whole */
    size_t len, cap, at; /* its size, the room taken for it so far, bytes received */
};

void tc_h2_decoder_init(struct tc_h2_decoder *d, size_t max_bytes);
void tc_h2_decoder_fini(struct tc_h2_decoder *d);
/* True between messages. */
static inline bool tc_h2_decoder_idle(const struct tc_h2_decoder *d)
{
    return d->have == 0;
}
/* Takes bytes up to the end of one message; *used says how many. *message is set when one is whole (the caller owns
 * it), else NULL. TORC_ELIMIT or TORC_EPROTO with the RPC's status in *error; the decoder is then spent. */
int tc_h2_decoder_push(struct tc_h2_decoder *d, const void *data, size_t len, size_t *used, struct tc_rstr **message,
                       struct tc_status *error);

/* The prefix of a message of `len` bytes (at most UINT32_MAX). */
void tc_h2_prefix(uint8_t prefix[TC_H2_PREFIX_LEN], bool compressed, size_t len);

/* A gzip member with the bytes. NULL when zlib fails. */
struct tc_rstr *tc_h2_gzip(struct tc_slice data);
/* The content of a gzip member, at most max_bytes. TORC_ELIMIT beyond that, TORC_EPROTO when it is no gzip, TORC_EAGAIN
 * when there is not enough memory. */
int tc_h2_gunzip(struct tc_slice data, size_t max_bytes, struct tc_rstr **out);

#endif
