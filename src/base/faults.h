/* Field-path errors that add up, so that one message names every fault:
 *     tc_faults_push(&f, "eds_cluster_config"); tc_faults_push(&f, ".eds_config"); tc_faults_add(&f, "must be ads or
 * self"); The path is built of what is pushed; a segment starts with '.' or '[' except the first. Used by resources,
 * the bootstrap and LB policy configs. */
#ifndef TC_BASE_FAULTS_H
#define TC_BASE_FAULTS_H

#include "base/buf.h"
#include "base/vec.h"

/* One pushed segment. Most are never shown, so those of literals become text only when a fault is found. */
struct tc_faults_segment {
    const char *field; /* NULL: a text, which is in the path already */
    size_t index;      /* SIZE_MAX: without one */
    size_t mark;       /* length of the path before it, once it is in there */
};

struct tc_faults {
    struct tc_buf path; /* of the first `shown` segments */
    TC_VEC(struct tc_faults_segment) segments;
    size_t shown;
    struct tc_buf text; /* "field a.b: reason; field c: reason" */
    size_t count;
    size_t max_text_bytes; /* text beyond it is cut, count goes on; 0: 8 KiB */
};

void tc_faults_init(struct tc_faults *f);
void tc_faults_fini(struct tc_faults *f);
/* A segment of the path, printf form: ".name", "[3]", ".map[\"key\"]". A '.' at the very start is dropped. */
void tc_faults_push(struct tc_faults *f, const char *fmt, ...) TC_PRINTF(2, 3);
/* The same for what is pushed often: ".name" or, with an index, ".name[3]". Of a literal, and cheap. */
void tc_faults_push_field(struct tc_faults *f, const char *field);
void tc_faults_push_index(struct tc_faults *f, const char *field, size_t index);
void tc_faults_pop(struct tc_faults *f);
/* The present path; borrowed until it changes. */
struct tc_slice tc_faults_path(struct tc_faults *f);
/* A fault at the present path. */
void tc_faults_add(struct tc_faults *f, const char *fmt, ...) TC_PRINTF(2, 3);
/* A fault at a field below the present path: push, add, pop. */
void tc_faults_add_at(struct tc_faults *f, const char *field, const char *fmt, ...) TC_PRINTF(3, 4);

static inline bool tc_faults_any(const struct tc_faults *f)
{
    return f->count != 0;
}

/* All faults, "; " between them; borrowed. */
const char *tc_faults_text(struct tc_faults *f);

#endif
