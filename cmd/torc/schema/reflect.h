/* A client of grpc.reflection.v1, and of v1alpha where a server has nothing else. */
#ifndef TORC_REFLECT_COMMAND_H
#define TORC_REFLECT_COMMAND_H

#include <torc/torc.h>

#include "base/buf.h"
#include "proto/descriptor_index.h"

enum {
    REFLECT_OK,
    REFLECT_NOT_FOUND, /* the server answered that it does not have that */
    REFLECT_ABSENT,    /* the server has no reflection: UNIMPLEMENTED before any answer */
    REFLECT_FAILED,    /* the RPC failed, or an answer is malformed or too large */
};

/* All zero but `channel`, `metadata`, `timeout_ms` and `wait_for_ready`, which the caller sets. */
struct reflect {
    torc_channel *channel;         /* borrowed */
    const torc_metadata *metadata; /* of the reflection's own RPC; borrowed; NULL: none */
    int64_t timeout_ms;            /* for all questions together, on all streams; 0: none; -1: it is over already */
    bool wait_for_ready;

    torc_stream *stream;
    uint64_t opened_ns; /* when the stream was opened */
    uint64_t spent_ns;  /* how long the streams that ended were open */
    bool alpha;         /* the server does not have v1: v1alpha is asked */
    bool answered;      /* the stream has had an answer */
    size_t n_bytes;     /* of answers, ever */
    struct tc_buf why;  /* the text of the last failure */
    torc_message *kept; /* the last answer */
};

/* All return a REFLECT_ code, with the text of a failure in r->why. They block, and must not be called inside a
 * callback.
 *
 * reflect_symbol adds the file that defines a full name, all files that it imports, and the files of the extensions of
 * the messages in them. A file that the server does not have is left out: linking tells whether it is needed. After a
 * failure some files may have been added: the caller cuts the index. */
int reflect_symbol(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice symbol);
/* Adds the file of a name, and what reflect_symbol adds besides. */
int reflect_file(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice name);
/* Stores the grpc.reflection.v1.ListServiceResponse in *answer, which lives until the next question or reflect_rest. */
int reflect_services(struct reflect *r, struct tc_slice *answer);
/* Ends the stream; the next question opens another. */
void reflect_rest(struct reflect *r);
void reflect_fini(struct reflect *r);

#endif
