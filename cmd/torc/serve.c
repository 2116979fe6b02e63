#include "serve.h"

#include <stdio.h>

#include "base/mem.h"
#include "cli.h"

int cli_listen(const char *command, struct tc_server *server, const char *addr)
{
    struct tc_addr a, bound;
    struct tc_status error = {0};
    int rc = 0;
    if (tc_addr_parse(&a, tc_slice_str(addr)) != 0)
        return cli_usage(command, "--listen: '%s' is no address such as 127.0.0.1:0, [::1]:80 or unix:/path", addr);
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
