/* xDS domains: several runtimes of a process share xDS clients and load reports. SPDX-License-Identifier: Apache-2.0
 *
 * A runtime is one loop on one thread; a program that wants more of its cores for RPCs makes several runtimes and
 * spreads its channels over them. Each runtime has its own channels, LB policies and connections, and by default its
 * own xDS clients. Runtimes with the same xDS domain share xDS clients: their channels with the same bootstrap use one
 * ADS stream for a target or for all targets (docs/operations/xds.md), and get the same resources. They also count
 * their loads together for load reports (A27). RPCs under way, which circuit breaking limits (gRFC A32), are counted
 * over the whole process in any case.
 *
 *     torc_xds_domain *domain = torc_xds_domain_new(NULL);
 *     struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .xds_domain = domain};
 *     for (int i = 0; i < 4; i++)
 *         runtimes[i] = torc_runtime_new(&o, NULL);
 *     torc_xds_domain_free(domain);   // the runtimes keep it
 *
 * A domain has a thread of its own, on which its xDS clients run: no runtime depends on the loop of another, and
 * runtimes may end in any order. Rings need no domain: all channels of the process share equal rings. */
#ifndef TORC_XDS_DOMAIN_H
#define TORC_XDS_DOMAIN_H

#include <torc/error.h>
#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The part of the control plane that several runtimes share. */
typedef struct torc_xds_domain torc_xds_domain;

/* Returns a new domain, for torc_runtime_options.xds_domain. NULL with an error (TORC_EIO) when the system refuses a
 * loop or a thread. Any thread. */
TORC_API torc_xds_domain *torc_xds_domain_new(torc_error **error);

/* Gives up the application's reference, and returns 0. The domain ends with the last runtime that was made with it, or
 * now if no runtime uses it; its thread is joined then. TORC_EFORK in a child of the process that made it or while the
 * process exits, TORC_EDEADLK on the domain's own thread (inside a log function): the reference is still held. Any
 * thread but the domain's own. NULL is allowed. */
TORC_API int torc_xds_domain_free(torc_xds_domain *domain);

#ifdef __cplusplus
}
#endif
#endif
