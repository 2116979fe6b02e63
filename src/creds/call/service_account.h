/* Call credentials of a service account's key: JWTs that it signs itself (Google's AIP-4111). Any thread. */
#ifndef TC_CREDS_CALL_SERVICE_ACCOUNT_H
#define TC_CREDS_CALL_SERVICE_ACCOUNT_H

#include "base/clock.h"
#include "creds/call/call.h"
#include "tls/openssl.h"

struct tc_service_account {
    const char *email;  /* issuer and subject; copied */
    const char *key_id; /* copied */
    EVP_PKEY *key;      /* RSA; takes a reference of its own */
};

/* The audience is the RPC's host, "https://host/". A token lives for an hour and serves until 30 s before its end. An
 * RPC in its last 90 s has the background thread sign the next token. The clock must outlive the last call of get. */
torc_call_credentials *tc_service_account_creds(const struct tc_service_account *account, const struct tc_clock *clock);

#endif
