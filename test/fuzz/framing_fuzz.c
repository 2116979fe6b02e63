/* gRPC's message framing and gzip. The input: encoding, limit, step, then the bytes of a stream. The decoder gives the
 * same messages and errors for the bytes in one piece and in steps. gzip and gunzip give the bytes back, or TORC_ELIMIT
 * above the limit. */
#include "base/hash.h"
#include "base/mem.h"
#include "fuzz.h"
#include "http2/framing.h"

/* Gives the decoder the stream in pieces of at most `step` bytes. Appends to `told` the length and the hash of each
 * message, and the error that ends the decoding. */
static void decode(struct tc_slice stream, bool gzip, size_t max_bytes, size_t step, struct tc_buf *told)
{
    struct tc_h2_decoder d;
    size_t at = 0;
    tc_h2_decoder_init(&d, max_bytes);
    d.encoding = gzip ? TC_H2_GZIP : TC_H2_IDENTITY;
    while (at < stream.len) {
        size_t n = TC_MIN(step, stream.len - at), used = 0;
        struct tc_rstr *message = NULL;
        struct tc_status error = {0};
        int rc = tc_h2_decoder_push(&d, stream.data + at, n, &used, &message, &error);
        TC_FUZZ_CHECK(used <= n && d.cap <= TC_MAX(max_bytes, (size_t)65536));
        if (rc) {
            TC_FUZZ_CHECK(!message && !tc_status_ok(&error));
            tc_buf_printf(told, "%d %s", rc, tc_status_text(&error));
            tc_status_fini(&error);
            break;
        }
        TC_FUZZ_CHECK(message ? message->len <= max_bytes : used > 0);
        if (message)
            tc_buf_printf(told, "[%zu %llx]", message->len, (unsigned long long)tc_xxh64(message->data, message->len));
        tc_rstr_unref(message);
        at += used;
    }
    tc_h2_decoder_fini(&d);
}

/* Checks that gzip and gunzip give the bytes back. Unzips the bytes as they are, too. */
static void check_gzip(struct tc_slice bytes, size_t max_bytes)
{
    struct tc_rstr *out = NULL, *zipped = tc_h2_gzip(bytes);
    TC_FUZZ_CHECK(zipped);
    int rc = tc_h2_gunzip(NULL, tc_rstr_slice(zipped), max_bytes, &out);
    TC_FUZZ_CHECK(rc == (bytes.len > max_bytes ? TORC_ELIMIT : 0));
    TC_FUZZ_CHECK(rc ? !out : tc_slice_eq(tc_rstr_slice(out), bytes));
    tc_rstr_unref(out);
    tc_rstr_unref(zipped);
    out = NULL;
    rc = tc_h2_gunzip(NULL, bytes, max_bytes, &out);
    TC_FUZZ_CHECK(rc ? !out : out->len <= max_bytes);
    tc_rstr_unref(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    bool gzip = tc_fuzz_u8(&in) & 1;
    size_t max_bytes = (size_t)tc_fuzz_uint(&in, 2) * 16;
    size_t step = 1 + (size_t)tc_fuzz_u8(&in) % 16;
    struct tc_slice stream = tc_slice_of(in.data, in.len);
    struct tc_buf whole = {0}, stepped = {0};
    decode(stream, gzip, max_bytes, SIZE_MAX, &whole);
    decode(stream, gzip, max_bytes, step, &stepped);
    TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&whole), tc_buf_slice(&stepped)));
    tc_buf_fini(&whole);
    tc_buf_fini(&stepped);
    check_gzip(stream, max_bytes);
    return 0;
}
