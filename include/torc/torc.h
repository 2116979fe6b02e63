/* Torc: gRPC clients and servers with a proxyless service mesh. This header includes the whole API except three
 * headers: torc/protobuf_c.h, which needs the headers of protobuf-c, torc/json.h, whose functions are in libtorc-json,
 * and torc/testing.h, whose functions are only in libtorc-testing.
 *
 * If a handle or a required argument is NULL, functions that return errors return TORC_EINVAL, functions that return a
 * pointer return NULL, and functions that free or cancel do nothing; a comment says where it is otherwise. The
 * functions of torc/inline.h and of torc/lb.h must not be given NULL, unless a comment allows it. A handle that was
 * given up (freed, closed, a server's call that was finished, a reference that was returned) must not be used again
 * unless a comment allows it: nothing finds that out, and a second free may crash. SPDX-License-Identifier: Apache-2.0
 *
 *     torc_error *error = NULL;
 *     torc_channel *channel = torc_channel_new(NULL, "127.0.0.1:50051", NULL, &error); // NULL options: plaintext
 *     torc_result *result = torc_unary(channel, "echo.Echo/Say", "hello", 5, NULL);
 *     const torc_message *reply = torc_result_response(result);
 *     if (reply)
 *         printf("%.*s\n", (int)torc_message_size(reply), (const char *)torc_message_data(reply));
 *     else
 *         fprintf(stderr, "%s\n", torc_error_text(channel ? torc_result_error(result) : error));
 *     torc_result_free(result);
 *     torc_channel_free(channel);
 *     torc_error_free(error);
 *
 * Where to look:
 *
 *     clients        channel.h, call.h (unary RPCs, options of each RPC), stream.h, result.h, connectivity.h
 *     servers        server.h, health.h, reflection.h, orca.h (load reports)
 *     messages       message.h (bytes), protobuf_c.h with arena.h (generated types), json.h (types from descriptors),
 *                    metadata.h
 *     security       credentials.h, tls_peer.h (a check of TLS peers by the application)
 *     failures       error.h (functions), status.h (RPCs), log.h
 *     threads, loops runtime.h; xds_domain.h for several runtimes
 *     extensions     interceptor.h, resolver.h, lb.h, dialer.h, memory.h
 *     tests          testing.h (an in-process world with virtual time)
 *     structs        size.h (how options are filled in), inline.h (C++ before C++20), options.h (bindings)
 *     the rest       admin.h (what xDS resources a process has), time.h, version.h, stub.h (generated code)
 */
#ifndef TORC_TORC_H
#define TORC_TORC_H

#include <torc/admin.h>
#include <torc/call.h>
#include <torc/channel.h>
#include <torc/credentials.h>
#include <torc/dialer.h>
#include <torc/error.h>
#include <torc/health.h>
#include <torc/inline.h>
#include <torc/interceptor.h>
#include <torc/lb.h>
#include <torc/log.h>
#include <torc/memory.h>
#include <torc/message.h>
#include <torc/metadata.h>
#include <torc/options.h>
#include <torc/orca.h>
#include <torc/reflection.h>
#include <torc/resolver.h>
#include <torc/result.h>
#include <torc/runtime.h>
#include <torc/server.h>
#include <torc/size.h>
#include <torc/status.h>
#include <torc/stream.h>
#include <torc/time.h>
#include <torc/tls_peer.h>
#include <torc/version.h>
#include <torc/xds_domain.h>

#endif
