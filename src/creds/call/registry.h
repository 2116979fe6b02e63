/* Call credentials by name, as the bootstrap's call_creds name them (A97). Any thread. */
#ifndef TC_CREDS_CALL_REGISTRY_H
#define TC_CREDS_CALL_REGISTRY_H

#include <stdbool.h>
#include <torc/credentials.h>

/* Makes credentials of a type ("jwt_token_file") from its JSON config (NULL: an empty one). Returns NULL, and the
 * validation errors in *why (tc_free), when the type is unknown or the config is bad. `why` may be NULL. */
torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why);
bool tc_call_creds_type_supported(const char *type);

#endif
