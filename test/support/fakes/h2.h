/* An HTTP/2 peer that the test drives frame by frame, well formed or not: at the other end of a pipe on a manual loop,
 * or on a socket. The peer answers nothing by itself, and parses the frames of the other side. */
#ifndef TC_SUPPORT_FAKES_H2_H
#define TC_SUPPORT_FAKES_H2_H

#include "base/buf.h"
#include "base/slice.h"
#include "support/fakes/pipe.h"

enum {
    FAKE_H2_DATA = 0,
    FAKE_H2_HEADERS = 1,
    FAKE_H2_RST_STREAM = 3,
    FAKE_H2_SETTINGS = 4,
    FAKE_H2_PING = 6,
    FAKE_H2_GOAWAY = 7,
    FAKE_H2_WINDOW_UPDATE = 8,
    FAKE_H2_CONTINUATION = 9
};
enum { FAKE_H2_END_STREAM = 1, FAKE_H2_ACK = 1, FAKE_H2_END_HEADERS = 4 };

/* A received frame. The peer owns it and what it points to. */
struct fake_h2_frame {
    uint8_t type, flags;
    uint32_t stream;
    char *payload; /* NUL-terminated */
    size_t len;
    /* Of HEADERS: "name: value\n" for each field, then "(undecodable)\n" if the block is invalid. The frame must hold
     * the whole block, without padding or priority. NULL for other frames. */
    char *headers;
};

struct fake_h2;

/* Makes a peer at end `end` of the pipe; the test owns the pipe. server: the peer's role. A server skips the 24 bytes
 * of the preface without comparing them, a client sends the preface (fake_h2_start). */
struct fake_h2 *fake_h2_new(struct fake_pipe *pipe, int end, bool server);
/* Makes a peer without a pipe: the test moves bytes itself by fake_h2_feed and fake_h2_take. */
struct fake_h2 *fake_h2_new_raw(bool server);
void fake_h2_free(struct fake_h2 *p);

/* on: collects frames from now on; off: sends the collected frames in one piece. No effect without a pipe. */
void fake_h2_hold(struct fake_h2 *p, bool on);
/* Sends any bytes. */
void fake_h2_bytes(struct fake_h2 *p, const void *data, size_t len);
/* Sends any frame, well formed or not. */
void fake_h2_frame(struct fake_h2 *p, uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len);
/* Sends the preface if the peer plays the client, then an empty SETTINGS and an ACK. */
void fake_h2_start(struct fake_h2 *p);
/* Sends SETTINGS with one entry. */
void fake_h2_setting(struct fake_h2 *p, uint16_t id, uint32_t value);
/* Sends a header block of literal fields, given as "name: value\n..." (a name may begin with ':'), as HEADERS and,
 * beyond 16,384 bytes, CONTINUATION frames. */
void fake_h2_headers(struct fake_h2 *p, uint32_t stream, const char *fields, bool end_stream);
/* Appends fields, "name: value\n..." as for fake_h2_headers, as HPACK literals without indexing. */
void fake_h2_hpack(struct tc_buf *out, const char *fields);
/* Sends the bytes in DATA frames of at most 16,384 bytes; len 0: in one empty frame. */
void fake_h2_data(struct fake_h2 *p, uint32_t stream, const void *data, size_t len, bool end_stream);
/* Sends one gRPC message, in DATA frames of at most 16,384 bytes. */
void fake_h2_message(struct fake_h2 *p, uint32_t stream, const void *data, size_t len, bool end_stream);
/* Send one frame with these fields; the code is an HTTP/2 error code, `text` the GOAWAY's debug data. */
void fake_h2_rst(struct fake_h2 *p, uint32_t stream, uint32_t code);
void fake_h2_goaway(struct fake_h2 *p, uint32_t last, uint32_t code, const char *text);
void fake_h2_ping(struct fake_h2 *p, const char data[8], bool ack);
void fake_h2_window(struct fake_h2 *p, uint32_t stream, uint32_t increment);

/* fake_h2_feed hands bytes over that the other side sent, for a peer without a pipe. fake_h2_take returns the peer's
 * buffer of bytes for the other side: without a pipe all bytes that were sent since the caller cleared it last, with a
 * pipe the frames that fake_h2_hold collects. */
void fake_h2_feed(struct fake_h2 *p, const void *data, size_t len);
struct tc_buf *fake_h2_take(struct fake_h2 *p);

/* Parses the bytes that have come. Returns the next frame, or NULL if none is complete. The frame is valid until the
 * next fake_h2_next, fake_h2_expect, fake_h2_count or fake_h2_free. */
const struct fake_h2_frame *fake_h2_next(struct fake_h2 *p);
/* Skips frames up to the first one of the type (and the stream, unless 0). Returns that frame, valid as that of
 * fake_h2_next is; NULL if none has come. */
const struct fake_h2_frame *fake_h2_expect(struct fake_h2 *p, uint8_t type, uint32_t stream);
/* Takes all frames that have come. Returns how many of them are of the type (and of the stream, unless 0). */
size_t fake_h2_count(struct fake_h2 *p, uint8_t type, uint32_t stream);

#endif
