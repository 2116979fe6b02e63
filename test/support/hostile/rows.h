/* The cases of hostile servers, and the expected outcome of an RPC to each: unary, unless HOSTILE_UNREAD. */
#ifndef TC_SUPPORT_HOSTILE_ROWS_H
#define TC_SUPPORT_HOSTILE_ROWS_H

#include "support/hostile/server.h"

enum {
    HOSTILE_NEXT = 1,   /* a second RPC on the same connection succeeds with the header "intact: yes" */
    HOSTILE_SHORT = 2,  /* the deadline is 300 ms */
    HOSTILE_MANY = 4,   /* 200 RPCs at once, each with one of the outcomes */
    HOSTILE_LARGE = 8,  /* the request has 4 MB */
    HOSTILE_DIALS = 16, /* connecting times out after 300 ms */
    HOSTILE_UNREAD = 32 /* instead of a unary RPC, a stream of which no message is requested */
};

struct hostile_row {
    const char *name;
    hostile_play_fn *play; /* of this row alone */
    const char *outcome;   /* "CODE text": the status code's name, then a part of the text; "CODE": any text */
    const char *or_else;   /* another outcome that timing may lead to; NULL: none */
    unsigned flags;
    /* The outcome of a second RPC on the same connection; NULL: no second RPC, unless HOSTILE_NEXT is set. */
    const char *then;
};

/* A table of n rows, static. */
struct hostile_rows {
    const struct hostile_row *rows;
    size_t n;
};

struct hostile_rows hostile_flood_rows(void);
struct hostile_rows hostile_header_rows(void);
struct hostile_rows hostile_message_rows(void);
struct hostile_rows hostile_state_rows(void);
struct hostile_rows hostile_tls_rows(void); /* TLS only */

/* The fields of a good response's headers and trailers, for fake_h2_headers and fake_h2_hpack. */
#define HOSTILE_OK ":status: 200\ncontent-type: application/grpc\nintact: yes\n"
#define HOSTILE_TRAILERS "grpc-status: 0\n"

/* Sends a good response to the request on this stream. */
void hostile_answer(struct hostile_peer *p, uint32_t stream);
/* Waits for the next request and sends a good response. Returns the request's stream, or 0 if none came. */
uint32_t hostile_answer_next(struct hostile_peer *p);
/* Adds a HEADERS frame with any bytes, which are copied, as its whole header block, and with END_STREAM if `end`;
 * hostile_flush sends the frame. The block must fit into one frame. */
void hostile_block(struct hostile_peer *p, uint32_t stream, const struct tc_buf *block, bool end);
/* Appends an HPACK literal with incremental indexing, whose value is value_len bytes of `fill`. The name must have
 * fewer than 127 bytes. */
void hostile_indexed(struct tc_buf *block, const char *name, size_t value_len, char fill);

#endif
