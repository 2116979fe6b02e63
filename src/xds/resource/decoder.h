/* The decoder that all resource types share: the state of one decoding, unpacking, and the small messages that occur in
 * many resources. A function that refuses something adds an error at the present path or below it; a function with a
 * parameter `field` adds it at that field or below it. Any thread decodes, each with a context of its own. */
#ifndef TC_XDS_RESOURCE_DECODER_H
#define TC_XDS_RESOURCE_DECODER_H

#include <protobuf-c/protobuf-c.h>

#include "base/validation_errors.h"
#include "pb/envoy/config/core/v3/config_source.pb-c.h"
#include "pb/envoy/type/matcher/v3/regex.pb-c.h"
#include "pb/envoy/type/matcher/v3/string.pb-c.h"
#include "pb/envoy/type/v3/percent.pb-c.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "proto/json.h"
#include "proto/unpack.h"
#include "xds/resource/hash_policy.h"
#include "xds/resource/matchers.h"
#include "xds/resource/registry_types.h"
#include "xds/resource/resource_arena.h"

/* ctx, reg, arena and errors are borrowed. ctx may be NULL: the defaults. */
struct tc_decoder {
    const struct tc_xds_decode_context *ctx;
    const struct tc_xds_registries *reg;
    struct tc_resource_limits limits; /* of the registries, or of the bootstrap if it sets them */
    struct tc_resource_arena *arena;  /* of the resource that is built */
    struct tc_validation_errors *errors;
    size_t errors_before;                       /* errors->count at the beginning */
    struct tc_arena scratch;                    /* unpacked messages; freed when the decoding ends */
    struct tc_scan_options scan;                /* zeroed: defaults */
    size_t n_hash_policies;                     /* the length of hash_policies */
    const struct tc_hash_policy *hash_policies; /* of a Cluster's LB policy, in `arena`; NULL: it has none */
    /* Bytes of compiled regexes and of what reading them costs, unless ctx->regex_bytes counts them. A regex that does
     * not compile counts as the largest that is allowed. */
    size_t regex_bytes;
};

/* `registries` are those of `ctx` (tc_xds_registries_of). `bytes` is the size of the whole resource. The budget of
 * `scratch` is tc_unpack_budget of it, or the limit decode_bytes if that is less. */
void tc_decoder_init(struct tc_decoder *dec, const struct tc_xds_decode_context *ctx,
                     const struct tc_xds_registries *registries, struct tc_resource_arena *arena, size_t bytes,
                     struct tc_validation_errors *errors);
void tc_decoder_fini(struct tc_decoder *dec);

/* Scans and unpacks a message into the scratch arena, with which it is freed. Returns NULL with an error if the bytes
 * are not such a message or exceed the limits. */
void *tc_decode_message(struct tc_decoder *dec, const ProtobufCMessageDescriptor *type, struct tc_slice bytes);

/* An Any taken apart, borrowed: the message name behind the last '/' of its type URL, and its bytes. */
struct tc_any {
    struct tc_slice name;
    struct tc_slice bytes;
};

/* Returns the type's name, the part behind the last slash of a type URL, borrowed. Returns NULL with an error at
 * .type_url if there is no slash, or nothing behind it. */
const char *tc_decode_type_name(struct tc_decoder *dec, const char *type_url);
/* Returns false with an error when the Any is absent or its type URL has no name. */
bool tc_decode_any(struct tc_decoder *dec, const Google__Protobuf__Any *any, struct tc_any *out);

/* Convert a Duration (A75, A50: seconds 0 to 315576000000, nanos 0 to 999999999). Return false with errors if it is out
 * of range or NULL. Milliseconds are rounded up; more nanoseconds than INT64_MAX become INT64_MAX. */
bool tc_decode_duration_ns(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d,
                           uint64_t *ns);
bool tc_decode_duration_ms(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d,
                           uint64_t *ms);
/* Converts a FractionalPercent to millionths; more than 1,000,000 become 1,000,000. Returns false with an error if it
 * is NULL or has an unknown denominator. */
bool tc_decode_fraction(struct tc_decoder *dec, const char *field, const Envoy__Type__V3__FractionalPercent *f,
                        uint32_t *millionths);
/* Compiles a regex, kept by the resource arena. Returns NULL with an error if the message is NULL, the pattern is empty
 * or invalid, or the response's regexes take too much memory. */
struct tc_regex *tc_decode_regex(struct tc_decoder *dec, const char *field,
                                 const Envoy__Type__Matcher__V3__RegexMatcher *m);
/* Decodes a StringMatcher. Returns false with an error if it is NULL or invalid: all patterns but `exact` must not be
 * empty. */
bool tc_decode_string_matcher(struct tc_decoder *dec, const Envoy__Type__Matcher__V3__StringMatcher *m,
                              struct tc_string_matcher *out);
/* Adds an error unless the ConfigSource says ads or self. */
void tc_decode_config_source(struct tc_decoder *dec, const char *field, const Envoy__Config__Core__V3__ConfigSource *s);
/* Returns a Struct as JSON, a new reference; {} for NULL. Integers below 2^53 in magnitude become JSON integers.
 * Returns NULL with an error if the Struct is nested beyond TC_PROTO_JSON_MAX_DEPTH. */
json_t *tc_decode_struct(struct tc_decoder *dec, const Google__Protobuf__Struct *s);
/* Returns the name of an enum's number; the number in digits, kept by the resource arena, if it has no name. */
const char *tc_decode_enum_name(struct tc_decoder *dec, const ProtobufCEnumDescriptor *type, int value);
/* Returns at most the first 128 bytes of a text from outside, for an error, kept by the resource arena. Cuts between
 * characters, so that the text stays UTF-8. */
const char *tc_decode_clip(struct tc_decoder *dec, struct tc_slice text);
/* Returns the name of a serialised Listener, RouteConfiguration, Cluster or ClusterLoadAssignment (field 1 of each)
 * without unpacking the message; borrowed from the bytes. Empty if there is no name, or if the name is longer than
 * 65,536 bytes, has a NUL or is not UTF-8. */
struct tc_slice tc_decode_peek_name(struct tc_slice bytes);
/* Returns the peeked name as a new reference, or NULL. Works on messages that tc_decode_message rejects, too. */
struct tc_rstr *tc_decode_name(struct tc_slice bytes);
/* tc_xds_resource_type.slow for types with regular expressions. Returns true for a resource of 16,384 bytes or more,
 * and for one that may have a pattern with repetitions or named classes, which takes long to compile. */
bool tc_decode_may_be_slow(struct tc_slice bytes);
/* Returns false, with "must be non-empty" at `field`, if the text is NULL or empty. */
bool tc_decode_nonempty(struct tc_decoder *dec, const char *text, const char *field);
/* xds.type.v3.TypedStruct or udpa.type.v1.TypedStruct: both have the same fields. */
static inline bool tc_decode_is_typed_struct(struct tc_slice name)
{
    return tc_slice_eq_str(name, "xds.type.v3.TypedStruct") || tc_slice_eq_str(name, "udpa.type.v1.TypedStruct");
}

/* Unpacks the message in `any` as tc_decode_message does. Returns NULL with an error if `any` is NULL or of another
 * type ("WHAT NAME"), or cannot be unpacked. */
void *tc_decode_any_of(struct tc_decoder *dec, const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type,
                       const char *what);
#define TC_DECODE_ANY(dec, any, desc, type, what) ((const type *)tc_decode_any_of((dec), (any), (desc), (what)))
#define TC_DECODE(dec, desc, type, bytes) ((const type *)tc_decode_message((dec), (desc), (bytes)))

#endif
