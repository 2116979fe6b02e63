/* Torc: gRPC clients and servers with a proxyless service mesh. This header brings the whole API.
 *
 * If a handle or a required argument is NULL, functions that return errors return TORC_EINVAL, functions that return a
 * pointer return NULL, and functions that free or cancel do nothing; a comment says where it is otherwise. The
 * functions of torc/inline.h, and functions for callbacks of the application's resolvers and policies, must not be
 * given NULL. A handle that was given up (freed, closed, a server's call that was finished, a reference that was
 * returned) must not be used again unless a comment allows it: nothing finds that out, and a second free may crash.
 * SPDX-License-Identifier: Apache-2.0 */
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
