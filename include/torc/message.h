/* Messages as bytes. SPDX-License-Identifier: Apache-2.0
 *
 * Torc hands out what the other side sent as bytes, which the application decodes with the library of its choice:
 *
 *     const torc_message *reply = torc_result_response(result);
 *     Helloworld__HelloReply *hello = helloworld__hello_reply__unpack(NULL, torc_message_size(reply),
 *                                                                     torc_message_data(reply));
 *
 * A message is immutable and counted, and depends on nothing else: one that is kept may outlive its RPC, the channel
 * and the runtime. Functions and callbacks lend messages; torc_message_ref keeps one:
 *
 *     static void on_message(torc_stream *stream, const torc_message *message, void *arg)
 *     {
 *         queue_push(arg, torc_message_ref(message)); // torc_message_unref when it is taken out
 *     }
 *
 * Torc does not check the bytes: decode them as input from outside (torc/protobuf_c.h does). All functions may be
 * called on any thread. */
#ifndef TORC_MESSAGE_H
#define TORC_MESSAGE_H

#include <stddef.h>

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of one message. */
typedef struct torc_message torc_message;

/* Makes a message with a copy of the bytes, for an interceptor that replaces one (torc/interceptor.h). The caller gives
 * it back with torc_message_unref, or hands it over. An empty message has size 0, whatever `data` is. NULL when `data`
 * is NULL and `size` is not 0. */
TORC_API torc_message *torc_message_new(const void *data, size_t size);

/* Returns the bytes, which live as long as the message. They are followed by a NUL that does not count. NULL for NULL.
 */
TORC_API const void *torc_message_data(const torc_message *message);

/* Returns the number of bytes; 0 for NULL. */
TORC_API size_t torc_message_size(const torc_message *message);

/* Returns 1 for a message that was compressed on the wire (its bytes are inflated), 0 for any other; TORC_EINVAL for
 * NULL. */
TORC_API int torc_message_compressed(const torc_message *message);

/* Adds a reference, which torc_message_unref gives back. Returns `message`, no longer const, because the caller owns
 * the reference; NULL for NULL. Nothing is copied. */
TORC_API torc_message *torc_message_ref(const torc_message *message);

/* Gives back one reference; the last one frees the bytes. May be called after the stream, the channel and the runtime
 * have ended. Must not be called for a message that was only lent. NULL is allowed. */
TORC_API void torc_message_unref(torc_message *message);

#ifdef __cplusplus
}
#endif
#endif
