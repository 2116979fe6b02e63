/* Call credentials of a JWT in a file (A97). Any thread. */
#ifndef TC_CREDS_CALL_JWT_FILE_H
#define TC_CREDS_CALL_JWT_FILE_H

#include "base/buf.h"
#include "creds/call/token.h"

/* Returns credentials with one reference. The path is copied; the file is read when an RPC needs the token, on the
 * thread that fetches (creds/call/token.h). */
torc_call_credentials *tc_call_creds_jwt_file(const char *path);
/* Stores in *out, which must be zero, the token of a file's content; or the failure UNAUTHENTICATED if the content is
 * not a JWT with an expiry, or a header cannot carry it. `path` is for the error's text. */
void tc_jwt_file_token(const char *path, struct tc_slice content, struct tc_token *out);

#endif
