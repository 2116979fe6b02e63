/* The PSM client (psm.h).
 * usage: interop_psm [--server=xds:///name] [--stats_port=N] [--num_channels=N] [--qps=N] [--rpc=EmptyCall,UnaryCall]
 * [--metadata=EmptyCall:key:value,...] [--rpc_timeout_sec=N] [--fail_on_failed_rpc=BOOL] [--print_response=BOOL]
 * [--secure_mode=BOOL]
 *
 * Prints "listening ADDR" once it listens on the stats port (0: any port). Runs until SIGTERM or SIGINT, or with
 * --fail_on_failed_rpc until an RPC fails after one has succeeded. Exit 1 after such an RPC, for a malformed --rpc or
 * --metadata, and when the runtime, a channel or the server cannot be made; 2 for other wrong usage; else 0. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "psm.h"

enum { THREADS = 16, QUEUE = 64 };

/* Makes a server of the driver's services, whose methods all run on the pool, and starts it. Returns it for
 * torc_server_free, also if *error is set; NULL if it could not be made. */
static torc_server *serve(struct psm_service *service, unsigned port, torc_pool *pool, torc_error **error)
{
    struct torc_method_options options = {TORC_SIZE(torc_method_options), .pool = pool};
    torc_server *server = torc_server_new(NULL, error);
    torc_credentials *insecure = torc_credentials_insecure();
    char address[32], *bound = NULL;
    snprintf(address, sizeof(address), "0.0.0.0:%u", port);
    psm_service_add(service, server, error);
    torc_server_limit(server, "*", &options, error);
    torc_server_listen(server, address, insecure, &bound, error);
    if (torc_server_start(server, error) == 0) {
        printf("listening %s\n", bound);
        fflush(stdout);
    }
    torc_free(bound);
    torc_credentials_unref(insecure);
    return server;
}

/* Sends RPCs until a signal comes or psm_load_failed. */
static void send_until(struct psm_load *load, const sigset_t *signals)
{
    int signal;
    do {
        int64_t wait_ms = psm_load_send(load);
        struct timespec wait = {(time_t)(wait_ms / 1000), (long)(wait_ms % 1000) * 1000000};
        signal = sigtimedwait(signals, NULL, &wait);
    } while (signal < 0 && !psm_load_failed(load));
}

int main(int argc, char **argv)
{
    struct psm_options options;
    int rc = psm_options_parse(&options, argc, argv);
    if (rc != 0)
        return rc;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    struct psm_stats *stats = psm_stats_new();
    struct psm_load *load = psm_load_new(&options, stats);
    bool ok = false;
    if (load) {
        struct psm_service service = {stats, load, options.timeout_ms};
        torc_error *error = NULL;
        torc_pool *pool = torc_pool_new(THREADS, QUEUE, &error);
        torc_server *server = serve(&service, options.stats_port, pool, &error);
        if (error)
            fprintf(stderr, "stats port %u: %s\n", options.stats_port, torc_error_text(error));
        else
            send_until(load, &signals);
        ok = !error && !psm_load_failed(load);
        psm_stats_close(stats);
        torc_server_free(server);
        torc_pool_free(pool); /* its handlers use the load and the counts */
        torc_error_free(error);
        psm_load_free(load);
    }
    psm_stats_free(stats);
    return ok ? 0 : 1;
}
