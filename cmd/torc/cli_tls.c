#include "cli_tls.h"

#include "cli.h"
#include "tls/tls.h"

/* Returns true if a TLS context can be made; otherwise stores the reason in *error, which the caller frees with
 * tc_status_fini. */
static bool makes(const struct tc_tls_opts *opts, struct tc_status *error)
{
    struct tc_tls_context *context = tc_tls_context_new(opts, error);
    bool made = context != NULL;
    tc_tls_context_unref(context);
    return made;
}

int cli_check_tls(const char *command, struct cli_pem ca, struct cli_pem cert, struct cli_pem key)
{
    struct tc_tls_opts roots = {.roots_pem = tc_buf_slice(ca.text)};
    struct tc_tls_opts own = {.certificate_pem = tc_buf_slice(cert.text), .private_key_pem = tc_buf_slice(key.text)};
    struct tc_status error = {0};
    int rc = 0;
    if (ca.text->len && !makes(&roots, &error))
        rc = cli_fail(command, "%s %s: %s", ca.option, ca.path, tc_status_text(&error));
    else if (cert.text->len && key.text->len && !makes(&own, &error))
        rc =
            cli_fail(command, "%s %s, %s %s: %s", cert.option, cert.path, key.option, key.path, tc_status_text(&error));
    tc_status_fini(&error);
    return rc;
}
