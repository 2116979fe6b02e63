/* gRPC's length-prefixed messages (PROTOCOL-HTTP2.md, "Length-Prefixed-Message"): the five-byte prefix, and a decoder
 * that takes bytes as they come. A decoder is for one thread. */
#ifndef TC_HTTP2_FRAMING_H
#define TC_HTTP2_FRAMING_H

#include "base/status.h"
#include "http2/encoding.h"

enum { TC_H2_PREFIX_LEN = 5 };

struct tc_h2_decoder {
    size_t max_bytes;             /* of a message, before and after decompression */
    struct tc_blocks *blocks;     /* memory for messages; NULL, as after init: the system's */
    enum tc_h2_encoding encoding; /* of messages whose flag byte is 1; TC_H2_IDENTITY, as after init, refuses them */
    uint8_t prefix[TC_H2_PREFIX_LEN];
    uint8_t have;        /* bytes of the prefix so far */
    struct tc_rstr *msg; /* the message under way, once the prefix is whole */
    size_t len, cap, at; /* its length, the room taken for it so far, bytes received */
};

void tc_h2_decoder_init(struct tc_h2_decoder *d, size_t max_bytes);
/* Drops the message under way; the decoder is then between messages. */
void tc_h2_decoder_fini(struct tc_h2_decoder *d);
/* Returns true between messages. */
static inline bool tc_h2_decoder_idle(const struct tc_h2_decoder *d)
{
    return d->have == 0;
}
/* Takes bytes up to the end of one message and stores how many in *used. Stores the message in *message once it is
 * complete; the caller owns it. Otherwise *message is NULL, and all bytes were taken.
 *
 * Returns 0, or TORC_ELIMIT or TORC_EPROTO with the status of the RPC in *error, which the caller owns. After a failure
 * only tc_h2_decoder_fini may be called. */
int tc_h2_decoder_push(struct tc_h2_decoder *d, const void *data, size_t len, size_t *used, struct tc_rstr **message,
                       struct tc_status *error);

/* Writes the prefix of a message of `len` bytes, at most TC_H2_MESSAGE_MAX (http2/stream.h). */
void tc_h2_prefix(uint8_t prefix[TC_H2_PREFIX_LEN], bool compressed, size_t len);
/* Returns the length that a prefix announces. */
static inline size_t tc_h2_prefix_len(const uint8_t p[TC_H2_PREFIX_LEN])
{
    return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

#endif
