/* Initialises the structs of torc/size.h where designated initialisers are not at hand: C++ before C++20.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     struct torc_channel_options o;
 *     torc_channel_options_init(&o);
 *     o.credentials = torc_credentials_insecure();
 *     torc_channel *channel = torc_channel_new(NULL, "dns:///orders:50051", &o, &error);
 *
 * torc_X_init(&x) does what `x = (struct torc_X){TORC_SIZE(torc_X)}` does: sets the struct's size, and every other
 * field to zero, the default. The functions are the program's own code, not the library's: they write as many bytes as
 * the program's struct has. They cannot fail, must not be given NULL, and work on any thread. The comment of each
 * function names the fields that must be set afterwards. Bindings that read headers leave this header out. */
#ifndef TORC_INLINE_H
#define TORC_INLINE_H

#include <string.h>

#include <torc/call.h>
#include <torc/channel.h>
#include <torc/credentials.h>
#include <torc/dialer.h>
#include <torc/interceptor.h>
#include <torc/lb.h>
#include <torc/log.h>
#include <torc/memory.h>
#include <torc/resolver.h>
#include <torc/runtime.h>
#include <torc/server.h>
#include <torc/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Requires nothing: a runtime with a thread of its own. */
static inline void torc_runtime_options_init(struct torc_runtime_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires `credentials`. */
static inline void torc_channel_options_init(struct torc_channel_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires nothing: an RPC without a deadline. */
static inline void torc_call_options_init(struct torc_call_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires nothing: the system's roots, no certificate of the client. */
static inline void torc_tls_options_init(struct torc_tls_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires nothing: the system's roots, no certificate of the client. */
static inline void torc_tls_files_init(struct torc_tls_files *files)
{
    memset(files, 0, sizeof(*files));
    files->size = sizeof(*files);
}

/* Requires nothing: the files and the metadata server that torc_credentials_google_default names. */
static inline void torc_google_options_init(struct torc_google_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires `dial`. */
static inline void torc_dialer_init(struct torc_dialer *dialer)
{
    memset(dialer, 0, sizeof(*dialer));
    dialer->size = sizeof(*dialer);
}

/* Requires `write`. */
static inline void torc_log_sink_init(struct torc_log_sink *sink)
{
    memset(sink, 0, sizeof(*sink));
    sink->size = sizeof(*sink);
}

/* Requires `scheme` and `start`. */
static inline void torc_resolver_factory_init(struct torc_resolver_factory *factory)
{
    memset(factory, 0, sizeof(*factory));
    factory->size = sizeof(*factory);
}

/* Requires `name`, `create`, `update` and `pick`. */
static inline void torc_lb_factory_init(struct torc_lb_factory *factory)
{
    memset(factory, 0, sizeof(*factory));
    factory->size = sizeof(*factory);
}

/* Requires `addresses` and `n_addresses`. */
static inline void torc_endpoint_init(struct torc_endpoint *endpoint)
{
    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->size = sizeof(*endpoint);
}

/* Requires all four functions. */
static inline void torc_allocator_init(struct torc_allocator *allocator)
{
    memset(allocator, 0, sizeof(*allocator));
    allocator->size = sizeof(*allocator);
}

/* Requires nothing: an interceptor without hooks sees nothing. */
static inline void torc_interceptor_init(struct torc_interceptor *interceptor)
{
    memset(interceptor, 0, sizeof(*interceptor));
    interceptor->size = sizeof(*interceptor);
}

/* Requires `on_done`. */
static inline void torc_stream_events_init(struct torc_stream_events *events)
{
    memset(events, 0, sizeof(*events));
    events->size = sizeof(*events);
}

/* Requires nothing: the default runtime and limits. */
static inline void torc_server_options_init(struct torc_server_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires `certificate_pem` and `private_key_pem`. */
static inline void torc_server_tls_options_init(struct torc_server_tls_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires `certificate_file` and `private_key_file`. */
static inline void torc_server_tls_files_init(struct torc_server_tls_files *files)
{
    memset(files, 0, sizeof(*files));
    files->size = sizeof(*files);
}

/* Requires nothing: no limits, and no pool. */
static inline void torc_method_options_init(struct torc_method_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* Requires exactly one of `unary` and `stream`. */
static inline void torc_handler_init(struct torc_handler *handler)
{
    memset(handler, 0, sizeof(*handler));
    handler->size = sizeof(*handler);
}

/* Requires nothing: an event that is NULL is not reported. */
static inline void torc_server_call_events_init(struct torc_server_call_events *events)
{
    memset(events, 0, sizeof(*events));
    events->size = sizeof(*events);
}

#ifdef __cplusplus
}
#endif
#endif
