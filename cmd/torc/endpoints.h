/* Endpoints as torc ring and torc simulate take them: from options, from files, and from a cluster of xDS resources. */
#ifndef TORC_ENDPOINTS_H
#define TORC_ENDPOINTS_H

#include "lb/policy.h"

/* Functions return 0, or an exit status with the message printed. */

/* Parses KEY[=WEIGHT], cut at the last '='. A weight is at least 1; without one *weight is 1 and *weighted false. *key
 * borrows from the text. */
int endpoints_parse(const char *command, const char *option, struct tc_slice text, struct tc_slice *key,
                    uint64_t *weight, bool *weighted);
/* Calls fn for each line of the file of --endpoints ("-": standard input) that is neither empty nor a comment, until fn
 * fails, and returns fn's exit status. The line is trimmed, and lives until fn returns. */
int endpoints_each_line(const char *command, const char *path, int (*fn)(void *arg, struct tc_slice line), void *arg);
/* Reads what a client would take from the resources of these files and folders: the config of the cluster's LB policy,
 * and the endpoints of the priority with their localities. The caller owns a reference to each; both are NULL after a
 * failure. */
int endpoints_of_cluster(const char *command, const char *const *paths, size_t n, const char *cluster,
                         uint64_t priority, struct tc_lb_config **config, struct tc_endpoints **endpoints);

#endif
