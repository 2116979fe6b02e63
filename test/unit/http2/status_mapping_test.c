/* The gRPC code of an HTTP status, for a response without grpc-status (http-grpc-status-mapping.md). */
#include "http2/status_mapping.h"

#include "base/common.h"
#include "support/cmocka.h"

static void http_status_mapping(void **state)
{
    (void)state;
    const int want[][2] = {
        {400, TORC_STATUS_INTERNAL},      {401, TORC_STATUS_UNAUTHENTICATED}, {403, TORC_STATUS_PERMISSION_DENIED},
        {404, TORC_STATUS_UNIMPLEMENTED}, {429, TORC_STATUS_UNAVAILABLE},     {500, TORC_STATUS_UNKNOWN},
        {502, TORC_STATUS_UNAVAILABLE},   {503, TORC_STATUS_UNAVAILABLE},     {504, TORC_STATUS_UNAVAILABLE},
        {301, TORC_STATUS_UNKNOWN},       {431, TORC_STATUS_INTERNAL}};
    for (size_t i = 0; i < TC_ARRAY_LEN(want); i++)
        assert_int_equal(tc_h2_code_from_http((unsigned)want[i][0]), want[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_status_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
