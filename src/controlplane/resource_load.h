/* Fills resource sets from files and JSON. Any thread; one set on one thread at a time. */
#ifndef TC_CONTROLPLANE_RESOURCE_LOAD_H
#define TC_CONTROLPLANE_RESOURCE_LOAD_H

#include <jansson.h>

#include "controlplane/resource_set.h"

/* Adds the resources of one document in the shape of Envoy's filesystem xDS: {"version_info": "1", "resources":
 * [{"@type": ...}]}, or a bare list, or a single resource. A resource may be wrapped in an
 * envoy.service.discovery.v3.Resource, of which only name and resource count. Errors carry field paths; the good
 * resources are added even if others are wrong. */
void tc_resource_set_add_json(struct tc_resource_set *s, const json_t *doc, struct tc_validation_errors *errors);
/* Reads files (YAML or JSON, at most 256 MiB each) and folders: every .yaml, .yml and .json in a folder, in the order
 * of names, without hidden files; a folder without any is an error. Sets s->once: a resource that is given twice is an
 * error. Stops at the first file with an error, and returns TORC_EPARSE or TORC_EIO with a text that names the path and
 * the reason in *why (tc_free). The set keeps what was read before, and the good resources of the file with the error.
 * Returns 0 otherwise. */
int tc_resource_set_load(struct tc_resource_set *s, const char *const *paths, size_t n, char **why);

#endif
