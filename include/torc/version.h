/* The version of the library. SPDX-License-Identifier: Apache-2.0
 *
 *     if (strcmp(torc_version(), TORC_VERSION) != 0)
 *         fprintf(stderr, "built with Torc %s, runs with %s\n", TORC_VERSION, torc_version());
 *
 * A program may run with a newer library of the same minor version (0.2.x; from 1.0 on of the same major version) than
 * the headers that it was built with. Other versions have another soname, so that the program does not start with
 * them. An older library refuses options that it does not know (torc/size.h). */
#ifndef TORC_VERSION_H
#define TORC_VERSION_H

#include <torc/export.h>

/* The version of these headers, in numbers for the preprocessor, and as text. */
#define TORC_VERSION_MAJOR 0
#define TORC_VERSION_MINOR 2
#define TORC_VERSION_PATCH 0
#define TORC_VERSION "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the library that is loaded, "0.2.0": a constant text, never NULL. Any thread. */
TORC_API const char *torc_version(void);

#ifdef __cplusplus
}
#endif
#endif
