/* The decoder that all resource types share.
 *
 * A struct tc_decoder is the state of one decoding: limits, the resource arena that keeps the result, the scratch arena
 * for unpacked messages, the errors with their present path. A function that refuses something adds an error, and
 * returns false or NULL if it returns a value. The caller goes on with the next field. tc_decode_end drops the resource
 * if any error was added.
 *
 * Every message from outside passes tc_scan, mostly inside of tc_unpack. tc_scan checks sizes, nesting and UTF-8 before
 * protobuf-c allocates. Bytes of compiled regular expressions are counted for the whole response (ctx->regex_bytes), or
 * for the resource if the context does not count them. Runs on any thread. */
#include "xds/resource/decoder.h"

#include "base/mem.h"
#include "base/parse.h"
#include "proto/wire.h"

#define SECONDS_MAX 315576000000ll
enum {
    NANOS_MAX = 999999999,
    TEXT_MAX = 128,
    NAME_MAX_BYTES = 65536,
};

static void limit_override(size_t *limit, uint64_t configured)
{
    if (configured)
        *limit = (size_t)configured;
}

/* Returns the limits of the registries. A limit that the context's bootstrap sets replaces the registries' own. */
static struct tc_resource_limits registries_limits(const struct tc_xds_registries *registries,
                                                   const struct tc_xds_decode_context *ctx)
{
    struct tc_resource_limits l = registries->limits;
    if (!ctx || !ctx->bootstrap)
        return l;
    const struct tc_xds_limits *set_by = &ctx->bootstrap->limits;
    limit_override(&l.eds_priorities, set_by->eds_priorities);
    limit_override(&l.eds_localities, set_by->eds_localities);
    limit_override(&l.eds_endpoints, set_by->eds_endpoints);
    limit_override(&l.eds_drops, set_by->eds_drop_categories);
    limit_override(&l.vhosts, set_by->virtual_hosts);
    limit_override(&l.routes, set_by->routes);
    limit_override(&l.http_filters, set_by->http_filters);
    limit_override(&l.aggregate_children, set_by->aggregate_clusters);
    limit_override(&l.decode_bytes, set_by->decode_bytes);
    limit_override(&l.regexes_bytes, set_by->regexes_total_bytes);
    limit_override(&l.regex.pattern_bytes, set_by->regex_bytes);
    limit_override(&l.regex.memory_bytes, set_by->regex_memory_bytes);
    return l;
}

void tc_decoder_init(struct tc_decoder *dec, const struct tc_xds_decode_context *ctx,
                     const struct tc_xds_registries *registries, struct tc_resource_arena *arena, size_t bytes,
                     struct tc_validation_errors *errors)
{
    *dec = (struct tc_decoder){
        .ctx = ctx, .reg = registries, .arena = arena, .errors = errors, .errors_before = errors->count};
    dec->limits = registries_limits(registries, ctx);
    tc_arena_init(&dec->scratch, TC_MIN(bytes * 4 + 1024, (size_t)65536),
                  TC_MIN(tc_unpack_budget(bytes), dec->limits.decode_bytes));
}

void tc_decoder_fini(struct tc_decoder *dec)
{
    tc_arena_fini(&dec->scratch);
}

void *tc_decode_message(struct tc_decoder *dec, const ProtobufCMessageDescriptor *type, struct tc_slice bytes)
{
    ProtobufCMessage *m = NULL;
    return tc_unpack(type, bytes, &dec->scan, &dec->scratch, &m, dec->errors) ? NULL : m;
}

const char *tc_decode_type_name(struct tc_decoder *dec, const char *type_url)
{
    const char *slash = strrchr(type_url, '/');
    if (slash && slash[1])
        return slash + 1;
    tc_validation_add_at(dec->errors, ".type_url", "invalid value \"%s\"", tc_decode_clip(dec, tc_slice_str(type_url)));
    return NULL;
}

bool tc_decode_any(struct tc_decoder *dec, const Google__Protobuf__Any *any, struct tc_any *out)
{
    if (!any) {
        tc_validation_add(dec->errors, "field not present");
        return false;
    }
    const char *name = tc_decode_type_name(dec, any->type_url);
    if (!name)
        return false;
    out->name = tc_slice_str(name);
    out->bytes = tc_slice_of(any->value.data, any->value.len);
    return true;
}

void *tc_decode_any_of(struct tc_decoder *dec, const Google__Protobuf__Any *from,
                       const ProtobufCMessageDescriptor *type, const char *what)
{
    struct tc_any any;
    if (!tc_decode_any(dec, from, &any))
        return NULL;
    if (tc_slice_eq_str(any.name, type->name))
        return tc_decode_message(dec, type, any.bytes);
    tc_validation_add(dec->errors, "%s %s", what, tc_decode_clip(dec, any.name));
    return NULL;
}

