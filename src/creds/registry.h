/* Credentials by name, as a bootstrap names them: of channels (channel_creds) "insecure", "tls" (A65) and
 * "google_default", of calls (call_creds, A97) "jwt_token_file". Any thread. */
#ifndef TC_CREDS_REGISTRY_H
#define TC_CREDS_REGISTRY_H

#include <stdbool.h>
#include <torc/credentials.h>

/* Make credentials of a type from its JSON config (NULL: an empty object). Return NULL, and the validation errors in
 * *why (tc_free), when the type is unknown to this library, the config is bad, or the credentials cannot be made
 * (google_default finds no usable file, say). `why` may be NULL. */
torc_credentials *tc_creds_from_config(const char *type, const char *config_json, char **why);
torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why);
bool tc_creds_type_supported(const char *type);
bool tc_call_creds_type_supported(const char *type);

#endif
