/* The version of the library. SPDX-License-Identifier: Apache-2.0 */
#ifndef TORC_VERSION_H
#define TORC_VERSION_H

#include <torc/export.h>

/* The version that these headers are of. */
#define TORC_VERSION_MAJOR 0
#define TORC_VERSION_MINOR 1
#define TORC_VERSION_PATCH 0
#define TORC_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the library that is loaded, "0.1.0". Any thread. */
TORC_API const char *torc_version(void);

#ifdef __cplusplus
}
#endif
#endif
