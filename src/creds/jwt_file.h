/* Call credentials of a JWT in a file (A97). */
#ifndef TC_CREDS_JWT_FILE_H
#define TC_CREDS_JWT_FILE_H

#include "base/buf.h"
#include "creds/token.h"

/* The path is copied; the file is read when an RPC needs the token. */
torc_call_credentials *tc_call_creds_jwt_file(const char *path);
/* What such a file's content leads to: UNAUTHENTICATED when it holds no JWT with an expiration. */
void tc_jwt_file_token(const char *path, struct tc_slice content, struct tc_token *out);

#endif
