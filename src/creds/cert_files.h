/* Certificates, keys and roots in files that are replaced while the process runs (A29's file watcher, A65). Shared; any
 * thread.
 *
 * There is no watcher: files that have changed are read again when their content is asked for. A change shows in the
 * file's identity, size or times, whether by a write, by a rename, or by a link that now points elsewhere. After the
 * refresh interval files are read again in any case. Content that cannot be read or used never replaces good content.
 * Certificate and key change together. */
#ifndef TC_CREDS_CERT_FILES_H
#define TC_CREDS_CERT_FILES_H

#include <jansson.h>

#include "base/clock.h"
#include "base/rstr.h"
#include "creds/spiffe.h"

struct tc_cert_paths {
    const char *ca_certificate_file; /* the trusted roots; not read when there is a trust bundle map */
    const char *certificate_file;    /* read only with private_key_file, and the other way round */
    const char *private_key_file;
    const char *spiffe_trust_bundle_map_file; /* A87 */
    uint64_t refresh_interval_ns;             /* UINT64_MAX: only changes and failures make a file be read again */
};

#define TC_CERT_REFRESH_DEFAULT_NS (600 * TC_NS_PER_S)

/* Reads ca_certificate_file, certificate_file, private_key_file and refresh_interval ("600s") from JSON, and borrows
 * its strings. spiffe_trust_bundle_map_file becomes NULL. Adds an error for a member that is wrong, and for one of
 * certificate and key without the other. */
void tc_cert_paths_parse(const json_t *config, struct tc_cert_paths *out, struct tc_validation_errors *errors);

/* Roots: PEM, or a trust bundle map. */
struct tc_cert_roots {
    struct tc_ref ref;
    uint32_t id;                  /* no other content in the process has it */
    struct tc_rstr *text;         /* PEM, or the map's JSON */
    struct tc_spiffe_map *spiffe; /* NULL: PEM */
};

/* A certificate chain and its private key, PEM, which belong together. */
struct tc_cert_identity {
    struct tc_ref ref;
    uint32_t id; /* no other content in the process has it */
    struct tc_rstr *certificate;
    struct tc_rstr *private_key;
};

void tc_cert_roots_unref(struct tc_cert_roots *r);       /* NULL is allowed */
void tc_cert_identity_unref(struct tc_cert_identity *i); /* NULL is allowed */

struct tc_cert_files;

/* Copies the paths, each of which may be NULL; reads nothing yet. */
struct tc_cert_files *tc_cert_files_new(const struct tc_cert_paths *paths);
struct tc_cert_files *tc_cert_files_ref(struct tc_cert_files *f);
void tc_cert_files_unref(struct tc_cert_files *f); /* NULL is allowed */

/* Return the last good content, with one reference, after reading the files again if that is due; NULL with the reason
 * in *why (tc_free; `why` may be NULL) when there has never been a good one, or no such file is configured. May log, so
 * no lock must be held. */
struct tc_cert_roots *tc_cert_files_roots(struct tc_cert_files *f, char **why);
struct tc_cert_identity *tc_cert_files_identity(struct tc_cert_files *f, char **why);
/* Return whether such files are configured, readable or not. */
bool tc_cert_files_have_roots(const struct tc_cert_files *f);
bool tc_cert_files_have_identity(const struct tc_cert_files *f);
/* Returns the refresh interval; UINT64_MAX: there is none. */
uint64_t tc_cert_files_refresh_ns(const struct tc_cert_files *f);
/* Returns a text that is equal for equal paths and intervals, and only for those; borrowed. */
struct tc_rstr *tc_cert_files_key(const struct tc_cert_files *f);

#endif
