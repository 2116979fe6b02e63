/* usage: psm_client --server=xds:///name --stats_port=N [--num_channels=N] [--qps=N] [--rpc=EmptyCall,UnaryCall]
 * [--metadata=EmptyCall:key:value,...] [--rpc_timeout_sec=N] [--fail_on_failed_rpc=BOOL] [--print_response=BOOL]
 * Prints "listening ADDR" when the stats port is there (0: any), runs until SIGTERM, SIGINT or the end of its input.
 * Exit 0; 1 when an RPC failed that must not, or the port is taken; 2 for wrong usage. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "psm.h"

static struct tc_loop *loop;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
    tc_loop_wake(loop);
}

static bool listen_on(struct tc_server *server, unsigned port)
{
    struct tc_addr any, bound;
    struct tc_status error = {0};
    bool ok = tc_addr_from_ip(&any, tc_slice_str("0.0.0.0"), (uint16_t)port) == 0 &&
              tc_server_listen(server, &any, &bound, &error) == 0;
    if (ok) {
        char *text = tc_addr_text(&bound);
        printf("listening %s\n", text);
        fflush(stdout);
        tc_free(text);
        tc_addr_fini(&bound);
    } else {
        fprintf(stderr, "stats port %u: %s\n", port, tc_status_text(&error));
    }
    tc_addr_fini(&any);
    tc_status_fini(&error);
    return ok;
}

static bool serve(const struct psm_options *o, struct tc_server *server)
{
    struct psm_stats *stats = psm_stats_new(loop);
    struct psm_load *load = psm_load_new(loop, o, stats);
    bool ok = false;
    if (load) {
        struct psm_service service = {.stats = stats, .load = load, .default_timeout_ms = o->timeout_ms};
        psm_service_register(&service, server);
        ok = listen_on(server, o->stats_port);
        while (ok && !stopped && !psm_load_failed(load))
            tc_loop_turn(loop, -1);
        ok = ok && !psm_load_failed(load);
        tc_server_free(server);
        tc_csds_service_end(&service.csds);
        psm_load_free(load);
    } else {
        tc_server_free(server);
    }
    psm_stats_free(stats);
    return ok;
}

int main(int argc, char **argv)
{
    struct psm_options options;
    struct tc_server_opts server_options;
    int rc = psm_options_parse(&options, argc, argv);
    if (rc != 0)
        return rc;
    loop = tc_loop_new(NULL);
    if (!loop) {
        perror("no loop");
        return 1;
    }
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    tc_server_opts_init(&server_options);
    bool ok = serve(&options, tc_server_new(loop, &server_options));
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    tc_loop_free(loop);
    return ok ? 0 : 1;
}
