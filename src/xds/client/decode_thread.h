/* Responses that are large or slow to decode are decoded by the background thread before they are applied, so that the
 * loop's RPCs do not wait. The loop then applies the result like any response. Loop thread only. */
#ifndef TC_XDS_CLIENT_DECODE_THREAD_H
#define TC_XDS_CLIENT_DECODE_THREAD_H

#include "xds/client/response_context.h"

/* The outcome of decoding one resource. */
struct tc_xds_decode_result {
    size_t index;                     /* in the response */
    struct tc_slice bytes;            /* the resource message; points into the response's message */
    struct tc_xds_resource *resource; /* NULL: the resource is invalid, or its reference was taken over */
    struct tc_rstr *own_name;         /* the name in the resource; NULL: it has none, or its reference was taken over */
    struct tc_rstr *errors;           /* their text; NULL: no errors */
};

/* Returns true if the background thread will decode the response, unpacked into `arena` as `m`, and the loop will apply
 * it later. Then takes over the contents of `arena`, which becomes empty, takes a reference each to `message` and
 * `token`, and sets ch->ads.pending. Returns false, with nothing taken, if the caller must apply the response at
 * once. */
bool tc_xds_decode_thread_begin(struct tc_xds_channel *ch, const struct tc_xds_response_variant *variant,
                                struct tc_rstr *message, struct tc_arena *arena, const ProtobufCMessage *m,
                                struct tc_xds_token *token);
/* Returns the outcome of resource `index`, borrowed from the job; NULL: the resource was not decoded. The caller may
 * take over its resource and name, and must then set them to NULL. `index` must grow from call to call. */
struct tc_xds_decode_result *tc_xds_decode_thread_result(struct tc_xds_decode_job *job, size_t index);

#endif
