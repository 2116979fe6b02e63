/* The two directions of a stream: messages that arrive, and the message that is being sent. Loop thread only. */
#ifndef TC_HTTP2_STREAM_HALVES_H
#define TC_HTTP2_STREAM_HALVES_H

#include "http2/framing.h"
#include "http2/pending.h"

/* Messages that arrive (receive.c). */
struct tc_h2_receiver {
    struct tc_h2_decoder decoder;
    struct tc_h2_pending pending; /* received bytes that are not decoded yet: they were not asked for, `message` comes
                                     before them, or the stream rests */
    struct tc_rstr *message;      /* decoded, the next to deliver; NULL: none */
    unsigned wanted;              /* messages asked for and not delivered yet */
    uint32_t unconsumed;          /* bytes taken and not reported to nghttp2 yet */
    size_t kept, held;            /* server: the bytes of tc_h2_stream_keep; what tc_h2_stream_held returns */
    bool ended;                   /* END_STREAM was received */
    bool discard; /* later DATA and header fields are dropped; messages received before may wait for delivery */
};

/* The message that is being sent, and the end behind it (stream.c; write.c moves `at`, packing.c compresses). */
struct tc_h2_sender {
    struct tc_slice message;    /* as it is sent: the owner's bytes, or those of `compressed` */
    struct tc_rstr *compressed; /* NULL: the message is the owner's; kept until on_written, or the end */
    /* The limit of a message, and the size of the message that tc_h2_stream_send rejected last; after compression. */
    size_t max_bytes, rejected_bytes;
    size_t at; /* how many bytes were gathered for writing, of prefix and message together */
    uint8_t prefix[TC_H2_PREFIX_LEN];
    bool active;         /* not all of the message was gathered yet */
    bool on_written_due; /* on_written is to be called */
    bool end_wanted;     /* half-close, or the server's trailers */
    bool end_sent;       /* server: the trailers left nghttp2 */
    bool deferred;       /* nghttp2 asks for data again only after tc_h2_stream_resume */
    bool headers_sent;   /* our first HEADERS left nghttp2 */
    bool reset_sent;     /* our RST_STREAM left nghttp2, whether nghttp2 or we decided on it */
    /* Of the messages that are to be compressed. TC_H2_IDENTITY: none is compressed. */
    enum tc_h2_encoding encoding;
};

#endif
