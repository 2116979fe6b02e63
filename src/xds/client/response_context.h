/* The context of applying a response, for both forms of responses: its state, the resources as they stand in the
 * response, and the answer. Loop thread only. */
#ifndef TC_XDS_CLIENT_RESPONSE_CONTEXT_H
#define TC_XDS_CLIENT_RESPONSE_CONTEXT_H

#include "base/arena.h"
#include "proto/scan.h"
#include "xds/client/channel_internal.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

struct tc_xds_decode_job;

/* The caller sets `ch` and `token`, and leaves the rest zero; decode_thread.c also sets decoded_by and regex_bytes. To
 * collect, decode_thread.c sets `ch`, type, type_index and collect_for alone. Borrows all that it points to, but owns
 * `errors`. */
struct tc_xds_response_context {
    struct tc_xds_channel *ch;
    const struct tc_xds_resource_type *type;
    size_t type_index;
    struct tc_slice version; /* of the resource, error or removal that is applied */
    struct tc_xds_token *token;
    struct tc_validation_errors errors;
    size_t regex_bytes;                    /* for tc_xds_decode_context */
    struct tc_xds_decode_job *decoded_by;  /* has the decoded resources; NULL: none is decoded yet */
    struct tc_xds_decode_job *collect_for; /* collects resources to decode; NULL: resources are applied */
    bool nameless; /* a resource has no readable name, or its wrapper has no content: absence proves nothing */
};

/* A resource as it stands in a response, out of its wrapper. */
struct tc_xds_response_resource {
    size_t index; /* in the response */
    struct tc_slice type_url, bytes;
    struct tc_slice wrapper_name; /* used instead of the resource's own name; empty: none */
};

static inline struct tc_slice tc_xds_text(const char *s)
{
    return s ? tc_slice_str(s) : tc_slice_of(NULL, 0);
}

/* Begins to apply a response: sets the type, and counts the response (tc_xds_local_client.responses). Returns false if
 * the stream never asked for the type: the response is ignored. */
bool tc_xds_response_begin(struct tc_xds_response_context *ctx, struct tc_slice type_url);
/* Ends applying a response: queues its ACK or NACK, and frees the errors. */
void tc_xds_response_end(struct tc_xds_response_context *ctx, struct tc_slice version, struct tc_slice nonce);

/* Stores name and content of a Resource message in *out, borrowed from the message. out->index must be set. Returns
 * false, with an error, if the message has no content. */
bool tc_xds_response_open_wrapper(struct tc_xds_response_context *ctx,
                                  const Envoy__Service__Discovery__V3__Resource *wrapper,
                                  struct tc_xds_response_resource *out);
/* Adds an unusable resource to the NACK. */
void tc_xds_response_add_error(struct tc_xds_response_context *ctx, size_t index, struct tc_slice name,
                               const char *text);
/* Returns the entry of that name; NULL: there is none, the name is invalid, or its authority does not use the
 * channel. */
struct tc_xds_entry *tc_xds_response_entry(const struct tc_xds_response_context *ctx, struct tc_slice name);
/* Returns the entry whose value in use has the same bytes from the same server, so that nothing needs decoding; else
 * NULL. */
struct tc_xds_entry *tc_xds_response_unchanged(struct tc_xds_response_context *ctx,
                                               const struct tc_xds_response_resource *resource);

/* The operations in which a DiscoveryResponse, a DeltaDiscoveryResponse and a Resource wrapper differ. The wrapper uses
 * the first five members only. */
struct tc_xds_response_variant {
    const ProtobufCMessageDescriptor *type;
    unsigned levels; /* for tc_xds_values_lift */
    size_t most;     /* more Anys than this are an unusual form; 0: any number is usual */
    size_t (*count)(const ProtobufCMessage *message); /* of the Anys */
    /* The Any of resource i. */
    Google__Protobuf__Any *(*any)(const ProtobufCMessage *message, size_t i);
    struct tc_slice (*type_url)(const ProtobufCMessage *message);
    /* Calls fn for each resource that can be unwrapped. */
    void (*each)(struct tc_xds_response_context *ctx, const ProtobufCMessage *message,
                 void (*fn)(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *resource));
    /* Applies the whole response, and queues its answer. Ignores a response of a type that the stream never asked
     * for. */
    void (*apply)(struct tc_xds_response_context *ctx, const ProtobufCMessage *message);
};

/* Returns the memory that unpacking a message of this size may take: decode_bytes at most. */
size_t tc_xds_decode_budget(const struct tc_xds_local_client *c, size_t bytes);
/* Unpacks a response or a wrapper into `arena`. The resources' bytes are not copied but point into `message`, unless
 * the message has an unusual form (tc_xds_values_lift, `most`). `options` may be NULL. Returns 0, or a negative error
 * with errors in *f. */
int tc_xds_response_unpack(const struct tc_xds_response_variant *variant, struct tc_slice message,
                           const struct tc_scan_options *options, struct tc_arena *arena, ProtobufCMessage **out,
                           struct tc_validation_errors *f);

/* Returns the index of a type that the stream asked for, else TC_XDS_NO_TYPE. A response of another type must not be
 * answered: the answer could be taken for a first request, and without names it would ask for everything. */
size_t tc_xds_response_type(struct tc_xds_channel *ch, struct tc_slice type_url);
/* Initialises a list of errors whose text fits a NACK. */
void tc_xds_response_errors_init(struct tc_validation_errors *f);
/* Queues the ACK, or the NACK if there are errors. Incremental: takes a reference of the token until the answer was
 * handed to the transport, or the stream ended. */
void tc_xds_response_answer(struct tc_xds_channel *ch, size_t type, struct tc_slice version, struct tc_slice nonce,
                            struct tc_validation_errors *errors, struct tc_xds_token *token);

#endif
