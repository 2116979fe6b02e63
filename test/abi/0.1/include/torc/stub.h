/* The part of the stubs that does not depend on the message library; used by the code that protoc-gen-torc generates.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An application includes the generated NAME.torc.h, which includes this header. */
#ifndef TORC_STUB_H
#define TORC_STUB_H

#include <stdint.h>

#include <torc/export.h>

/* The newest version of generated code that these headers and their library serve; all older ones are served too. */
#define TORC_STUB_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Does nothing. Generated code refers to it, so that a library which does not serve version 1 is found out when the
 * program is linked or loaded. */
TORC_API void torc_stub_v1(void);

/* The description of a .proto file, which the plugin's option `reflection` makes. */
struct torc_stub_file {
    uint64_t size;            /* sizeof(struct torc_stub_file), as the code was generated */
    void (*version)(void);    /* torc_stub_v1 */
    const char *name;         /* as other files import it, "a/b.proto" */
    const void *descriptor;   /* a serialised google.protobuf.FileDescriptorProto, without comments */
    uint64_t descriptor_size; /* in bytes */
};

#ifdef __cplusplus
}
#endif
#endif
