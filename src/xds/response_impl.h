/* A response being taken in: what its two forms share, inside src/xds. */
#ifndef TC_XDS_RESPONSE_IMPL_H
#define TC_XDS_RESPONSE_IMPL_H

#include "base/arena.h"
#include "proto/scan.h"
#include "xds/client_impl.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

struct tc_xds_applying {
    struct tc_xds_channel *ch;
    const struct tc_xds_resource_type *type;
    size_t type_index;
    struct tc_slice version; /* of the resource in hand */
    struct tc_xds_done *done;
    struct tc_faults faults;
    size_t regex_bytes;             /* tc_xds_decode_context */
    struct tc_xds_ahead *ahead;     /* where they were decoded; NULL: not yet */
    struct tc_xds_ahead *collected; /* where they are to be */
    bool nameless;                  /* some resource of the response cannot be told to be one of those that are held */
};

/* A resource as it stands in a response, out of its wrapper. */
struct tc_xds_found {
    size_t index;
    struct tc_slice type_url, bytes;
    struct tc_slice wrapper_name; /* preferred to the resource's own */
};

static inline struct tc_slice tc_xds_text(const char *s)
{
    return s ? tc_slice_str(s) : tc_slice_of(NULL, 0);
}

/* False: the type was not asked for, and the response is to be ignored. */
bool tc_xds_applying_begin(struct tc_xds_applying *a, struct tc_slice type_url);
/* Lets the next request of the type say what became of the response. */
void tc_xds_applying_end(struct tc_xds_applying *a, struct tc_slice version, struct tc_slice nonce);

/* Name and content of a Resource message. False: it has none. */
bool tc_xds_open_wrapper(struct tc_xds_applying *a, const Envoy__Service__Discovery__V3__Resource *wrapper,
                         struct tc_xds_found *out);
/* Names an unusable resource in the NACK. */
void tc_xds_complain(struct tc_xds_applying *a, size_t index, struct tc_slice name, const char *text);
/* The entry that has the very bytes in use, from the same server: nothing is to be decoded. NULL: they are not. */
struct tc_xds_entry *tc_xds_unchanged(struct tc_xds_applying *a, const struct tc_xds_found *found);
/* Decodes a resource and puts it, or what is wrong with it, where it belongs. */
void tc_xds_apply_found(struct tc_xds_applying *a, const struct tc_xds_found *found);
/* xRFC TP3: the server says why it does not send a resource. */
void tc_xds_apply_error(struct tc_xds_applying *a, const Envoy__Service__Discovery__V3__ResourceError *error);
/* The server has taken away a resource that is held. */
void tc_xds_apply_deletion(struct tc_xds_applying *a, struct tc_xds_entry *e);

/* One of the two forms of a response, or a Resource message, which has no more than the first five. */
struct tc_xds_form {
    const ProtobufCMessageDescriptor *type;
    unsigned levels; /* for tc_xds_values_lift */
    size_t most;     /* Anys; 0: any number */
    size_t (*count)(const ProtobufCMessage *message);
    /* The Any of resource i. */
    Google__Protobuf__Any *(*any)(const ProtobufCMessage *message, size_t i);
    struct tc_slice (*type_url)(const ProtobufCMessage *message);
    /* Tells of each resource that can be told of. */
    void (*each)(struct tc_xds_applying *a, const ProtobufCMessage *message,
                 void (*fn)(struct tc_xds_applying *a, const struct tc_xds_found *found));
    void (*apply)(struct tc_xds_applying *a, const ProtobufCMessage *message);
};

/* The memory that messages of so many bytes may take. */
size_t tc_xds_decode_budget(const struct tc_xds_client *c, size_t bytes);
/* Unpacks a message of resources: those of `levels` (tc_xds_values_lift) keep their bytes where they are, in `message`.
 */
int tc_xds_unpack(const struct tc_xds_form *form, struct tc_slice message, const struct tc_scan_options *options,
                  struct tc_arena *arena, ProtobufCMessage **out, struct tc_faults *f);

/* Unpacks a response of the form and has it applied; one that cannot be unpacked is answered as far as it can be made
 * out. False: it cannot. A large one may be applied later. */
bool tc_xds_take_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done,
                          const struct tc_xds_form *form);

#endif
