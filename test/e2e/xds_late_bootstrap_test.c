/* A bootstrap file that appears after the channel's first use, as it does when istio-agent writes it. RPCs fail with
 * the reason until the file is valid; then the channel, which reads the file again by itself, reaches the mesh
 * (kits/mesh.h). The test's thread makes the RPCs and writes the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

/* Replaces the file in one step, so that a reader never finds half of the text. */
static void put_file(const char *path, const char *text)
{
    char *temporary = tc_asprintf("%s.new", path);
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(temporary, path), 0);
    tc_free(temporary);
}

/* Makes a channel whose bootstrap comes from the environment. */
static torc_channel *channel_of(struct kit_mesh *k, const char *target)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .backoff_initial_ms = 50, .backoff_max_ms = 200};
    torc_channel *ch = torc_channel_new(kit_mesh_runtime(k), target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    return ch;
}

static void a_file_that_comes_late(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(1);
    char folder[] = "/tmp/torc-late-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = tc_asprintf("%s/bootstrap.json", folder);
    assert_int_equal(setenv("GRPC_XDS_BOOTSTRAP", path, 1), 0);
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(k, "c", NULL);
    torc_channel *ch = channel_of(k, "xds:///svc"), *other = channel_of(k, "xds:///absent");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "No such file or directory");
    kit_mesh_wait_failure(other, TORC_STATUS_UNAVAILABLE, "No such file or directory");
    put_file(path, "{\"xds_servers\": 7}"); /* invalid content */
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "field xds_servers: must be an array");
    torc_channel_free(other); /* while `other` waits to read the file again */
    put_file(path, kit_mesh_bootstrap(k));
    kit_mesh_wait_backend(k, ch, NULL, 0);
    kit_mesh_calls(ch, NULL, 10);
    torc_channel_free(ch);
    unlink(path);
    rmdir(folder);
    unsetenv("GRPC_XDS_BOOTSTRAP");
    tc_free(path);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_that_comes_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
