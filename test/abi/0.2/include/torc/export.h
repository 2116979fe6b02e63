/* Symbol visibility of the public API. Copyright the Torc authors; SPDX-License-Identifier: Apache-2.0
 *
 * Only functions with TORC_API can be linked to, in libtorc.so and in libtorc.a alike; all their names begin with
 * torc_. Each belongs to a symbol version of the minor release that it came with (TORC_0.2), and keeps it. Headers that
 * declare functions include this one; an application need not. */
#ifndef TORC_EXPORT_H
#define TORC_EXPORT_H

/* Stands before each function of the library. Nothing for compilers without visibility. */
#if defined(__GNUC__)
#define TORC_API __attribute__((visibility("default")))
#else
#define TORC_API
#endif

#endif
