/* Torc: a gRPC client with a proxyless service mesh. This header brings the whole API.
 *
 * A handle, or an argument that is needed, that is NULL: functions that return errors return TORC_EINVAL, those that
 * return a pointer return NULL, those that free or cancel do nothing. The functions of torc/inline.h, and functions
 * within callbacks of the application's resolvers and policies, need theirs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TORC_TORC_H
#define TORC_TORC_H

#include <torc/admin.h>
#include <torc/call.h>
#include <torc/channel.h>
#include <torc/credentials.h>
#include <torc/error.h>
#include <torc/inline.h>
#include <torc/lb.h>
#include <torc/log.h>
#include <torc/memory.h>
#include <torc/message.h>
#include <torc/metadata.h>
#include <torc/options.h>
#include <torc/resolver.h>
#include <torc/result.h>
#include <torc/runtime.h>
#include <torc/size.h>
#include <torc/status.h>
#include <torc/stream.h>
#include <torc/time.h>
#include <torc/version.h>
#include <torc/xds_domain.h>

#endif
