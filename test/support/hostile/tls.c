/* Hostile servers: TLS broken in its handshake, in its records, and at its end.
 *
 * Each row of the table at the end has a play. hostile/server.h calls the play once for each connection, in the
 * servers' process, on a thread of that connection; `p` is borrowed until the play returns. hostile/rows.h has the
 * meaning of a row; hostile/client.c makes the RPC and compares its outcome.
 *
 * Most plays write below TLS (hostile_put_raw) or end the connection without close_notify (hostile_truncate); two send
 * TLS messages without data. A play of the handshake takes the ClientHello by hostile_take_raw: OpenSSL does not get
 * it. Any other play begins with hostile_begin or hostile_await, in which OpenSSL makes the handshake.
 *
 * Rows with HOSTILE_DIALS limit a connection attempt to 300 ms, in case the handshake hangs. The rows run over TLS
 * only. */
#include <openssl/ssl.h>

#include "support/hostile/rows.h"

#include "base/mem.h"
#include "support/openssl_1_1.h"

/* Waits for the ClientHello. Returns false if nothing came. */
static bool hello(struct hostile_peer *p)
{
    char bytes[4096];
    return hostile_take_raw(p, bytes, sizeof(bytes)) > 0;
}

/* Sends the bytes instead of a ServerHello, then waits until the client closes. */
static void speak(struct hostile_peer *p, const char *bytes, size_t len)
{
    if (hello(p))
        hostile_put_raw(p, bytes, len);
    hostile_await_close(p);
}

static void garbage_for_a_hello(struct hostile_peer *p)
{
    speak(p, "garbage garbage garbage", 23);
}

static void http_for_a_hello(struct hostile_peer *p)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    speak(p, text, sizeof(text) - 1);
}

static void alert_for_a_hello(struct hostile_peer *p)
{
    speak(p, "\x15\x03\x03\0\2\2\x28", 7);
}

static void http2_for_a_hello(struct hostile_peer *p)
{
    speak(p, "\0\0\0\4\0\0\0\0\0", 9);
}

/* Announces a ServerHello of 16 MiB less one byte, and sends it in records of 16 KiB. With its head the message has 3
 * bytes more than the 1024 records: it is never whole. */
static void hello_without_end(struct hostile_peer *p)
{
    char record[5 + 16384] = {0x16, 3, 3, 0x40, 0, 2, (char)0xff, (char)0xff, (char)0xff};
    if (!hello(p))
        return;
    for (int i = 0; i < 1024 && hostile_put_raw(p, record, sizeof(record)); i++)
        memset(record + 5, 0, 9);
}

static void silent_after_the_hello(struct hostile_peer *p)
{
    if (!hello(p))
        return;
    char bytes[64];
    while (hostile_take_raw(p, bytes, sizeof(bytes)))
        ;
}

static void closes_after_the_hello(struct hostile_peer *p)
{
    (void)hello(p);
    hostile_truncate(p);
}

/* Waits for the request, then sends the head of a record, which announces `said` bytes, and `sent` zeros (20,000 at
 * most). Sends nothing if no request comes. */
static void put_record(struct hostile_peer *p, size_t said, size_t sent)
{
    char record[5 + 20000] = {0x17, 3, 3, (char)(said >> 8), (char)said};
    if (hostile_begin(p))
        hostile_put_raw(p, record, 5 + sent);
}

static void record_of_18_kb(struct hostile_peer *p)
{
    put_record(p, 18000, 18000);
    hostile_await_close(p);
}

static void record_of_64_kib(struct hostile_peer *p)
{
    put_record(p, 65535, 20000);
    hostile_await_close(p);
}

static void record_that_is_forged(struct hostile_peer *p)
{
    put_record(p, 1000, 1000);
    hostile_await_close(p);
}

static void record_of_no_type(struct hostile_peer *p)
{
    if (hostile_begin(p))
        hostile_put_raw(p, "\x63\x03\x03\0\1x", 6);
    hostile_await_close(p);
}

/* Sends up to 100,000 application data records without content. They are invalid: each lacks an authentication tag. */
static void empty_records(struct hostile_peer *p)
{
    if (hostile_begin(p))
        for (int i = 0; i < 100000 && hostile_put_raw(p, "\x17\x03\x03\0\0", 5); i++)
            ;
    hostile_await_close(p);
}

static void closes_in_a_record(struct hostile_peer *p)
{
    put_record(p, 1000, 500);
    hostile_truncate(p);
}

static void closes_in_the_head_of_a_record(struct hostile_peer *p)
{
    if (hostile_begin(p))
        hostile_put_raw(p, "\x17\x03", 2);
    hostile_truncate(p);
}

static void plain_http2_in_the_end(struct hostile_peer *p)
{
    if (hostile_begin(p))
        hostile_put_raw(p, "\0\0\x08\6\0\0\0\0\0abcdefgh", 17);
    hostile_await_close(p);
}

