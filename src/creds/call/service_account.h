/* Call credentials of a service account: JWTs that this process signs with the account's key, without a token endpoint
 * (Google's AIP-4111). Any thread. */
#ifndef TC_CREDS_CALL_SERVICE_ACCOUNT_H
#define TC_CREDS_CALL_SERVICE_ACCOUNT_H

#include "base/clock.h"
#include "creds/call/call.h"
#include "tls/openssl.h"

struct tc_service_account {
    const char *email;  /* issuer and subject; copied */
    const char *key_id; /* "kid" of the JWTs; copied */
    EVP_PKEY *key;      /* RSA; the credentials take a reference of their own */
};

/* Makes credentials with one reference. The audience of a token is the RPC's host, "https://host/". A token lives for
 * an hour and serves until 30 s before its end. In a token's last 90 s an RPC has the background thread sign the next
 * one. The clock must outlive the last call of get. */
torc_call_credentials *tc_service_account_creds(const struct tc_service_account *account, const struct tc_clock *clock);

#endif
