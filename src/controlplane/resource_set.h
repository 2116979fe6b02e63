/* A set of xDS resources as a control plane serves them: by type and name, each type with a version. Owned by its maker
 * until a control plane takes it over; one thread at a time. */
#ifndef TC_CONTROLPLANE_RESOURCE_SET_H
#define TC_CONTROLPLANE_RESOURCE_SET_H

#include "base/rstr.h"
#include "base/validation_errors.h"
#include "base/vec.h"

struct tc_set_resource {
    struct tc_rstr *name;
    struct tc_rstr *value; /* the serialised message */
    struct tc_rstr *file;  /* the file that it was read from; NULL: none. Copies have none. */
};

struct tc_set_type {
    struct tc_rstr *type_url;     /* "type.googleapis.com/envoy.config.cluster.v3.Cluster" */
    struct tc_rstr *version;      /* NULL before the first tc_resource_set_version */
    struct tc_rstr *version_hint; /* version_info of the documents that it came from, different ones joined by '+';
                                     NULL: none. Copies have none. */
    struct tc_rstr *version_base; /* the hint that `version` begins with; NULL: `version` is a number, or NULL */
    uint64_t changes;             /* how often the content has changed, as counted by tc_resource_set_version */
    TC_VEC(struct tc_set_resource) resources; /* sorted by name */
};

/* Checks a resource of a document before it is added; its errors reject the resource. */
typedef void (*tc_set_check_fn)(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                                struct tc_validation_errors *errors);

struct tc_resource_set {
    TC_VEC(struct tc_set_type) types;
    tc_set_check_fn check; /* for documents (resource_load.h); NULL: none. Copies have none. */
    void *check_arg;
    /* Called once for each resource that has fields, or names of enum values, that Torc does not know; `text` says
     * which ones, and the resource is read without them. NULL: each is an error. `file` (NULL: none) and `text` are
     * borrowed. Copies have none. */
    void (*warn)(void *arg, const char *file, const char *text);
    void *warn_arg;
    struct tc_rstr *file; /* the file that is being read; NULL: none */
    /* true (set by tc_resource_set_load): a document's resource that the set has already is an error. false (also in
     * copies): the later resource replaces the first. */
    bool once;
};

/* Returns an empty set, which the caller owns. */
struct tc_resource_set *tc_resource_set_new(void);
/* NULL is allowed. */
void tc_resource_set_free(struct tc_resource_set *s);
/* Returns a copy that shares the bytes, with the versions and the numbers of changes of `s`; `s` NULL: an empty set.
 * The caller owns the copy. */
struct tc_resource_set *tc_resource_set_copy(const struct tc_resource_set *s);
/* Adds or replaces a resource. Copies the name and the value. */
void tc_resource_set_put(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name,
                         struct tc_slice value);
/* Returns true if the resource was there. */
bool tc_resource_set_remove(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name);
/* Return NULL if the set does not have the type, or the type does not have the name. A type whose resources were all
 * removed is empty, not absent. `s` may be NULL, `t` may not. Borrowed until the set is changed. */
const struct tc_set_type *tc_resource_set_type(const struct tc_resource_set *s, struct tc_slice type_url);
const struct tc_set_resource *tc_set_type_find(const struct tc_set_type *t, struct tc_slice name);

/* Gives each type its version, as the successor of `before` (may be NULL). A type with the same content as in `before`
 * keeps that version. Changed content gets one of these versions, where N is the number of the type's changes:
 *
 *   HINT      The type has a hint, and `before` does not have the type, or has it with a base and a version that does
 *             not begin with the hint.
 *   HINT.N    The type has a hint, but `before` has the type without a base, or with a version that begins with HINT.
 *   BASE.N    The type has no hint, and `before` has it with a base.
 *   N         The type has no hint, and `before` has it without a base, or not at all.
 *
 * So two contents get the same version only if a document's version_info is an earlier version of the type. Types that
 * only `before` has are added as empty types, so that clients hear of the removal. */
void tc_resource_set_version(struct tc_resource_set *s, const struct tc_resource_set *before);

#endif
