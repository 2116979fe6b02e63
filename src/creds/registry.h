/* Credentials by the names that a bootstrap uses. Channel credentials (channel_creds): "insecure", "tls" (A65),
 * "google_default". Call credentials (call_creds, A97): "jwt_token_file". A type that the library was built without is
 * unknown. Any thread. */
#ifndef TC_CREDS_REGISTRY_H
#define TC_CREDS_REGISTRY_H

#include <stdbool.h>
#include <torc/credentials.h>

/* Make credentials of a type from its JSON config (NULL: an empty object), with one reference. Return NULL, and the
 * validation errors in *why (tc_free; may be NULL), when the type is unknown, the config is bad, or the credentials
 * cannot be made (google_default finds no usable file, say). The files of "tls" are not read yet. */
torc_credentials *tc_creds_from_config(const char *type, const char *config_json, char **why);
torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why);
bool tc_creds_type_supported(const char *type);
bool tc_call_creds_type_supported(const char *type);

#endif
