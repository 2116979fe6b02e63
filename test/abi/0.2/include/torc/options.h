/* Options by name, for bindings that cannot lay out C structs. SPDX-License-Identifier: Apache-2.0
 *
 *     torc_options *o = torc_options_new("torc_channel_options", &error);
 *     torc_options_set(o, "keepalive_time_ms", "20000", &error);
 *     torc_options_set_pointer(o, "credentials", torc_credentials_insecure(), &error);
 *     torc_channel *channel = torc_channel_new(NULL, target, torc_options_data(o), &error);
 *     torc_options_free(o);
 *
 * The names are those of the structs and their fields, in the headers that declare them. One object is for one thread
 * at a time.
 *
 * The structs of functions (torc_handler, torc_stream_events, torc_server_call_events, torc_resolver_factory,
 * torc_lb_factory, torc_allocator), torc_endpoint and torc_json_options have no object here. Lay them out in the order
 * of the header: the size, a uint64_t, then pointers; torc_endpoint has two uint64_t behind its pointers;
 * torc_json_options has six int32_t and three int64_t instead of pointers. */
#ifndef TORC_OPTIONS_H
#define TORC_OPTIONS_H

#include <torc/error.h>
#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An options struct of the library's version, and copies of the texts in it. */
typedef struct torc_options torc_options;

/* Makes a struct whose fields are zero, the default. kind: "torc_runtime_options", "torc_channel_options",
 * "torc_call_options", "torc_tls_options", "torc_tls_files", "torc_google_options", "torc_server_options",
 * "torc_method_options", "torc_server_tls_options", "torc_server_tls_files", "torc_log_sink", "torc_interceptor" or
 * "torc_dialer". Returns NULL with an error that names the kind when it is another (TORC_EINVAL). Any thread. */
TORC_API torc_options *torc_options_new(const char *kind, torc_error **error);

/* Sets a field from text: a number in decimal ("20000", "-1", "0.5"), also for an enum; a switch of type int32_t as
 * "on", "off" or "default"; a text as it is, copied: the function that takes the options checks it. NULL: the default.
 * Returns 0; TORC_ENOTFOUND when the struct has no such field, TORC_EINVAL when the text is malformed or out of the
 * field's range, or the field is a pointer: the error names the field, and the field keeps its value. */
TORC_API int torc_options_set(torc_options *options, const char *name, const char *value, torc_error **error);

/* Sets a field that is a pointer: credentials, metadata, lists of factories. The object that it points at must stay
 * until the function that takes the options has returned. NULL: the default. Returns 0; TORC_ENOTFOUND when the struct
 * has no such field, TORC_EINVAL when the field is not a pointer. */
TORC_API int torc_options_set_pointer(torc_options *options, const char *name, const void *value, torc_error **error);

/* Returns the struct, for a function that takes a pointer to one; it lives as long as the object. NULL for NULL. */
TORC_API const void *torc_options_data(const torc_options *options);

/* Frees the struct and the texts in it; what its pointers point at is the caller's. NULL is allowed. */
TORC_API void torc_options_free(torc_options *options);

#ifdef __cplusplus
}
#endif
#endif
