/* Options structs of applications: a table of the fields of each, and one reader for all. A struct that the reader has
 * read shares texts and pointers with the application's. `error` is as in tc_error_set. Any thread. */
#ifndef TC_BASE_OPTIONS_H
#define TC_BASE_OPTIONS_H

#include "base/status.h"

enum tc_options_kind {
    TC_OPTIONS_RUNTIME,
    TC_OPTIONS_CHANNEL,
    TC_OPTIONS_CALL,
    TC_OPTIONS_TLS,
    TC_OPTIONS_TLS_FILES,
    TC_OPTIONS_GOOGLE,
    TC_OPTIONS_SERVER,
    TC_OPTIONS_LOG_SINK,
    TC_OPTIONS_INTERCEPTOR,
    TC_OPTIONS_METHOD,
    TC_OPTIONS_SERVER_TLS,
    TC_OPTIONS_SERVER_TLS_FILES,
    TC_OPTIONS_DIALER,
    TC_OPTIONS_KINDS
};

enum tc_option_type {
    TC_OPTION_INTEGER, /* int64_t */
    TC_OPTION_SWITCH,  /* int32_t */
    TC_OPTION_NUMBER,  /* double */
    TC_OPTION_TEXT,    /* const char * */
    TC_OPTION_POINTER,
};

/* Values of an integer. */
struct tc_option_range {
    int64_t standard; /* what 0 stands for */
    int64_t least, most;
    int64_t minus_one; /* what -1 stands for, if it may be given */
    bool has_minus_one;
};

/* Values of a number. */
struct tc_option_interval {
    double standard, least, most;
    double minus_one;
    bool has_minus_one;
};

/* A field of a struct. `of`: an integer has a range, a number an interval, a switch `on` (whether it is on by default),
 * a text or pointer nothing. */
struct tc_option {
    const char *name;
    size_t offset;
    enum tc_option_type type;
    union {
        struct tc_option_range range;
        struct tc_option_interval interval;
        bool on;
    } of;
};

/* A struct. `fields` are all fields after `size`, in their order. */
struct tc_options_struct {
    const char *tag;   /* "torc_channel_options" */
    const char *title; /* the struct's name in errors: "options" */
    size_t size;
    const struct tc_option *fields;
    size_t n_fields;
};

extern const struct tc_options_struct tc_options_structs[TC_OPTIONS_KINDS];

/* Copies `given` (NULL: all fields are zero) to `to`, a struct of this version, and checks its fields. Returns false
 * with an error if the size of `given` or a field is out of its range (TORC_EINVAL), or if a field that the library
 * does not know is set (TORC_EUNSUPPORTED); `to` must not be used then. Texts and pointers are copied as pointers and
 * not checked. */
bool tc_options_take(enum tc_options_kind kind, void *to, const void *given, torc_error **error);

/* Does what tc_options_take does, and replaces each 0 by the default and each -1 that the field's range has by what the
 * -1 stands for. A default that the table cannot know, since it depends on the process or on another struct
 * (ring_size_cap, max_connections), stays 0. "No limit" is INT64_MAX, or the largest value of the field's range
 * (max_idle_connections, max_cancels), or 0 in fields where 0 means that too (memory_limit_bytes, max_calls,
 * max_timeout_ms). Switches become 1 and 0. */
bool tc_options_complete(enum tc_options_kind kind, void *to, const void *given, torc_error **error);

/* Returns false with an error (TORC_EINVAL) if the value that `options`, a struct of this version, has for the field is
 * out of range. */
bool tc_option_check(const struct tc_options_struct *s, const struct tc_option *field, const void *options,
                     torc_error **error);

/* Copies `given`, which must not be NULL, to `to` of `known` bytes and checks its size alone: for structs without a
 * table, such as factories, and for an interceptor, whose title is its place in a list. The text of the error begins
 * with `title` and names the struct `tag`. Returns false with an error, and `to` untouched, if the size is out of range
 * (TORC_EINVAL) or a field that the library does not know is set (TORC_EUNSUPPORTED). */
bool tc_sized_read(void *to, size_t known, const void *given, const char *title, const char *tag, torc_error **error);

#endif