static void fatal_alert(struct hostile_peer *p)
{
    if (hostile_begin(p))
        hostile_put_raw(p, "\x15\x03\x03\0\2\2\x50", 7);
    hostile_await_close(p);
}

/* The plays named truncated_... end without close_notify, each in another state of the connection or the RPC. */
static void truncated_before_settings(struct hostile_peer *p)
{
    (void)hostile_await(p, FAKE_H2_SETTINGS);
    hostile_truncate(p);
}

static void truncated_after_the_request(struct hostile_peer *p)
{
    (void)hostile_begin(p);
    hostile_truncate(p);
}

static void truncated_after_headers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    hostile_truncate(p);
}

static void truncated_before_trailers(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_message(hostile_frames(p), id, "x", 1, false);
    hostile_truncate(p);
}

static void truncated_after_the_answer(struct hostile_peer *p)
{
    hostile_answer(p, hostile_begin(p));
    hostile_truncate(p);
}

static void key_updates(struct hostile_peer *p)
{
    if (!hostile_begin(p))
        return;
    for (int i = 0; i < 100000 && hostile_is_heard(p); i++)
        if (SSL_key_update(hostile_ssl(p), SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || SSL_do_handshake(hostile_ssl(p)) != 1)
            break;
    hostile_await_close(p);
}

#if OPENSSL_VERSION_NUMBER >= 0x30000000L /* before, tickets are sent in the handshake alone */
static void tickets(struct hostile_peer *p)
{
    if (!hostile_begin(p))
        return;
    for (int i = 0; i < 100000 && hostile_is_heard(p); i++)
        if (SSL_new_session_ticket(hostile_ssl(p)) != 1 || SSL_do_handshake(hostile_ssl(p)) != 1)
            break;
    hostile_await_close(p);
}
#endif

#define FAILED "UNAVAILABLE failed: "
#define CUT "UNAVAILABLE connection closed by the server without TLS close_notify"

static const struct hostile_row rows[] = {
    {"garbage instead of a ServerHello", garbage_for_a_hello, FAILED "what came is not TLS", NULL, HOSTILE_DIALS, NULL},
    {"HTTP/1.1 instead of a ServerHello", http_for_a_hello, FAILED "what came is not TLS", NULL, HOSTILE_DIALS, NULL},
    {"an alert instead of a ServerHello", alert_for_a_hello, "UNAVAILABLE alert handshake failure", NULL, HOSTILE_DIALS,
     NULL},
    {"HTTP/2 instead of a ServerHello", http2_for_a_hello, FAILED "what came is not TLS", NULL, HOSTILE_DIALS, NULL},
    {"a ServerHello of 16 MiB", hello_without_end, FAILED "excessive message size", NULL, 0, NULL},
    {"silent after the ClientHello", silent_after_the_hello,
     "UNAVAILABLE timed out after 300 ms, waiting for the TLS handshake", NULL, HOSTILE_DIALS, NULL},
    {"closes after the ClientHello", closes_after_the_hello, FAILED "the peer closed the connection", NULL, 0, NULL},
    {"a record of 18 kB", record_of_18_kb, "UNAVAILABLE length too long", NULL, 0, NULL},
    {"a record of 64 KiB", record_of_64_kib, "UNAVAILABLE length too long", NULL, 0, NULL},
    {"a forged record", record_that_is_forged, FAILED "decryption failed or bad record mac", NULL, 0, NULL},
    {"a record of no known type", record_of_no_type, "UNAVAILABLE bad record type", NULL, 0, NULL},
    {"empty records", empty_records, FAILED "decryption failed or bad record mac", NULL, 0, NULL},
    {"closes in a record", closes_in_a_record, CUT, NULL, 0, NULL},
    {"closes in the head of a record", closes_in_the_head_of_a_record, CUT, NULL, 0, NULL},
    {"plain HTTP/2 on a connection of TLS", plain_http2_in_the_end, FAILED "what came is not TLS", NULL, 0, NULL},
    {"a fatal alert", fatal_alert, "UNAVAILABLE bad record type", NULL, 0, NULL},
    {"truncated before SETTINGS", truncated_before_settings,
     "UNAVAILABLE connection closed by the server before its HTTP/2 settings without TLS close_notify", NULL, 0, NULL},
    {"truncated after the request", truncated_after_the_request, CUT, NULL, 0, NULL},
    {"truncated after headers", truncated_after_headers, CUT, NULL, 0, NULL},
    {"truncated before trailers", truncated_before_trailers, CUT, NULL, 0, NULL},
    {"truncated after the answer", truncated_after_the_answer, "OK", NULL, 0, NULL},
    {"key updates without end", key_updates, "UNAVAILABLE too many TLS messages without data (more than 64)", NULL, 0,
     NULL},
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    {"tickets without end", tickets, "UNAVAILABLE too many TLS messages without data (more than 64)", NULL, 0, NULL},
#endif
};

struct hostile_rows hostile_tls_rows(void)
{
    return (struct hostile_rows){rows, TC_ARRAY_LEN(rows)};
}
