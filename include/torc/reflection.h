/* Reflection: a server tells clients which services it has, and the .proto files that define them (grpc.reflection.v1
 * and v1alpha). SPDX-License-Identifier: Apache-2.0
 *
 *     // protoc --torc_out=messages,reflection:. helloworld.proto
 *     torc_reflection *reflection = torc_reflection_new(server, &error); // before torc_server_start
 *     torc_reflection_add(reflection, &torc_stub_file__helloworld_proto, &error);
 *     ...
 *     torc_reflection_free(reflection);
 *
 * Tools such as grpcurl need no .proto then: `grpcurl -plaintext localhost:50051 list`. All services with a registered
 * method are listed; what is told of each comes from the files that were added. The server shows its files to every
 * client that its credentials and interceptors let through.
 *
 * A client asks within one stream for files: by name, by what they define (a message, an enum, a value, a field, a
 * oneof, a service, a method, an extension, by its full name), or by an extension's message and number. It gets the
 * file with those of its imports that the stream has not sent yet; an import that was not added is left out. For what
 * is unknown it gets the error NOT_FOUND within the stream, which goes on. Any thread. In a child of a fork the
 * handle is the parent's: no file can be added (TORC_EFORK), and torc_reflection_free does nothing. In a library that
 * was built without xDS (TORC_XDS=off) or without servers (TORC_SERVERS=off) the functions of this header are
 * missing. */
#ifndef TORC_REFLECTION_H
#define TORC_REFLECTION_H

#include <torc/server.h>
#include <torc/stub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The reflection service of one server. */
typedef struct torc_reflection torc_reflection;

/* Adds the services grpc.reflection.v1.ServerReflection and grpc.reflection.v1alpha.ServerReflection to a server. Both
 * know their own files, those of grpc.health.v1 and ORCA, and the well-known types: all of google/protobuf/ but
 * descriptor.proto. Add descriptor.proto, which files that define options import, and the files of CSDS (torc/admin.h)
 * with torc_reflection_add_set if clients need them. Returns NULL with an error: those of torc_server_add_method;
 * TORC_EEXIST when the server has one of the two services. With an error nothing of the services is added. The caller
 * frees the handle, before or after the server.
 *
 * Limits of "*" and of the services' names hold for the services, except their pool, which is not used; a request has
 * 64 KiB at most unless the limits set another size. */
TORC_API torc_reflection *torc_reflection_new(torc_server *server, torc_error **error);

/* Adds a file that protoc-gen-torc described (its option `reflection`), whose bytes are copied. Files may come in any
 * order, also while the server runs. Returns 0, also for a file that was added already and for one of Torc's own; or an
 * error, and nothing is added: TORC_EINVAL (NULL), TORC_EUNSUPPORTED (generated code of a newer version), TORC_EPARSE
 * (the bytes are not a FileDescriptorProto), TORC_EEXIST (another file has its name, or defines one of its names; the
 * text says which), TORC_ELIMIT (all files together would take more than 256 MiB of memory), TORC_EFORK. */
TORC_API int torc_reflection_add(torc_reflection *reflection, const struct torc_stub_file *file, torc_error **error);

/* Adds the files of a serialised google.protobuf.FileDescriptorSet, as `protoc --include_imports
 * --descriptor_set_out=FILE` writes it. The bytes are copied. Returns what torc_reflection_add returns; the files
 * before the one that is refused stay. */
TORC_API int torc_reflection_add_set(torc_reflection *reflection, const void *bytes, size_t size, torc_error **error);

/* Gives the handle up; the services stay with the server as they are. NULL is allowed. */
TORC_API void torc_reflection_free(torc_reflection *reflection);

#ifdef __cplusplus
}
#endif
#endif
