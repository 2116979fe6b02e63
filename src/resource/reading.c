#include "resource/reading.h"

#include <math.h>

#include "base/mem.h"
#include "base/parse.h"
#include "proto/wire.h"

#define SECONDS_MAX 315576000000ll
#define NANOS_MAX 999999999
#define TEXT_MAX 128u
#define NAME_MAX_BYTES 65536u

void tc_read_init(struct tc_reading *p, const struct tc_xds_decode_context *ctx, struct tc_store *store, size_t bytes,
                  struct tc_faults *faults)
{
    *p = (struct tc_reading){.ctx = ctx, .reg = tc_xds_registries_of(ctx), .store = store, .faults = faults};
    p->limits = tc_resource_limits_of(ctx);
    tc_arena_init(&p->scratch, TC_MIN(bytes * 4 + 1024, (size_t)65536),
                  TC_MIN(tc_unpack_budget(bytes), p->limits.decode_bytes));
}

void tc_read_fini(struct tc_reading *p)
{
    tc_arena_fini(&p->scratch);
}

void *tc_read_message(struct tc_reading *p, const ProtobufCMessageDescriptor *type, struct tc_slice bytes)
{
    ProtobufCMessage *m = NULL;
    return tc_unpack(type, bytes, &p->scan, &p->scratch, &m, p->faults) ? NULL : m;
}

bool tc_read_any(struct tc_reading *p, const Google__Protobuf__Any *any, struct tc_any *out)
{
    if (!any) {
        tc_faults_add(p->faults, "field not present");
        return false;
    }
    const char *slash = strrchr(any->type_url, '/');
    if (!slash || !slash[1]) {
        tc_faults_add_at(p->faults, ".type_url", "invalid value \"%s\"", tc_read_clip(p, tc_slice_str(any->type_url)));
        return false;
    }
    out->name = tc_slice_str(slash + 1);
    out->bytes = tc_slice_of(any->value.data, any->value.len);
    return true;
}

static bool check_duration(struct tc_reading *p, const Google__Protobuf__Duration *d)
{
    if (!d) {
        tc_faults_add(p->faults, "field not present");
        return false;
    }
    if (d->seconds < 0 || d->seconds > SECONDS_MAX)
        tc_faults_add_at(p->faults, ".seconds", "value must be in the range [0, %lld]", SECONDS_MAX);
    if (d->nanos < 0 || d->nanos > NANOS_MAX)
        tc_faults_add_at(p->faults, ".nanos", "value must be in the range [0, %d]", NANOS_MAX);
    return d->seconds >= 0 && d->seconds <= SECONDS_MAX && d->nanos >= 0 && d->nanos <= NANOS_MAX;
}

bool tc_read_duration_ns(struct tc_reading *p, const Google__Protobuf__Duration *d, uint64_t *ns)
{
    if (!check_duration(p, d))
        return false;
    uint64_t v;
    if (__builtin_mul_overflow((uint64_t)d->seconds, (uint64_t)1000000000, &v) ||
        __builtin_add_overflow(v, (uint64_t)d->nanos, &v) || v > INT64_MAX)
        v = INT64_MAX;
    *ns = v;
    return true;
}

bool tc_read_duration_ms(struct tc_reading *p, const Google__Protobuf__Duration *d, uint64_t *ms)
{
    if (!check_duration(p, d))
        return false;
    *ms = (uint64_t)d->seconds * 1000 + ((uint64_t)d->nanos + 999999) / 1000000;
    return true;
}

bool tc_read_fraction(struct tc_reading *p, const Envoy__Type__V3__FractionalPercent *f, uint32_t *millionths)
{
    if (!f) {
        tc_faults_add(p->faults, "field not present");
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
        tc_faults_add_at(p->faults, ".denominator", "unknown denominator type");
        return false;
    }
    uint64_t v = f->numerator * unit;
    *millionths = v > TC_FRACTION_ONE ? TC_FRACTION_ONE : (uint32_t)v;
    return true;
}

bool tc_read_may_be_slow(struct tc_slice bytes)
{
    const size_t large = 16384;
    return bytes.len >= large ||
           (bytes.len && (memchr(bytes.data, '\\', bytes.len) || memchr(bytes.data, '{', bytes.len)));
}

static void release_regex(void *ptr)
{
    tc_regex_unref(ptr);
}

struct tc_regex *tc_read_regex(struct tc_reading *p, const Envoy__Type__Matcher__V3__RegexMatcher *m)
{
    if (!m) {
        tc_faults_add(p->faults, "field not present");
        return NULL;
    }
    if (!tc_read_nonempty(p, m->regex, ".regex"))
        return NULL;
    size_t *taken = p->ctx && p->ctx->regex_bytes ? p->ctx->regex_bytes : &p->regex_bytes;
    if (*taken >= p->limits.regexes_bytes) {
        tc_faults_add(p->faults, "the regexes of the response take more than regexes_total_bytes, %zu",
                      p->limits.regexes_bytes);
        return NULL;
    }
    char *why = NULL;
    size_t most = p->limits.regex.memory_bytes ? p->limits.regex.memory_bytes : TC_REGEX_MEMORY_MAX_BYTES;
    struct tc_regex *r = tc_regex_new(tc_slice_str(m->regex), &p->limits.regex, &why);
    /* One that fails costs too: "too large" is known only after all that memory has been filled. */
    *taken += tc_regex_reading_cost(tc_slice_str(m->regex)) + (r ? tc_regex_memory(r) : most);
    if (r) {
        tc_store_keep(p->store, release_regex, r);
    } else {
        tc_faults_add_at(p->faults, ".regex", "errors compiling regex: %s", why);
    }
    tc_free(why);
    return r;
}

