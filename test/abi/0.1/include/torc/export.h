/* Symbol visibility of the public API. Copyright the Torc authors; SPDX-License-Identifier: Apache-2.0 */
#ifndef TORC_EXPORT_H
#define TORC_EXPORT_H

/* Stands before each function of the library. */
#if defined(__GNUC__)
#define TORC_API __attribute__((visibility("default")))
#else
#define TORC_API
#endif

#endif
