/* Options structs: the tables of their fields, and their reader, without the objects that the options are for.
 * every_byte_has_its_field, `sizes` and `ranges` take each struct of tc_options_structs; `completion` takes
 * torc_channel_options alone. Also torc_time_left, which gives an RPC its timeout_ms. */
#include <math.h>
#include <stdio.h>

#include "support/cmocka.h"

#include <torc/torc.h>

#include "base/common.h"
#include "base/options.h"
#include "base/sized.h"

/* Room for any options struct, and for fields of newer headers behind it. */
union any {
    uint64_t size;
    unsigned char bytes[TC_SIZED_MAX + 8];
};

static size_t width(enum tc_option_type type)
{
    switch (type) {
    case TC_OPTION_INTEGER:
        return sizeof(int64_t);
    case TC_OPTION_SWITCH:
        return sizeof(int32_t);
    case TC_OPTION_NUMBER:
        return sizeof(double);
    case TC_OPTION_TEXT:
    case TC_OPTION_POINTER:
        break;
    }
    return sizeof(void *);
}

/* Returns the offset of a field of `bytes` bytes after fields that end at `at`. A 32-bit machine may align 64-bit
 * numbers to eight bytes (ARM does), and then pads before such a number. On 64-bit machines no struct is padded. */
static size_t aligned(size_t at, size_t bytes)
{
    static const struct {
        char c;
        uint64_t number;
    } placed;
    size_t alignment = (size_t)((const char *)&placed.number - &placed.c);
    return sizeof(void *) == 4 && bytes == 8 ? (at + alignment - 1) / alignment * alignment : at;
}

/* A field that the table leaves out leaves a gap, because the structs have no padding but that of `aligned`. */
static void every_byte_has_its_field(void **state)
{
    (void)state;
    for (size_t k = 0; k < TC_OPTIONS_KINDS; k++) {
        const struct tc_options_struct *s = &tc_options_structs[k];
        size_t at = sizeof(uint64_t);
        for (size_t i = 0; i < s->n_fields; i++) {
            at = aligned(at, width(s->fields[i].type));
            if (s->fields[i].offset != at)
                fail_msg("%s: %s is at %zu, the fields before it end at %zu", s->tag, s->fields[i].name,
                         s->fields[i].offset, at);
            at += width(s->fields[i].type);
        }
        if (aligned(at, 8) != s->size)
            fail_msg("%s has %zu bytes, its fields end at %zu", s->tag, s->size, at);
    }
}

/* Reads `given` with tc_options_complete. Asserts the code and the layer of the error, that its text contains `text`,
 * and that no byte behind the completed struct is written. */
static void expect(size_t kind, const union any *given, int code, const char *text)
{
    union any to;
    torc_error *error = NULL;
    memset(&to, 0xa5, sizeof(to));
    bool ok = tc_options_complete((enum tc_options_kind)kind, &to, given, &error);
    assert_int_equal(ok, code == TORC_OK);
    if (torc_error_code(error) != code || !strstr(torc_error_text(error), text))
        fail_msg("%s: %d %s, not %d %s", tc_options_structs[kind].tag, torc_error_code(error), torc_error_text(error),
                 code, text);
    if (!ok)
        assert_int_equal(torc_error_layer(error), TORC_LAYER_API);
    torc_error_clear(&error);
    for (size_t i = tc_options_structs[kind].size; i < sizeof(to); i++)
        assert_int_equal(to.bytes[i], 0xa5);
}

static void sizes(void **state)
{
    (void)state;
    static union any given;
    for (size_t k = 0; k < TC_OPTIONS_KINDS; k++) {
        static const uint64_t none[] = {0, 7, TC_SIZED_MAX + 1, UINT32_MAX, UINT64_MAX};
        const struct tc_options_struct *s = &tc_options_structs[k];
        memset(&given, 0, sizeof(given));
        for (size_t i = 0; i < TC_ARRAY_LEN(none); i++) {
            char text[128];
            given.size = none[i];
            snprintf(text, sizeof(text), "%s: size is %llu: initialise the struct with TORC_SIZE(%s)", s->title,
                     (unsigned long long)none[i], s->tag);
            expect(k, &given, TORC_EINVAL, text);
        }
        for (given.size = 8; given.size <= s->size; given.size += 4)
            expect(k, &given, TORC_OK, "");
        given.size = TC_SIZED_MAX;
        expect(k, &given, TORC_OK, "");
        given.bytes[TC_SIZED_MAX - 1] = 1;
        expect(k, &given, TORC_EUNSUPPORTED,
               "does not know: the program was built with the headers of a newer version");
        given.size = TC_SIZED_MAX - 1;
        expect(k, &given, TORC_OK, "");
        given.size = s->size + 8;
        given.bytes[s->size] = 1;
        expect(k, &given, TORC_EUNSUPPORTED, s->tag);
        /* Bytes behind `size` are not read. */
        given.size = s->size;
        given.bytes[s->size] = 0xff;
        expect(k, &given, TORC_OK, "");
        memset(given.bytes + 8, 0xff, sizeof(given.bytes) - 8);
        given.size = 8;
        expect(k, &given, TORC_OK, "");
    }
}

