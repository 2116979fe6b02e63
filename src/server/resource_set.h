/* A set of xDS resources as a control plane serves them: by type and name, each type with a version. Owned by one loop.
 */
#ifndef TC_SERVER_RESOURCE_SET_H
#define TC_SERVER_RESOURCE_SET_H

#include <jansson.h>

#include "base/faults.h"
#include "base/rstr.h"
#include "base/vec.h"

struct tc_set_resource {
    struct tc_rstr *name;
    struct tc_rstr *value; /* the serialised message */
    struct tc_rstr *file;  /* that it was read from; NULL: none. Copies have none. */
};

struct tc_set_type {
    struct tc_rstr *type_url; /* "type.googleapis.com/envoy.config.cluster.v3.Cluster" */
    struct tc_rstr *version;
    struct tc_rstr *version_hint; /* version_info of the file that it came from; NULL: none, or several files */
    uint64_t changes;             /* how often the content has changed */
    TC_VEC(struct tc_set_resource) resources; /* sorted by name */
};

/* Checks a resource of a document before it is taken in; its faults refuse it. */
typedef void (*tc_set_check_fn)(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                                struct tc_faults *faults);

struct tc_resource_set {
    TC_VEC(struct tc_set_type) types;
    tc_set_check_fn check; /* for tc_resource_set_add_json and _load; NULL: none. Copies have none. */
    void *check_arg;
    /* Told of fields that Torc does not read, which are then left out; NULL: they are faults. `file` (NULL: of none)
     * and `text` are borrowed. */
    void (*warn)(void *arg, const char *file, const char *text);
    void *warn_arg;
    struct tc_rstr *file; /* which is being read; NULL: none */
    bool once;            /* a resource given twice is a fault, as in files; else the later one replaces */
};

struct tc_resource_set *tc_resource_set_new(void);
void tc_resource_set_free(struct tc_resource_set *s);
/* A copy that shares the bytes. */
struct tc_resource_set *tc_resource_set_copy(const struct tc_resource_set *s);
/* Adds or replaces one. */
void tc_resource_set_put(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name,
                         struct tc_slice value);
/* True when it was there. */
bool tc_resource_set_remove(struct tc_resource_set *s, struct tc_slice type_url, struct tc_slice name);
/* Borrowed; NULL when nothing of the type, or of the name, is there. */
const struct tc_set_type *tc_resource_set_type(const struct tc_resource_set *s, struct tc_slice type_url);
const struct tc_set_resource *tc_set_type_find(const struct tc_set_type *t, struct tc_slice name);

/* Gives each type its version, as the successor of `before` (may be NULL): the old version where nothing changed; else
 * the hint where it is new, the hint with ".N" behind it where it is not, and a number counted up without one. Types
 * that went are kept as empty, so that clients hear of it. */
void tc_resource_set_version(struct tc_resource_set *s, const struct tc_resource_set *before);

/* Adds the resources of one document in the shape of Envoy's filesystem xDS: {"version_info": "1", "resources":
 * [{"@type": ...}]}, or a bare list, or a single resource. A resource may be wrapped in an
 * envoy.service.discovery.v3.Resource, of which only name and resource count. Faults carry field paths. */
void tc_resource_set_add_json(struct tc_resource_set *s, const json_t *doc, struct tc_faults *faults);
/* Reads files (YAML or JSON) and folders (every .yaml, .yml and .json in them, by name). 0, or TORC_EPARSE / TORC_EIO
 * with a text that names file and reason in *why (tc_free). */
int tc_resource_set_load(struct tc_resource_set *s, const char *const *paths, size_t n, char **why);

#endif
