/* Numbers, durations and sizes from text (parse.c), encodings (encoding.c), and the check of UTF-8 (parse.c). Parsers
 * and decoders that return int return 0 or TORC_EPARSE, accept no leading or trailing space and no sign unless said,
 * and leave the output untouched on failure. Encoders and decoders append to `out`. Pure functions, any thread. */
#ifndef TC_BASE_PARSE_H
#define TC_BASE_PARSE_H

#include "base/buf.h"

/* Decimal digits; at most `max`. */
int tc_parse_u64(struct tc_slice s, uint64_t max, uint64_t *out);
int tc_parse_i64(struct tc_slice s, int64_t *out); /* a minus sign is accepted */
/* Finite, less than 1,100 characters; a sign, digits around a point, and an exponent are accepted. */
int tc_parse_double(struct tc_slice s, double *out);
/* Reads "1.5s", "250ms", "2m", "1h", "100us" or "5ns" as nanoseconds below 9e18, rounded to the nearest; a bare number
 * is refused. */
int tc_parse_duration_ns(struct tc_slice s, uint64_t *out);
/* Reads "4194304", "64k", "4M" or "1.5G" (powers of 1024) as a whole number of bytes, 9e18 at most. A number above 2^53
 * is rounded to a double. */
int tc_parse_size(struct tc_slice s, uint64_t *out);

/* Base64 of RFC 4648; `pad`: write the padding. Decoding accepts missing padding, as gRPC's -bin headers ask, and
 * ignores surplus bits of the last digit; it refuses wrong padding and characters outside the alphabet. */
void tc_base64_encode(struct tc_buf *out, const void *data, size_t len, bool pad);
int tc_base64_decode(struct tc_buf *out, struct tc_slice s);
/* Pairs of hexadecimal digits: lower case is written, either case is read. */
void tc_hex_encode(struct tc_buf *out, const void *data, size_t len);
int tc_hex_decode(struct tc_buf *out, struct tc_slice s);
/* gRPC's percent-encoding of grpc-message: bytes outside 0x20..0x7e and '%' become %XX. Decoding never fails:
 * bytes that are not a valid escape stay as they are (PROTOCOL-HTTP2). A NUL (%00), at which a C string would end,
 * becomes U+FFFD. */
void tc_grpc_message_encode(struct tc_buf *out, struct tc_slice s);
void tc_grpc_message_decode(struct tc_buf *out, struct tc_slice s);
/* RFC 3986 percent-encoding of everything but unreserved characters and those in `keep` (may be NULL). Decoding refuses
 * an invalid escape. */
void tc_uri_encode(struct tc_buf *out, struct tc_slice s, const char *keep);
int tc_uri_decode(struct tc_buf *out, struct tc_slice s);
/* Returns true when the bytes are valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool tc_utf8_valid(struct tc_slice s);

#endif
