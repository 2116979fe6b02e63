/* What the parsers of all resource types share: the state of one decoding, unpacking, and the small messages that occur
 * everywhere. Every function adds a fault at the present path when it refuses something. */
#ifndef TC_RESOURCE_READING_H
#define TC_RESOURCE_READING_H

#include <protobuf-c/protobuf-c.h>

#include "base/faults.h"
#include "pb/envoy/config/core/v3/config_source.pb-c.h"
#include "pb/envoy/type/matcher/v3/regex.pb-c.h"
#include "pb/envoy/type/matcher/v3/string.pb-c.h"
#include "pb/envoy/type/v3/percent.pb-c.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "proto/unpack.h"
#include "resource/matchers.h"
#include "resource/registry.h"
#include "resource/store.h"

struct tc_reading {
    const struct tc_xds_decode_context *ctx;
    const struct tc_xds_registries *reg;
    struct tc_resource_limits limits; /* those of the registries, as the bootstrap changes them */
    struct tc_store *store;           /* of the resource that is built */
    struct tc_faults *faults;
    struct tc_arena scratch;     /* unpacked messages; dies with the decoding */
    struct tc_scan_options scan; /* zeroed: defaults */
    size_t regex_bytes;          /* what regexes take, refused ones as much as one may, where ctx does not count */
};

/* `bytes` is the size of the whole resource, which bounds what all its unpacked messages may cost. */
void tc_read_init(struct tc_reading *p, const struct tc_xds_decode_context *ctx, struct tc_store *store, size_t bytes,
                  struct tc_faults *faults);
void tc_read_fini(struct tc_reading *p);

/* Scans and unpacks a message; it lives until the decoding ends. NULL with a fault when the bytes are no such message
 * or beyond the limits. */
void *tc_read_message(struct tc_reading *p, const ProtobufCMessageDescriptor *type, struct tc_slice bytes);

/* An Any taken apart: the message name behind the last '/' of its type URL, and its bytes. */
struct tc_any {
    struct tc_slice name;
    struct tc_slice bytes;
};

/* False with a fault when the Any is absent or its type URL has no name. */
bool tc_read_any(struct tc_reading *p, const Google__Protobuf__Any *any, struct tc_any *out);

/* A Duration in range (A75, A50: seconds 0 to 315576000000, nanos 0 to 999999999); NULL is refused as absent. More than
 * fits the unit becomes the most that does. */
bool tc_read_duration_ns(struct tc_reading *p, const Google__Protobuf__Duration *d, uint64_t *ns);
bool tc_read_duration_ms(struct tc_reading *p, const Google__Protobuf__Duration *d, uint64_t *ms); /* rounded up */
/* A FractionalPercent as millionths, at most 1,000,000. NULL is refused as absent. */
bool tc_read_fraction(struct tc_reading *p, const Envoy__Type__V3__FractionalPercent *f, uint32_t *millionths);
/* NULL with a fault for an absent message, an empty or a bad pattern. The store keeps the regex. */
struct tc_regex *tc_read_regex(struct tc_reading *p, const Envoy__Type__Matcher__V3__RegexMatcher *m);
/* A StringMatcher; an empty prefix, suffix or contains is refused. */
bool tc_read_string_matcher(struct tc_reading *p, const Envoy__Type__Matcher__V3__StringMatcher *m,
                            struct tc_string_matcher *out);
/* True for a ConfigSource that says ads or self. */
bool tc_read_is_ads_or_self(const Envoy__Config__Core__V3__ConfigSource *s);
/* A Struct as JSON (a new reference); NULL message: {}. Numbers that are integers become JSON integers. NULL with a
 * fault when it is nested beyond `depth`. */
json_t *tc_read_struct(struct tc_reading *p, const Google__Protobuf__Struct *s, unsigned depth);
/* The number of an enum as a name, or as digits when it has none. */
const char *tc_read_enum_name(struct tc_reading *p, const ProtobufCEnumDescriptor *type, int value);
/* The beginning of a text from outside, for a fault: cut between characters, so that it stays UTF-8. */
const char *tc_read_clip(struct tc_reading *p, struct tc_slice text);
/* The name of a serialised Listener, RouteConfiguration, Cluster or ClusterLoadAssignment, which all have it in field
 * 1, without unpacking it; empty when it has none that can be. Borrowed from the bytes. */
struct tc_slice tc_read_peek_name(struct tc_slice bytes);
/* The same as a new reference, or NULL. Unlike tc_read_message it works on a message that is refused. */
struct tc_rstr *tc_read_name(struct tc_slice bytes);
/* tc_xds_resource_type.slow, of what may have regular expressions: those that take long for their size have repetitions
 * or classes by name. */
bool tc_read_may_be_slow(struct tc_slice bytes);
/* An empty name is refused: "must be non-empty" at `field`. */
bool tc_read_nonempty(struct tc_reading *p, const char *text, const char *field);

#define TC_READ(p, desc, type, bytes) ((const type *)tc_read_message((p), (desc), (bytes)))

#endif
