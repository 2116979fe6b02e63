/* The part of the stubs that does not depend on the message library; used by the code that protoc-gen-torc generates.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An application includes the generated NAME.torc.h, which includes this header. With the plugin's option `reflection`
 * it finds the description of each .proto there, for a reflection service, or for tools that show messages as JSON:
 *
 *     const struct torc_stub_file *file = &torc_stub_file__helloworld_proto;
 *     register_file(file->name, file->descriptor, (size_t)file->descriptor_size);
 *
 * In a library that was built without xDS (TORC_XDS=off) torc_stub_v1 is missing. */
#ifndef TORC_STUB_H
#define TORC_STUB_H

#include <stdint.h>

#include <torc/export.h>

/* The newest version of generated code that these headers and their library serve; all older ones are served too.
 * Generated code of a newer version does not compile with these headers. */
#define TORC_STUB_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Does nothing. Generated code refers to it, so that a library which does not serve version 1 is found out when the
 * program is linked or loaded, not by a crash later. Any thread. */
TORC_API void torc_stub_v1(void);

/* The description of a .proto file, which the plugin's option `reflection` makes: constant memory of the program. */
struct torc_stub_file {
    uint64_t size;            /* sizeof(struct torc_stub_file), as compiled */
    void (*version)(void);    /* torc_stub_v1 */
    const char *name;         /* as other files import it, "a/b.proto" */
    const void *descriptor;   /* a serialised google.protobuf.FileDescriptorProto, without comments */
    uint64_t descriptor_size; /* in bytes */
};

#ifdef __cplusplus
}
#endif
#endif
