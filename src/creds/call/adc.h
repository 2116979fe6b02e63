/* Application default credentials: the places where Google's libraries look for a program's identity (AIP-4110). Any
 * thread. */
#ifndef TC_CREDS_CALL_ADC_H
#define TC_CREDS_CALL_ADC_H

#include "creds/call/call.h"

/* Borrowed for the call. */
struct tc_adc_opts {
    const char *credentials_file; /* NULL or empty: the environment's order */
    const char *metadata_host;    /* NULL: GCE_METADATA_HOST, or Google's */
    const char *roots_file;       /* for token endpoints; NULL: the system's */
};

/* Returns a new reference to the credentials of the first of: credentials_file, or else the file named by
 * GOOGLE_APPLICATION_CREDENTIALS; application_default_credentials.json in CLOUDSDK_CONFIG or ~/.config/gcloud, if it
 * exists; the metadata server. Returns NULL with the reason in *why (tc_free; `why` may be NULL) when the file cannot
 * be read, or tc_adc_parse rejects it. The metadata server is asked when an RPC needs its token. */
torc_call_credentials *tc_adc_find(const struct tc_adc_opts *opts, char **why);
/* Makes credentials from the text of a credentials file of type "service_account" or "authorized_user", and returns a
 * new reference. `roots_file` (NULL: the system's) is for the token endpoint of an authorized user. Returns NULL with
 * the reason in *why (tc_free; `why` may be NULL). */
torc_call_credentials *tc_adc_parse(struct tc_slice text, const char *roots_file, char **why);

#endif
