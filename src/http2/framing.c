/* The decoder of length-prefixed messages.
 *
 *   have < TC_H2_PREFIX_LEN  The prefix comes in; 0: between messages. `msg` is NULL.
 *   have = TC_H2_PREFIX_LEN  The content comes in: `msg` has `at` of its `len` bytes, and room for `cap`.
 *
 * The decoder owns at most one message, the one under way, and takes bytes up to the message's end. The bytes after
 * that stay with the caller (receive.c), so that demand bounds the decoding. A whole message goes to the caller. After
 * a failure only tc_h2_decoder_fini makes the decoder usable again. For one thread at a time. */
#include "http2/framing.h"

#include "base/mem.h"

/* The first room for an announced message, or the message's length if that is less. The room grows as bytes come
 * (decoder_next_room), so that a large announcement alone costs no more than this. */
enum { FIRST_ROOM = 64 << 10 };

void tc_h2_decoder_init(struct tc_h2_decoder *d, size_t max_bytes)
{
    *d = (struct tc_h2_decoder){.max_bytes = max_bytes};
}

void tc_h2_decoder_fini(struct tc_h2_decoder *d)
{
    tc_rstr_clear(&d->msg);
    d->have = 0;
}

void tc_h2_prefix(uint8_t prefix[TC_H2_PREFIX_LEN], bool compressed, size_t len)
{
    prefix[0] = compressed ? 1 : 0;
    prefix[1] = (uint8_t)(len >> 24);
    prefix[2] = (uint8_t)(len >> 16);
    prefix[3] = (uint8_t)(len >> 8);
    prefix[4] = (uint8_t)len;
}

static int decoder_no_memory(size_t len, struct tc_status *error)
{
    *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                            "no memory for a received message of %zu bytes", len);
    return TORC_ELIMIT;
}

/* Returns d->msg (NULL: a new message) with room for `cap` bytes. Room for the whole message comes from a block that is
 * reused later, if blocks of that size are reused, and the bytes so far move there; otherwise the block is resized.
 * Returns NULL, with d->msg unchanged, if there is not enough memory. */
static struct tc_rstr *decoder_room(const struct tc_h2_decoder *d, size_t cap)
{
    if (cap < d->len || !tc_rstr_room_is_reused(cap))
        return tc_rstr_resize(d->blocks, d->msg, cap);
    struct tc_rstr *whole = tc_rstr_room(d->blocks, cap);
    if (whole && d->msg) {
        memcpy(whole->data, d->msg->data, d->at);
        tc_rstr_unref(d->msg);
    }
    return whole;
}

/* Returns false, with the decoder unchanged, if there is not enough memory. */
static bool decoder_grow(struct tc_h2_decoder *d, size_t cap)
{
    struct tc_rstr *larger = decoder_room(d, cap);
    if (!larger)
        return false;
    d->msg = larger;
    d->cap = cap;
    return true;
}

/* Returns the next size of the room: the whole message, if a block of that size lies ready, or if the present room is
 * more than half of the message; otherwise twice the present room, or `needed` if that is more. */
static size_t decoder_next_room(const struct tc_h2_decoder *d, size_t needed)
{
    if (d->cap > d->len / 2 || tc_rstr_room_is_kept(d->blocks, d->len))
        return d->len;
    return TC_MAX(d->cap * 2, needed);
}

/* The prefix is complete: checks it before anything is allocated for the message. Returns what tc_h2_decoder_push
 * returns. */
static int decoder_begin_message(struct tc_h2_decoder *d, struct tc_status *error)
{
    const uint8_t *p = d->prefix;
    size_t len = tc_h2_prefix_len(p);
    if (p[0] > 1) {
        *error =
            tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "received message with invalid flag byte %u", p[0]);
        return TORC_EPROTO;
    }
    if (p[0] == 1 && d->encoding == TC_H2_IDENTITY) {
        *error =
            tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_CODEC, "received compressed message without grpc-encoding");
        return TORC_EPROTO;
    }
    if (len > d->max_bytes || len > SIZE_MAX - 4096) {
        *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                "received message larger than max (%zu vs. %zu)", len, d->max_bytes);
        return TORC_ELIMIT;
    }
    d->len = len;
    d->at = 0;
    return decoder_grow(d, TC_MIN(len, (size_t)FIRST_ROOM)) ? 0 : decoder_no_memory(len, error);
}

/* The message is complete: hands it over in *message, inflated if it came compressed. Returns what tc_h2_decoder_push
 * returns. */
static int decoder_end_message(struct tc_h2_decoder *d, struct tc_rstr **message, struct tc_status *error)
{
    struct tc_rstr *msg = d->msg;
    msg->len = d->len;
    msg->data[d->len] = '\0';
    d->msg = NULL;
    d->have = 0;
    if (d->prefix[0] == 0) {
        *message = msg;
        return 0;
    }
    int rc = tc_h2_gunzip(d->blocks, tc_rstr_slice(msg), d->max_bytes, message);
    tc_rstr_unref(msg);
    if (rc == 0)
        (*message)->compressed = true;
    if (rc == TORC_EAGAIN)
        return decoder_no_memory(d->len, error);
    if (rc == TORC_ELIMIT)
        *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                "received message larger than max after decompression (max %zu)", d->max_bytes);
    else if (rc)
        *error =
            tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_CODEC, "received message could not be decompressed (gzip)");
    return rc;
}

int tc_h2_decoder_push(struct tc_h2_decoder *d, const void *data, size_t len, size_t *used, struct tc_rstr **message,
                       struct tc_status *error)
{
    size_t head = TC_MIN(len, (size_t)(TC_H2_PREFIX_LEN - d->have)), left = len - head;
    const uint8_t *p = (const uint8_t *)data + head;
    *message = NULL;
    *used = head;
    if (head) {
        memcpy(d->prefix + d->have, data, head);
        d->have = (uint8_t)(d->have + head);
    }
    if (d->have < TC_H2_PREFIX_LEN)
        return 0;
    if (!d->msg) {
        int rc = decoder_begin_message(d, error);
        if (rc)
            return rc;
    }
    size_t take = TC_MIN(left, d->len - d->at);
    if (take > d->cap - d->at && !decoder_grow(d, decoder_next_room(d, d->at + take)))
        return decoder_no_memory(d->len, error);
    if (take)
        memcpy(d->msg->data + d->at, p, take);
    d->at += take;
    *used += take;
    return d->at == d->len ? decoder_end_message(d, message, error) : 0;
}
