/* Reads the endpoints of torc ring and torc simulate: from options, from files, and from a cluster of xDS resources.
 * Functions return 0, or an exit status with the error printed. */
#ifndef TORC_ENDPOINTS_H
#define TORC_ENDPOINTS_H

#include "lb/policy.h"

/* Parses KEY[=WEIGHT], cut at the last '='. A weight is at least 1. Without a weight, *weight is 1 and *weighted false.
 * *key is not empty, and borrows from the text. */
int endpoints_parse(const char *command, const char *option, struct tc_slice text, struct tc_slice *key,
                    uint64_t *weight, bool *weighted);
/* Calls fn for each line of the file of --endpoints ("-": standard input), without the white space around the line.
 * Leaves out lines that are then empty or begin with '#'. A line with a NUL is an error. Stops when fn does not return
 * 0, and returns that exit status. The line is valid until fn returns. */
int endpoints_each_line(const char *command, const char *path, int (*fn)(void *arg, struct tc_slice line), void *arg);
/* Reads the resources of `n` files and folders, and decodes those of the cluster as a client does. Stores the config of
 * the cluster's LB policy, and the endpoints of one priority (counted from 0) that a client would use. The caller owns
 * a reference to each. Both are NULL after a failure. A priority without such endpoints is a failure. */
int endpoints_of_cluster(const char *command, const char *const *paths, size_t n, const char *cluster,
                         uint64_t priority, struct tc_lb_config **config, struct tc_endpoints **endpoints);

#endif
