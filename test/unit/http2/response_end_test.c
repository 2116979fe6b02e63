/* The place of a response's status: in the HEADERS block that ends the stream, and nowhere else (PROTOCOL-HTTP2.md).
 * Without a status there, a gRPC response that ends with DATA is INTERNAL; otherwise http-grpc-status-mapping.md
 * decides. A row is a response of fakes/h2 to a client (kits/h2), which reads it at once and byte by byte. */
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS
#define NO_TRAILERS "server closed the stream without sending trailers"
#define NO_STATUS "server sent trailers without grpc-status"
#define TEXT_HTML "content-type: text/html\n"

struct row {
    const char *headers;  /* the first block; the stream ends with it when `more` is NULL */
    const char *more;     /* the six bytes of a DATA frame */
    const char *trailers; /* NULL: none; DATA or the first block ends the stream */
    int code;
    const char *text;
    bool from_server;
};

#define MESSAGE "\0\0\0\0\1x" /* 6 bytes */

static const struct row rows[] = {
    {OK "grpc-status: 0\n", MESSAGE, NULL, TORC_STATUS_INTERNAL, NO_TRAILERS, false},
    {OK "grpc-status: 5\ngrpc-message: no\n", MESSAGE, NULL, TORC_STATUS_INTERNAL, NO_TRAILERS, false},
    {OK "grpc-status: ok\ngrpc-message: no\n", MESSAGE, NULL, TORC_STATUS_INTERNAL, NO_TRAILERS, false},
    {OK "grpc-status: 0\n", MESSAGE, "a: b\n", TORC_STATUS_UNKNOWN, NO_STATUS, false},
    {OK "grpc-status: 0\ngrpc-message: no\n", MESSAGE, "grpc-status: 5\n", TORC_STATUS_NOT_FOUND, "", true},
    {OK "grpc-status: 5\ngrpc-message: no\n", MESSAGE, "grpc-status: 0\n", TORC_STATUS_OK, "", true},
    {OK, MESSAGE, "a: b\n", TORC_STATUS_UNKNOWN, NO_STATUS, false},
    {OK, NULL, NULL, TORC_STATUS_UNKNOWN, NO_STATUS, false},
    {OK "grpc-status: 5\n", NULL, NULL, TORC_STATUS_NOT_FOUND, "", true},
    {":status: 503\n" TEXT_HTML "grpc-status: 0\n", "<html>", NULL, TORC_STATUS_UNAVAILABLE,
     "server answered with HTTP status 503: <html>", false},
    {":status: 503\n" TEXT_HTML, "<html>", "grpc-status: 8\n", TORC_STATUS_RESOURCE_EXHAUSTED, "", true},
    {":status: 431\n", NULL, NULL, TORC_STATUS_INTERNAL, "server answered with HTTP status 431", false},
};

/* chunk: the most bytes of one read; 0: unlimited. */
static void run_row(size_t i, size_t chunk)
{
    const struct row *row = &rows[i];
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, chunk);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 1, row->headers, !row->more);
    if (row->more)
        fake_h2_data(t.peer, 1, row->more, 6, !row->trailers);
    if (row->trailers)
        fake_h2_headers(t.peer, 1, row->trailers, true);
    kit_h2_run(&t);
    if (call.done != 1 || call.code != row->code || strcmp(call.text, row->text) != 0 ||
        call.from_server != row->from_server)
        fail_msg("row %zu (chunk %zu): done %u code %d text '%s' from_server %d", i, chunk, call.done, call.code,
                 call.text, call.from_server);
    assert_int_equal(t.closed, 0);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void place_of_the_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        run_row(i, 0);
        run_row(i, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(place_of_the_status)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
