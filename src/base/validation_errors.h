/* Validation errors with field paths, collected so that one message names every error of a resource or a config:
 *
 *     tc_validation_push(&e, "eds_cluster_config");
 *     tc_validation_push(&e, ".eds_config");
 *     tc_validation_add(&e, "must be ads or self");
 *
 * gives "field eds_cluster_config.eds_config: must be ads or self". Resources, the bootstrap, service configs, and the
 * configs of LB policies use it, among others. One thread at a time. */
#ifndef TC_BASE_VALIDATION_ERRORS_H
#define TC_BASE_VALIDATION_ERRORS_H

#include "base/buf.h"
#include "base/vec.h"

/* A pushed segment. Most segments are never shown, so a literal becomes text only when the path is needed: for an
 * error, for tc_validation_path, or before a segment in printf form. */
struct tc_validation_segment {
    const char *field; /* NULL: the segment is a text that is in the path already */
    size_t index;      /* SIZE_MAX: no index */
    size_t mark;       /* length of the path before this segment, once the segment is shown */
};

/* Zero-initialised: no errors. */
struct tc_validation_errors {
    struct tc_buf path; /* the text of the first `shown` segments */
    TC_VEC(struct tc_validation_segment) segments;
    size_t shown;       /* segments that are text in `path`; the rest become text when the path is needed */
    struct tc_buf text; /* "field a.b: reason; field c: reason" */
    size_t count;
    bool cut;              /* `text` was cut: later errors are only counted */
    size_t max_text_bytes; /* `text` is cut there, "..." follows, and `count` goes on; 0: 8 KiB */
    /* If set, called with each error instead of adding the error to `text`. Both slices are borrowed for the call. */
    void (*report)(void *arg, struct tc_slice path, struct tc_slice error);
    void *arg;
};

void tc_validation_fini(struct tc_validation_errors *e);
/* Pushes a segment of the path in printf form: ".name", "[3]", ".map[\"key\"]". A '.' at the very start is dropped. */
void tc_validation_push(struct tc_validation_errors *e, const char *fmt, ...) TC_PRINTF(2, 3);
/* Push ".name" or ".name[3]". `field` is ".name", a literal: the segment becomes text only when the path is needed. */
void tc_validation_push_field(struct tc_validation_errors *e, const char *field);
void tc_validation_push_index(struct tc_validation_errors *e, const char *field, size_t index);
/* Pushes field["key"], such as .children["a"], for a name from outside, escaped as in JSON: no name can look like
 * several segments, or end a line. `field` may be empty. */
void tc_validation_push_key(struct tc_validation_errors *e, const char *field, const char *key);
/* Drops the last segment. */
void tc_validation_pop(struct tc_validation_errors *e);
/* Returns the present path; borrowed until it changes. */
struct tc_slice tc_validation_path(struct tc_validation_errors *e);
/* Adds an error at the present path. */
void tc_validation_add(struct tc_validation_errors *e, const char *fmt, ...) TC_PRINTF(2, 3);
/* Adds an error at a field below the present path, `field` being ".name": push, add, pop. */
void tc_validation_add_at(struct tc_validation_errors *e, const char *field, const char *fmt, ...) TC_PRINTF(3, 4);
/* Adds an error at the member `key` of the present path. Returns false. */
bool tc_validation_add_member(struct tc_validation_errors *e, const char *key, const char *fmt, ...) TC_PRINTF(3, 4);

static inline bool tc_validation_any(const struct tc_validation_errors *e)
{
    return e->count != 0;
}

/* Returns the text of the errors, "; " between them, cut at max_text_bytes; empty with `report`. Borrowed until the
 * next error or tc_validation_fini. */
const char *tc_validation_text(struct tc_validation_errors *e);

#endif
