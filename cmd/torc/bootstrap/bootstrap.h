/* torc bootstrap: bootstrap.c reads the command line, write.c makes a bootstrap, check.c finds faults in one. */
#ifndef TORC_BOOTSTRAP_COMMAND_H
#define TORC_BOOTSTRAP_COMMAND_H

#include <jansson.h>

#include "base/buf.h"
#include "base/vec.h"

#define BOOTSTRAP_NAME "bootstrap"

/* The command line. The texts are borrowed from argv, except the default of `network`. NULL: not given. */
struct bootstrap_args {
    TC_VEC(const char *) servers, features, metadata;
    bool istio, gke, json;
    const char *creds, *ca, *cert, *key;
    const char *node_id, *node_cluster, *locality;
    const char *project, *network; /* with gke, bootstrap_make needs both; network: "default" if not given */
    const char *check;             /* a file, or "-"; NULL: a bootstrap is written */
};

/* --- write.c --- */

/* Makes the bootstrap that the options describe. Returns 0, or CLI_USAGE with the error printed. The caller frees *out
 * with json_decref in both cases. */
int bootstrap_make(const struct bootstrap_args *a, json_t **out);

/* --- check.c --- */

/* Owns both texts. */
struct bootstrap_finding {
    char *path; /* "xds_servers[0].server_uri", keys of maps as authorities["na\"me"]; "": no member */
    char *text;
};

struct bootstrap_list {
    TC_VEC(struct bootstrap_finding) all;
    /* bytes: the size of the paths and texts of all findings that came, also of those that were left out. left_out: how
     * many findings are not in `all`, because they took `bytes` over 16 MiB; a last finding in `all` says how many. */
    size_t bytes, left_out;
};

struct bootstrap_findings {
    struct bootstrap_list faults; /* errors */
    /* Findings that a channel does not reject: an ignored member or server feature, a file that cannot be read here, a
     * server that counts as down because its URI is not a target. */
    struct bootstrap_list warnings;
    char *summary; /* one line about the servers, authorities and node; owned; NULL if there are faults */
};

/* Finds what is wrong with a bootstrap. `text` need not be JSON, and is borrowed for the call. Called after
 * tc_builtin_init. Sets all of *out; the caller frees it with bootstrap_findings_fini. */
void bootstrap_check(struct tc_slice text, struct bootstrap_findings *out);
void bootstrap_findings_fini(struct bootstrap_findings *f);

#endif
