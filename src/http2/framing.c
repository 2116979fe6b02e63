#include "http2/framing.h"

#include "base/mem.h"

/* Room that is taken before the bytes have come; a peer that only announces much costs no more. */
#define FIRST_ROOM (64u * 1024u)
/* From there on in few steps to what messages are by default at most; then in proportion to what has come. */
#define SECOND_ROOM (1024u * 1024u)
#define THIRD_ROOM (4096u * 1024u)

void tc_h2_decoder_init(struct tc_h2_decoder *d, size_t max_bytes)
{
    *d = (struct tc_h2_decoder){.max_bytes = max_bytes};
}

void tc_h2_decoder_fini(struct tc_h2_decoder *d)
{
    tc_rstr_unref(d->msg);
    d->msg = NULL;
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

/* Is memory for so much kept for the next message? */
static bool in_block(size_t cap)
{
    size_t bytes = sizeof(struct tc_rstr) + cap + 1;
    return bytes <= TC_BLOCKS_LARGEST || (bytes > TC_BLOCKS_LARGE_OVER && bytes <= TC_BLOCKS_LARGE);
}

static int no_memory(size_t len, struct tc_status *error)
{
    *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, "no memory for a received message of %zu bytes", len);
    return TORC_ELIMIT;
}

/* NULL when there is not so much memory. */
static struct tc_rstr *make_room(struct tc_h2_decoder *d, size_t cap)
{
    if (in_block(cap))
        return tc_rstr_room(d->blocks, cap);
    struct tc_rstr *msg = tc_try_realloc(NULL, sizeof(*msg) + cap + 1);
    if (!msg)
        return NULL;
    tc_ref_init(&msg->ref);
    msg->in_block = false;
    return msg;
}

/* False when there is not so much memory; all is then as it was. */
static bool grow(struct tc_h2_decoder *d, size_t cap)
{
    struct tc_rstr *before = d->msg;
    bool apart = before->in_block || in_block(cap);
    struct tc_rstr *larger = apart ? make_room(d, cap) : tc_try_realloc(before, sizeof(*before) + cap + 1);
    if (!larger)
        return false;
    if (apart) {
        memcpy(larger->data, before->data, d->at);
        tc_rstr_unref(before);
    }
    d->msg = larger;
    d->cap = cap;
    return true;
}

static size_t next_room(const struct tc_h2_decoder *d, size_t needed)
{
    size_t room = d->cap < SECOND_ROOM ? SECOND_ROOM : d->cap < THIRD_ROOM ? THIRD_ROOM : d->cap;
    if (room == d->cap)
        room = d->cap > d->len / 2 ? d->len : d->cap * 2;
    return TC_MIN(TC_MAX(room, needed), d->len);
}

/* The prefix is whole: checks it before anything is allocated for it. */
static int begin_message(struct tc_h2_decoder *d, struct tc_status *error)
{
    const uint8_t *p = d->prefix;
    size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (p[0] > 1) {
        *error = tc_status_make(TORC_STATUS_INTERNAL, "received message with invalid flag byte %u", p[0]);
        return TORC_EPROTO;
    }
    if (p[0] == 1 && d->encoding == TC_H2_IDENTITY) {
        *error = tc_status_make(TORC_STATUS_INTERNAL, "received compressed message without grpc-encoding");
        return TORC_EPROTO;
    }
    if (len > d->max_bytes || len > SIZE_MAX - 4096) {
        *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, "received message larger than max (%zu vs. %zu)", len,
                                d->max_bytes);
        return TORC_ELIMIT;
    }
    d->len = len;
    d->at = 0;
    d->cap = TC_MIN(len, (size_t)FIRST_ROOM);
    d->msg = make_room(d, d->cap);
    return d->msg ? 0 : no_memory(len, error);
}

static int end_message(struct tc_h2_decoder *d, struct tc_rstr **message, struct tc_status *error)
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
    int rc = tc_h2_gunzip(tc_rstr_slice(msg), d->max_bytes, message);
    tc_rstr_unref(msg);
    if (rc == TORC_EAGAIN)
        return no_memory(d->len, error);
    if (rc == TORC_ELIMIT)
        *error = tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED,
                                "received message larger than max after decompression (max %zu)", d->max_bytes);
    else if (rc)
        *error = tc_status_make(TORC_STATUS_INTERNAL, "received message could not be decompressed (gzip)");
    return rc;
}

int tc_h2_decoder_push(struct tc_h2_decoder *d, const void *data, size_t len, size_t *used, struct tc_rstr **message,
                       struct tc_status *error)
{
    const uint8_t *p = data;
    size_t left = len;
    *message = NULL;
    while (d->have < TC_H2_PREFIX_LEN && left) {
        d->prefix[d->have++] = *p++;
        left--;
    }
    *used = len - left;
    if (d->have < TC_H2_PREFIX_LEN)
        return 0;
    if (!d->msg) {
        int rc = begin_message(d, error);
        if (rc)
            return rc;
    }
    size_t take = TC_MIN(left, d->len - d->at);
    if (take > d->cap - d->at && !grow(d, next_room(d, d->at + take)))
        return no_memory(d->len, error);
    if (take)
        memcpy(d->msg->data + d->at, p, take);
    d->at += take;
    *used += take;
    return d->at == d->len ? end_message(d, message, error) : 0;
}