static bool check_duration(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d)
{
    if (!d) {
        tc_validation_add_at(dec->errors, field, "field not present");
        return false;
    }
    tc_validation_push_field(dec->errors, field);
    if (d->seconds < 0 || d->seconds > SECONDS_MAX)
        tc_validation_add_at(dec->errors, ".seconds", "value must be in the range [0, %lld]", SECONDS_MAX);
    if (d->nanos < 0 || d->nanos > NANOS_MAX)
        tc_validation_add_at(dec->errors, ".nanos", "value must be in the range [0, %d]", NANOS_MAX);
    tc_validation_pop(dec->errors);
    return d->seconds >= 0 && d->seconds <= SECONDS_MAX && d->nanos >= 0 && d->nanos <= NANOS_MAX;
}

bool tc_decode_duration_ns(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d, uint64_t *ns)
{
    if (!check_duration(dec, field, d))
        return false;
    uint64_t v;
    if (__builtin_mul_overflow((uint64_t)d->seconds, (uint64_t)1000000000, &v) ||
        __builtin_add_overflow(v, (uint64_t)d->nanos, &v) || v > INT64_MAX)
        v = INT64_MAX;
    *ns = v;
    return true;
}

bool tc_decode_duration_ms(struct tc_decoder *dec, const char *field, const Google__Protobuf__Duration *d, uint64_t *ms)
{
    if (!check_duration(dec, field, d))
        return false;
    *ms = (uint64_t)d->seconds * 1000 + ((uint64_t)d->nanos + 999999) / 1000000;
    return true;
}

bool tc_decode_fraction(struct tc_decoder *dec, const char *field, const Envoy__Type__V3__FractionalPercent *f,
                        uint32_t *millionths)
{
    if (!f) {
        tc_validation_add_at(dec->errors, field, "field not present");
        return false;
    }
    uint64_t unit;
    switch (f->denominator) {
    case ENVOY__TYPE__V3__FRACTIONAL_PERCENT__DENOMINATOR_TYPE__HUNDRED:
        unit = 10000;
        break;
    case ENVOY__TYPE__V3__FRACTIONAL_PERCENT__DENOMINATOR_TYPE__TEN_THOUSAND:
        unit = 100;
        break;
    case ENVOY__TYPE__V3__FRACTIONAL_PERCENT__DENOMINATOR_TYPE__MILLION:
        unit = 1;
        break;
    default:
        tc_validation_push_field(dec->errors, field);
        tc_validation_add_at(dec->errors, ".denominator", "unknown denominator type");
        tc_validation_pop(dec->errors);
        return false;
    }
    uint64_t v = f->numerator * unit;
    *millionths = v > TC_FRACTION_ONE ? TC_FRACTION_ONE : (uint32_t)v;
    return true;
}

/* Looks at the bytes without unpacking, because the answer decides on which thread they are unpacked. A backslash or a
 * brace may belong to a pattern with named classes or repetitions. */
bool tc_decode_may_be_slow(struct tc_slice bytes)
{
    const size_t large = 16384;
    return bytes.len >= large ||
           (bytes.len && (memchr(bytes.data, '\\', bytes.len) || memchr(bytes.data, '{', bytes.len)));
}

static void release_regex(void *ptr)
{
    tc_regex_free(ptr);
}

static struct tc_regex *decode_present_regex(struct tc_decoder *dec, const Envoy__Type__Matcher__V3__RegexMatcher *m)
{
    if (!tc_decode_nonempty(dec, m->regex, ".regex"))
        return NULL;
    size_t *taken = dec->ctx && dec->ctx->regex_bytes ? dec->ctx->regex_bytes : &dec->regex_bytes;
    if (*taken >= dec->limits.regexes_bytes) {
        tc_validation_add(dec->errors, "the regexes of the response take more than regexes_total_bytes, %zu",
                          dec->limits.regexes_bytes);
        return NULL;
    }
    char *why = NULL;
    size_t most = dec->limits.regex.memory_bytes ? dec->limits.regex.memory_bytes : TC_REGEX_MEMORY_MAX_BYTES;
    struct tc_regex *r = tc_regex_new(tc_slice_str(m->regex), &dec->limits.regex, &why);
    /* A pattern that fails costs too: RE2 finds it too large only after it has filled `most` bytes. */
    *taken += tc_regex_reading_cost(tc_slice_str(m->regex)) + (r ? tc_regex_memory(r) : most);
    if (r) {
        tc_resource_arena_keep(dec->arena, release_regex, r);
    } else {
        tc_validation_add_at(dec->errors, ".regex", "errors compiling regex: %s", why);
    }
    tc_free(why);
    return r;
}

