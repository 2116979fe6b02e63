/* An HTTP/2 peer that sends what the test says, frame by frame, well formed or not: at the other end of a pipe on a
 * manual loop, or on a socket. It answers nothing by itself, and reads back what the other side sent as parsed frames.
 */
#ifndef TC_SUPPORT_H2_PEER_H
#define TC_SUPPORT_H2_PEER_H

#include "base/buf.h"
#include "base/slice.h"
#include "support/pipe.h"

enum {
    TC_H2P_DATA = 0,
    TC_H2P_HEADERS = 1,
    TC_H2P_RST_STREAM = 3,
    TC_H2P_SETTINGS = 4,
    TC_H2P_PING = 6,
    TC_H2P_GOAWAY = 7,
    TC_H2P_WINDOW_UPDATE = 8,
    TC_H2P_CONTINUATION = 9
};
enum { TC_H2P_END_STREAM = 1, TC_H2P_ACK = 1, TC_H2P_END_HEADERS = 4 };

/* A received frame. */
struct tc_h2p_frame {
    uint8_t type, flags;
    uint32_t stream;
    char *payload; /* NUL-terminated */
    size_t len;
    char *headers; /* HEADERS: "name: value\n" for each field, decoded; else NULL */
};

struct tc_h2_peer;

/* A peer that holds end `end` of the pipe; a client role expects no preface and sends one, a server role the reverse.
 * The pipe is the test's. */
struct tc_h2_peer *tc_h2_peer_new(struct tc_pipe *pipe, int end, bool server);
/* The same without a pipe: the test moves bytes itself by tc_h2_peer_feed and tc_h2_peer_take. */
struct tc_h2_peer *tc_h2_peer_new_raw(bool server);
void tc_h2_peer_free(struct tc_h2_peer *p);

/* While holding, what is sent is collected; the release sends it in one piece. */
void tc_h2_peer_hold(struct tc_h2_peer *p, bool on);
/* Any bytes. */
void tc_h2_peer_bytes(struct tc_h2_peer *p, const void *data, size_t len);
/* Any frame. */
void tc_h2_peer_frame(struct tc_h2_peer *p, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
                      size_t len);
/* The client's preface when it plays the client, then an empty SETTINGS, and an ACK. */
void tc_h2_peer_start(struct tc_h2_peer *p);
void tc_h2_peer_setting(struct tc_h2_peer *p, uint16_t id, uint32_t value);
/* HEADERS (whole) of literal fields, given as "name: value\n..." (a name may begin with ':'). */
void tc_h2_peer_headers(struct tc_h2_peer *p, uint32_t stream, const char *fields, bool end_stream);
/* HPACK literals without indexing of such fields, appended. */
void tc_h2_peer_hpack(struct tc_buf *out, const char *fields);
void tc_h2_peer_data(struct tc_h2_peer *p, uint32_t stream, const void *data, size_t len, bool end_stream);
/* DATA with one gRPC message. */
void tc_h2_peer_message(struct tc_h2_peer *p, uint32_t stream, const void *data, size_t len, bool end_stream);
void tc_h2_peer_rst(struct tc_h2_peer *p, uint32_t stream, uint32_t code);
void tc_h2_peer_goaway(struct tc_h2_peer *p, uint32_t last, uint32_t code, const char *text);
void tc_h2_peer_ping(struct tc_h2_peer *p, const char data[8], bool ack);
void tc_h2_peer_window(struct tc_h2_peer *p, uint32_t stream, uint32_t increment);

/* For a raw peer: bytes that the other side sent; bytes for it (the caller clears the buffer). */
void tc_h2_peer_feed(struct tc_h2_peer *p, const void *data, size_t len);
struct tc_buf *tc_h2_peer_take(struct tc_h2_peer *p);

/* Parses what has come. The next frame, or NULL; valid until the next call. */
const struct tc_h2p_frame *tc_h2_peer_next(struct tc_h2_peer *p);
/* Skips frames until one of that type (and stream, unless 0); NULL when there is none. */
const struct tc_h2p_frame *tc_h2_peer_expect(struct tc_h2_peer *p, uint8_t type, uint32_t stream);
/* How many frames of the type (and stream, unless 0) have come and been parsed since the last call; all others are
 * skipped. */
size_t tc_h2_peer_count(struct tc_h2_peer *p, uint8_t type, uint32_t stream);

#endif
