/* Field-path errors that add up, so that one message names every fault:
 *     tc_faults_push(&f, "eds_cluster_config"); tc_faults_push(&f, ".eds_config"); tc_faults_add(&f, "must be ads or
 * self"); The path is built of what is pushed; a segment starts with '.' or '[' except the first. Used by resources,
 * the bootstrap and LB policy configs. */
#ifndef TC_BASE_FAULTS_H
#define TC_BASE_FAULTS_H

#include "base/buf.h"
#include "base/vec.h"

struct tc_faults {
    struct tc_buf path;
    TC_VEC(size_t) marks; /* lengths of path before each push */
    struct tc_buf text;   /* "field a.b: reason; field c: reason" */
    size_t count;
    size_t max_text_bytes; /* text beyond it is cut, count goes on; 0: 8 KiB */
};

void tc_faults_init(struct tc_faults *f);
void tc_faults_fini(struct tc_faults *f);
/* A segment of the path, printf form: ".name", "[3]", ".map[\"key\"]". A '.' at the very start is dropped. */
void tc_faults_push(struct tc_faults *f, const char *fmt, ...) TC_PRINTF(2, 3);
void tc_faults_pop(struct tc_faults *f);
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