struct tc_regex *tc_decode_regex(struct tc_decoder *dec, const char *field,
                                 const Envoy__Type__Matcher__V3__RegexMatcher *m)
{
    struct tc_regex *r = NULL;
    tc_validation_push_field(dec->errors, field);
    if (m)
        r = decode_present_regex(dec, m);
    else
        tc_validation_add(dec->errors, "field not present");
    tc_validation_pop(dec->errors);
    return r;
}

static bool matcher_set_text(struct tc_decoder *dec, struct tc_string_matcher *out, enum tc_string_match_kind kind,
                             const char *text, const char *field)
{
    out->kind = kind;
    out->text = tc_resource_arena_text(dec->arena, text);
    return kind == TC_MATCH_EXACT || tc_decode_nonempty(dec, text, field);
}

bool tc_decode_string_matcher(struct tc_decoder *dec, const Envoy__Type__Matcher__V3__StringMatcher *m,
                              struct tc_string_matcher *out)
{
    *out = (struct tc_string_matcher){.ignore_case = m && m->ignore_case};
    if (!m) {
        tc_validation_add(dec->errors, "field not present");
        return false;
    }
    switch (m->match_pattern_case) {
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_EXACT:
        return matcher_set_text(dec, out, TC_MATCH_EXACT, m->exact, ".exact");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_PREFIX:
        return matcher_set_text(dec, out, TC_MATCH_PREFIX, m->prefix, ".prefix");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_SUFFIX:
        return matcher_set_text(dec, out, TC_MATCH_SUFFIX, m->suffix, ".suffix");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_CONTAINS:
        return matcher_set_text(dec, out, TC_MATCH_CONTAINS, m->contains, ".contains");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_SAFE_REGEX:
        out->kind = TC_MATCH_REGEX;
        out->ignore_case = false; /* Envoy's API: no effect on a regex */
        out->text = tc_resource_arena_text(dec->arena, m->safe_regex->regex);
        out->regex = tc_decode_regex(dec, ".safe_regex", m->safe_regex);
        return out->regex != NULL;
    default:
        tc_validation_add(dec->errors, "invalid string matcher");
        return false;
    }
}

void tc_decode_config_source(struct tc_decoder *dec, const char *field, const Envoy__Config__Core__V3__ConfigSource *s)
{
    if (!s)
        tc_validation_add_at(dec->errors, field, "field not present");
    else if (s->config_source_specifier_case != ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_ADS &&
             s->config_source_specifier_case != ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF)
        tc_validation_add_at(dec->errors, field, "must be ads or self");
}

json_t *tc_decode_struct(struct tc_decoder *dec, const Google__Protobuf__Struct *s)
{
    /* Struct knows doubles alone, and LB policies ask for JSON integers. */
    static const struct tc_proto_json_options options = {.struct_integers = true};
    json_t *obj = s ? tc_proto_to_json(&s->base, &options) : json_object();
    if (!obj)
        tc_validation_add(dec->errors, "nested too deeply");
    return obj;
}

const char *tc_decode_enum_name(struct tc_decoder *dec, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    if (v)
        return v->name;
    struct tc_buf digits = {0};
    tc_buf_printf(&digits, "%d", value);
    const char *text = tc_resource_arena_text(dec->arena, tc_buf_cstr(&digits)).data;
    tc_buf_fini(&digits);
    return text;
}

const char *tc_decode_clip(struct tc_decoder *dec, struct tc_slice text)
{
    size_t len = TC_MIN(text.len, (size_t)TEXT_MAX);
    if (len < text.len)
        while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
            len--;
    char *copy = tc_resource_arena_array(dec->arena, len + 1, 1);
    if (len)
        memcpy(copy, text.data, len);
    return copy;
}

struct tc_slice tc_decode_peek_name(struct tc_slice bytes)
{
    struct tc_slice name = tc_wire_find(bytes, 1);
    if (name.len > NAME_MAX_BYTES || (name.len && memchr(name.data, 0, name.len)) || !tc_utf8_valid(name))
        return tc_slice_of(NULL, 0);
    return name;
}

struct tc_rstr *tc_decode_name(struct tc_slice bytes)
{
    struct tc_slice name = tc_decode_peek_name(bytes);
    return name.len ? tc_rstr_new(name.data, name.len) : NULL;
}

bool tc_decode_nonempty(struct tc_decoder *dec, const char *text, const char *field)
{
    if (text && *text)
        return true;
    tc_validation_add_at(dec->errors, field, "must be non-empty");
    return false;
}
