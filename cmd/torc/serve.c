#include "serve.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "cli.h"

#define MIN_CONNECTIONS 64u
#define MAX_CONNECTIONS 65536u
#define MAX_QUEUED_BYTES (512u * 1024u * 1024u)

void cli_guard_server(struct tc_server_opts *opts)
{
    struct rlimit files;
    size_t max = getrlimit(RLIMIT_NOFILE, &files) == 0 ? TC_MIN(files.rlim_cur, (rlim_t)MAX_CONNECTIONS * 2) : 0;
    max = TC_MIN(max / 4 * 3, (size_t)MAX_CONNECTIONS);
    tc_server_opts_guard(opts, TC_MAX(max, (size_t)MIN_CONNECTIONS), MAX_QUEUED_BYTES);
}

int cli_listen(const char *command, struct tc_server *server, const char *addr)
{
    struct tc_addr a, bound;
    struct tc_status error = {0};
    int rc = 0;
    if (tc_addr_parse(&a, tc_slice_str(addr)) != 0)
        return cli_usage(command, "--listen: '%s' is not an address such as 127.0.0.1:0, [::1]:80 or unix:/path", addr);
    if (tc_server_listen(server, &a, &bound, &error) != 0) {
        rc = cli_fail(command, "cannot listen on %s: %s", addr, tc_status_text(&error));
    } else {
        char *text = tc_addr_text(&bound);
        printf("listening %s\n", text);
        rc = cli_flush() ? 0 : CLI_FAILED; /* who waits for the line would wait for ever */
        tc_free(text);
        tc_addr_fini(&bound);
    }
    tc_addr_fini(&a);
    tc_status_fini(&error);
    return rc;
}