/* Sets the field `f` alone, to the value at `value`, which has the field's type. `ok`: whether the value is accepted;
 * if not, the error names the field. */
static void try_value(size_t kind, const struct tc_option *f, const void *value, bool ok)
{
    union any given = {.size = tc_options_structs[kind].size};
    char text[64];
    memcpy(given.bytes + f->offset, value, width(f->type));
    snprintf(text, sizeof(text), ": %s: is ", f->name);
    expect(kind, &given, ok ? TORC_OK : TORC_EINVAL, ok ? "" : text);
}

static void try_integers(size_t kind, const struct tc_option *f)
{
    const struct tc_option_range *r = &f->of.range;
    const int64_t values[] = {INT64_MIN,
                              -2,
                              -1,
                              0,
                              1,
                              r->least > INT64_MIN ? r->least - 1 : 0,
                              r->least,
                              r->most,
                              r->standard,
                              INT64_MAX,
                              r->most < INT64_MAX ? r->most + 1 : 0};
    for (size_t i = 0; i < TC_ARRAY_LEN(values); i++)
        try_value(kind, f, &values[i],
                  values[i] == 0 || (values[i] == -1 && r->has_minus_one) ||
                      (values[i] >= r->least && values[i] <= r->most));
}

static void ranges(void **state)
{
    (void)state;
    for (size_t k = 0; k < TC_OPTIONS_KINDS; k++) {
        for (size_t i = 0; i < tc_options_structs[k].n_fields; i++) {
            const struct tc_option *f = &tc_options_structs[k].fields[i];
            if (f->type == TC_OPTION_INTEGER)
                try_integers(k, f);
            for (int32_t v = -3; f->type == TC_OPTION_SWITCH && v <= 3; v++)
                try_value(k, f, &v, v >= -1 && v <= 1);
            const double bad[] = {-0.5, -2, 1e9, NAN, INFINITY}, good[] = {0, 1, f->of.interval.most};
            for (size_t d = 0; f->type == TC_OPTION_NUMBER && d < TC_ARRAY_LEN(bad); d++)
                try_value(k, f, &bad[d], false);
            for (size_t d = 0; f->type == TC_OPTION_NUMBER && d < TC_ARRAY_LEN(good); d++)
                try_value(k, f, &good[d], true);
        }
    }
}

/* 0 becomes the default, -1 what it stands for, a switch 1 or 0. */
static void completion(void **state)
{
    (void)state;
    struct torc_channel_options given = {TORC_SIZE(torc_channel_options),
                                         .retries = TORC_OFF,
                                         .gzip = TORC_ON,
                                         .keepalive_without_calls = TORC_OFF,
                                         .idle_timeout_ms = -1,
                                         .dns_min_interval_ms = -1,
                                         .backoff_jitter = -1,
                                         .connect_timeout_ms = 7};
    struct torc_channel_options to;
    assert_true(tc_options_complete(TC_OPTIONS_CHANNEL, &to, &given, NULL));
    assert_int_equal(to.service_config_lookup, 1);
    assert_int_equal(to.retries, 0);
    assert_int_equal(to.gzip, 1);
    assert_int_equal(to.keepalive_without_calls, 0);
    assert_true(to.idle_timeout_ms == INT64_MAX);
    assert_int_equal(to.dns_min_interval_ms, 0);
    assert_true(to.backoff_jitter == 0);
    assert_int_equal(to.connect_timeout_ms, 7);
    assert_int_equal(to.backoff_max_ms, 120000);
    assert_true(tc_options_complete(TC_OPTIONS_CHANNEL, &to, NULL, NULL));
    assert_int_equal(to.size, sizeof(to));
    assert_int_equal(to.retries, 1);
    assert_int_equal(to.gzip, 0);
    assert_true(to.backoff_jitter > 0.19 && to.backoff_jitter < 0.21);
    /* tc_options_take alone leaves 0 and -1 as they are. */
    assert_true(tc_options_take(TC_OPTIONS_CHANNEL, &to, &given, NULL));
    assert_int_equal(to.retries, TORC_OFF);
    assert_int_equal(to.backoff_max_ms, 0);
}

static void time_left(void **state)
{
    (void)state;
    int64_t now_ms = torc_time_ms();
    assert_true(now_ms > 0);
    assert_int_equal(torc_time_left(now_ms), -1);
    assert_int_equal(torc_time_left(0), -1);
    assert_int_equal(torc_time_left(INT64_MIN), -1);
    assert_true(torc_time_left(INT64_MAX) > 0);
    int64_t left = torc_time_left(now_ms + 3600000);
    assert_true(left > 0 && left <= 3600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_has_its_field),
        cmocka_unit_test(sizes),
        cmocka_unit_test(ranges),
        cmocka_unit_test(completion),
        cmocka_unit_test(time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
