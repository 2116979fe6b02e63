/* TLS credentials and SPIFFE in a library that was built with TORC_TLS off: all of them fail with the reason. */
#include "base/mem.h"
#include "base/status.h"
#include "creds/spiffe.h"
#include "creds/tls.h"

#define WITHOUT "Torc was built without TLS"

torc_credentials *torc_credentials_tls(const struct torc_tls_options *options TC_UNUSED, torc_error **error)
{
    if (!tc_error_pending(error))
        tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_TLS, "%s", WITHOUT);
    return NULL;
}

torc_credentials *torc_credentials_tls_files(const struct torc_tls_files *files TC_UNUSED, torc_error **error)
{
    return torc_credentials_tls(NULL, error);
}

torc_credentials *torc_server_credentials_tls(const struct torc_server_tls_options *options TC_UNUSED,
                                              torc_error **error)
{
    return torc_credentials_tls(NULL, error);
}

torc_credentials *torc_server_credentials_tls_files(const struct torc_server_tls_files *files TC_UNUSED,
                                                    torc_error **error)
{
    return torc_credentials_tls(NULL, error);
}

struct tc_spiffe_map *tc_spiffe_map_parse(struct tc_slice json TC_UNUSED, struct tc_validation_errors *errors)
{
    tc_validation_add(errors, "%s", WITHOUT);
    return NULL;
}

const char *tc_spiffe_id_parse(struct tc_slice id TC_UNUSED, struct tc_slice *domain TC_UNUSED)
{
    return WITHOUT;
}

struct tc_spiffe_map *tc_spiffe_map_ref(struct tc_spiffe_map *m)
{
    return m;
}

void tc_spiffe_map_unref(struct tc_spiffe_map *m TC_UNUSED) {}

struct stack_st_X509 *tc_spiffe_map_roots(const struct tc_spiffe_map *m TC_UNUSED, struct x509_st *leaf TC_UNUSED,
                                          struct tc_buf *why)
{
    tc_buf_append_str(why, WITHOUT);
    return NULL;
}
