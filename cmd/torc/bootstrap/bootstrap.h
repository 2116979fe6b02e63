/* torc bootstrap: bootstrap.c reads the command line, write.c makes a bootstrap, check.c finds faults in one. */
#ifndef TORC_BOOTSTRAP_COMMAND_H
#define TORC_BOOTSTRAP_COMMAND_H

#include <jansson.h>

#include "base/buf.h"
#include "base/vec.h"

#define BOOTSTRAP_NAME "bootstrap"

struct bootstrap_args {
    TC_VEC(const char *) servers, features, metadata;
    bool istio, gke, json;
    const char *creds, *ca, *cert, *key; /* NULL: not given */
    const char *node_id, *node_cluster, *locality;
    const char *project, *network;
    const char *check; /* a file; NULL: a bootstrap is written */
};

/* --- write.c --- */

/* Makes the bootstrap that the options describe. Returns 0 or CLI_USAGE, with the error printed. The caller frees *out
 * with json_decref in either case. */
int bootstrap_make(const struct bootstrap_args *a, json_t **out);

/* --- check.c --- */

struct bootstrap_finding {
    char *path; /* "xds_servers[0].server_uri", names from the text escaped as ["na\"me"]; "": the whole text */
    char *text;
};

struct bootstrap_list {
    TC_VEC(struct bootstrap_finding) all;
    size_t bytes, left_out; /* of all paths and texts; how many findings had no room */
};

struct bootstrap_findings {
    struct bootstrap_list faults;   /* a channel refuses the bootstrap */
    struct bootstrap_list warnings; /* a channel takes it: an ignored member or server feature, a file that cannot be
                                       read here, a server that counts as down because its URI is not a target */
    char *summary;                  /* the servers, authorities and node of a channel; NULL with faults */
};

/* Finds what is wrong with a bootstrap. The caller ends *out with bootstrap_findings_fini. */
void bootstrap_check(struct tc_slice text, struct bootstrap_findings *out);
void bootstrap_findings_fini(struct bootstrap_findings *f);

#endif