static bool set_text(struct tc_reading *p, struct tc_string_matcher *out, enum tc_string_match_kind kind,
                     const char *text, const char *field)
{
    out->kind = kind;
    out->text = tc_store_text(p->store, text);
    return kind == TC_MATCH_EXACT || tc_read_nonempty(p, text, field);
}

bool tc_read_string_matcher(struct tc_reading *p, const Envoy__Type__Matcher__V3__StringMatcher *m,
                            struct tc_string_matcher *out)
{
    *out = (struct tc_string_matcher){.ignore_case = m && m->ignore_case};
    if (!m) {
        tc_faults_add(p->faults, "field not present");
        return false;
    }
    switch (m->match_pattern_case) {
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_EXACT:
        return set_text(p, out, TC_MATCH_EXACT, m->exact, ".exact");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_PREFIX:
        return set_text(p, out, TC_MATCH_PREFIX, m->prefix, ".prefix");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_SUFFIX:
        return set_text(p, out, TC_MATCH_SUFFIX, m->suffix, ".suffix");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_CONTAINS:
        return set_text(p, out, TC_MATCH_CONTAINS, m->contains, ".contains");
    case ENVOY__TYPE__MATCHER__V3__STRING_MATCHER__MATCH_PATTERN_SAFE_REGEX:
        tc_faults_push(p->faults, ".safe_regex");
        out->kind = TC_MATCH_REGEX;
        out->ignore_case = false; /* Envoy's API: no effect on a regex */
        out->text = tc_store_text(p->store, m->safe_regex->regex);
        out->regex = tc_read_regex(p, m->safe_regex);
        tc_faults_pop(p->faults);
        return out->regex != NULL;
    default:
        tc_faults_add(p->faults, "invalid string matcher");
        return false;
    }
}

bool tc_read_is_ads_or_self(const Envoy__Config__Core__V3__ConfigSource *s)
{
    return s &&
           (s->config_source_specifier_case == ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_ADS ||
            s->config_source_specifier_case == ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF);
}

static json_t *number_json(double v)
{
    if (v == floor(v) && fabs(v) < 9007199254740992.0)
        return json_integer((json_int_t)v);
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *value_json(struct tc_reading *p, const Google__Protobuf__Value *v, unsigned depth)
{
    if (depth == 0) {
        tc_faults_add(p->faults, "nested too deeply");
        return NULL;
    }
    switch (v ? v->kind_case : GOOGLE__PROTOBUF__VALUE__KIND__NOT_SET) {
    case GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE:
        return number_json(v->number_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE:
        return json_string(v->string_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE:
        return json_boolean(v->bool_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE:
        return tc_read_struct(p, v->struct_value, depth - 1);
    case GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE:
        break;
    default:
        return json_null();
    }
    json_t *list = json_array();
    for (size_t i = 0; i < v->list_value->n_values; i++) {
        json_t *item = value_json(p, v->list_value->values[i], depth - 1);
        if (!item) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, item);
    }
    return list;
}

json_t *tc_read_struct(struct tc_reading *p, const Google__Protobuf__Struct *s, unsigned depth)
{
    json_t *obj = json_object();
    for (size_t i = 0; s && i < s->n_fields; i++) {
        json_t *item = value_json(p, s->fields[i]->value, depth);
        if (!item) {
            json_decref(obj);
            return NULL;
        }
        json_object_set_new(obj, s->fields[i]->key, item);
    }
    return obj;
}

const char *tc_read_enum_name(struct tc_reading *p, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    if (v)
        return v->name;
    struct tc_buf digits = {0};
    tc_buf_printf(&digits, "%d", value);
    const char *text = tc_store_text(p->store, tc_buf_cstr(&digits)).data;
    tc_buf_fini(&digits);
    return text;
}

const char *tc_read_clip(struct tc_reading *p, struct tc_slice text)
{
    size_t len = TC_MIN(text.len, (size_t)TEXT_MAX);
    if (len < text.len)
        while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
            len--;
    char *copy = tc_store_array(p->store, len + 1, 1);
    if (len)
        memcpy(copy, text.data, len);
    return copy;
}

struct tc_slice tc_read_peek_name(struct tc_slice bytes)
{
    struct tc_slice name = tc_wire_find(bytes, 1);
    if (name.len > NAME_MAX_BYTES || (name.len && memchr(name.data, 0, name.len)) || !tc_utf8_valid(name))
        return tc_slice_of(NULL, 0);
    return name;
}

struct tc_rstr *tc_read_name(struct tc_slice bytes)
{
    struct tc_slice name = tc_read_peek_name(bytes);
    return name.len ? tc_rstr_new(name.data, name.len) : NULL;
}

bool tc_read_nonempty(struct tc_reading *p, const char *text, const char *field)
{
    if (text && *text)
        return true;
    tc_faults_add_at(p->faults, field, "must be non-empty");
    return false;
}
