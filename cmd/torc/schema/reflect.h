/* A client of grpc.reflection.v1, or of v1alpha if the server does not have v1. */
#ifndef TORC_REFLECT_COMMAND_H
#define TORC_REFLECT_COMMAND_H

#include <torc/torc.h>

#include "base/buf.h"
#include "proto/descriptor_index.h"

enum {
    REFLECT_OK,
    REFLECT_NOT_FOUND, /* the server answered that it does not have what was asked for */
    REFLECT_ABSENT,    /* the server has neither v1 nor v1alpha: UNIMPLEMENTED before any answer of a stream */
    REFLECT_FAILED,    /* the RPC failed; or an answer is another error, is malformed, lacks what was asked for, or is
                          beyond a limit */
};

/* The caller sets `channel`, `metadata`, `timeout_ms` and `wait_for_ready`; all else begins as zero. */
struct reflect {
    torc_channel *channel;         /* borrowed */
    const torc_metadata *metadata; /* of reflection's RPCs; borrowed; NULL: none */
    int64_t timeout_ms;            /* for all streams together; 0: no limit; -1: the deadline has passed */
    bool wait_for_ready;

    torc_stream *stream; /* owned; NULL: none is open */
    uint64_t opened_ns;  /* when the stream was opened, by the monotonic clock */
    uint64_t spent_ns;   /* how long the streams that ended were open */
    bool alpha;          /* the server does not have v1: streams are of v1alpha */
    bool answered;       /* an answer came on `stream` */
    size_t n_bytes;      /* of all answers */
    struct tc_buf why;   /* the text of the last failure */
    torc_message *kept;  /* the last answer; a reference */
};

/* reflect_symbol, reflect_file and reflect_services return a REFLECT_ code, with the text of a failure in r->why. They
 * block, and must not be called in a callback. After a failure some files may have been added: the caller cuts the
 * index.
 *
 * reflect_symbol adds the file that defines a full name, the files with extensions of the messages in it, and all
 * imports of these files. It leaves out, without a failure, an import that the server does not have (linking tells
 * whether it is needed), extensions of descriptor.proto's messages, and those of all but the first 64 messages that can
 * have any. */
int reflect_symbol(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice symbol);
/* Adds the file of this name, its imports, and files with extensions, as reflect_symbol does. */
int reflect_file(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice name);
/* Stores the grpc.reflection.v1.ListServiceResponse in *answer, which lives until the next question or reflect_rest.
 * Its fields, and those of its services, can be read. */
int reflect_services(struct reflect *r, struct tc_slice *answer);
/* Ends the stream, if one is open; the next question opens another. The last answer is freed. */
void reflect_rest(struct reflect *r);
/* Does reflect_rest and frees r->why. `channel` and `metadata` stay the caller's. */
void reflect_fini(struct reflect *r);

#endif
