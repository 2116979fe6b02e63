/* YAML to JSON values: one reader for files in either form. Pure functions, any thread. */
#ifndef TC_CONTROLPLANE_YAML_H
#define TC_CONTROLPLANE_YAML_H

#include <jansson.h>

#include "base/slice.h"

/* Converts the first YAML document of a text (JSON is YAML, too) to a jansson value that the caller owns. Plain scalars
 * follow YAML's core schema, but 0o7, 0x7, .inf, .nan and numbers that no finite double holds are strings, and integers
 * beyond int64_t are doubles. A number of 1,100 characters or more is a string unless int64_t holds it. Quoted scalars
 * and block scalars are strings. Tags are ignored. Later documents are not read. Limits: depth 100; 10,000 anchors; 4
 * million values after aliases are expanded, and at most 100,000 plus 16 for each byte of text. Returns NULL with a
 * reason in *why (tc_free), which names line and column unless the text has no document or memory ran out. Sets *why
 * to NULL otherwise. */
json_t *tc_yaml_parse(struct tc_slice text, char **why);

#endif
