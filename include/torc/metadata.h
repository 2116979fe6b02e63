/* Metadata: the header fields of requests and responses. SPDX-License-Identifier: Apache-2.0
 *
 *     torc_metadata *md = torc_metadata_new();
 *     torc_metadata_add_string(md, "session", "alice");
 *     torc_metadata_add(md, "trace-bin", id, sizeof(id));
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = md};
 *     torc_result *result = torc_unary(channel, method, request, size, &o);
 *     torc_metadata_free(md); // Torc has copied it
 *     const char *region = torc_metadata_find(torc_result_trailers(result), "region", NULL);
 *
 * Names are lower case (0-9 a-z _ - .); a value is printable ASCII, or any bytes when the name ends in "-bin" (base64
 * is done on the wire only). Order and duplicates are kept. Metadata that the application makes is the application's to
 * free, and one thread at a time may change it; Torc copies it. Metadata of a result or callback is borrowed and
 * constant, for any thread. Source: gRPC PROTOCOL-HTTP2.md. */
#ifndef TORC_METADATA_H
#define TORC_METADATA_H

#include <stddef.h>

#include <torc/error.h>
#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of header fields. */
typedef struct torc_metadata torc_metadata;

/* Returns an empty list, which the caller frees; never NULL. */
TORC_API torc_metadata *torc_metadata_new(void);
/* Frees the list with its fields; pointers from torc_metadata_at and torc_metadata_find are dangling from then on.
 * Overwrites the value of a field named "authorization" first. NULL is allowed; borrowed metadata is not. */
TORC_API void torc_metadata_free(torc_metadata *metadata);
/* Adds a field behind the others, with copies of name and value; a field of the same name stays. value_len: in bytes,
 * without a NUL; `value` may be NULL if value_len is 0. Upper case in a name is lowered. Returns 0; or TORC_EINVAL, and
 * then nothing is added: for metadata or a name that is NULL, borrowed metadata, a name or value that gRPC does not
 * allow, and reserved names (those that start with "grpc-" or ":", and "te", "content-type", "user-agent", "connection"
 * and the like). Two "grpc-" names are allowed, for a server's trailers. "grpc-status-details-bin" is a serialised
 * google.rpc.Status, whose code must be that of the RPC's status, else the client's RPC ends with INTERNAL.
 * "grpc-retry-pushback-ms" (gRFC A6), a decimal integer of 32 bits, is the number of milliseconds after which a client
 * may try again; a negative number: never. Received values may have other bytes (tabs, bytes above 0x7f), which are
 * TORC_EINVAL here: use a "-bin" field for them. */
TORC_API int torc_metadata_add(torc_metadata *metadata, const char *name, const void *value, size_t value_len);
/* torc_metadata_add with a NUL-terminated string; TORC_EINVAL also for a value that is NULL. */
TORC_API int torc_metadata_add_string(torc_metadata *metadata, const char *name, const char *value);
/* Returns the number of fields; NULL counts 0. */
TORC_API size_t torc_metadata_count(const torc_metadata *metadata);
/* Stores name and value of field i, counted from 0, both borrowed and NUL-terminated: they live as long as the
 * metadata. The value of a "-bin" field may have a NUL inside, so that *value_len counts. Returns 0, or TORC_ENOTFOUND
 * beyond the last field; NULL has no fields. Any output may be NULL. */
TORC_API int torc_metadata_at(const torc_metadata *metadata, size_t i, const char **name, const void **value,
                              size_t *value_len);
/* Returns the value of the first field of that name, borrowed and NUL-terminated, and stores its length in bytes
 * (value_len may be NULL). NULL if there is none, and *value_len is untouched then. `name` is compared as it is: upper
 * case finds nothing. For further fields of the name, go through all with torc_metadata_at. */
TORC_API const char *torc_metadata_find(const torc_metadata *metadata, const char *name, size_t *value_len);

#ifdef __cplusplus
}
#endif
#endif
