/* Structs that the application fills: options, factories, endpoints. SPDX-License-Identifier: Apache-2.0
 *
 *     struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
 *
 * Each struct begins with its size, which the application's compiler writes, so that a program may be older or newer
 * than the library that it runs with. Zero is the default of every field whose comment does not say "required". A
 * function that takes such a struct copies it, and refuses it
 *   - with TORC_EINVAL if `size` is below 8 (0: the struct was not initialised) or above 4096, or if a field is out of
 *     its range: the error names the field;
 *   - with TORC_EUNSUPPORTED if the struct is longer than the library's and a field is set that the library does not
 *     know: the program was built with newer headers.
 * The fields that a shorter struct of older headers does not have count as zero.
 *
 * Durations and sizes are int64_t, in the unit that ends their name. 0 is the default. -1 is allowed where the field's
 * comment says so (no limit, never, none). Switches are int32_t (health_checks of struct torc_channel_options is
 * int64_t): 0 is the default, TORC_ON and TORC_OFF choose.
 *
 * C++ before C++20 has no such initialisers: torc/inline.h has a function for each struct, but for struct
 * torc_json_options. The headers need C99 or gnu89. */
#ifndef TORC_SIZE_H
#define TORC_SIZE_H

#include <stdint.h>

/* The first initialiser of a `struct T`. */
#define TORC_SIZE(T) .size = sizeof(struct T)

/* Switches. TORC_OFF is -1, as where a duration or size says "off"; so 2 and above are free for later versions. */
#define TORC_ON 1
#define TORC_OFF (-1)

#endif
