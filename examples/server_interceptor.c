/* Two interceptors of a server: one logs each RPC, the other refuses RPCs without a known token. Hooks and the handler
 * run on the thread of the default runtime. Another thread looks up the token while the RPC waits.
 * usage: server_interceptor [ADDRESS] */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

/* --- a log of RPCs: the outermost interceptor, so that it also sees the RPCs that the other one refuses --- */

static int log_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)rpc, (void)arg;
    *(int64_t *)state = torc_time_ms();
    return 0;
}

static void log_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    const int64_t *begin_ms = state;
    fprintf(arg, "%s from %s: %s %s, %lld ms\n", torc_rpc_method(rpc), torc_rpc_peer(rpc), torc_status_code_name(code),
            torc_rpc_text(rpc), (long long)(torc_time_ms() - *begin_ms));
}

/* --- the check of the token --- */

struct lookup {
    torc_pending *pending;
    char token[64];
};

/* Asks a database, say. arg: a struct lookup, which this function frees. The RPC's handler is not called meanwhile. If
 * the RPC ends meanwhile, torc_rpc_resume only frees `pending`. */
static void *look_up(void *arg)
{
    struct lookup *l = arg;
    int known = strcmp(l->token, "Bearer 1234") == 0;
    torc_rpc_resume(l->pending, known ? 0 : TORC_STATUS_UNAUTHENTICATED, "the token is unknown");
    free(l);
    return NULL;
}

static int auth_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)state, (void)arg;
    const char *token = torc_metadata_find(torc_rpc_metadata(rpc), "authorization", NULL);
    pthread_t thread;
    if (!token) {
        torc_rpc_add_trailer(rpc, "www-authenticate", "Bearer", 6);
        torc_rpc_set_text(rpc, "a token is required");
        return TORC_STATUS_UNAUTHENTICATED;
    }
    struct lookup *l = calloc(1, sizeof(*l));
    if (!l) {
        torc_rpc_set_text(rpc, "no memory for the token");
        return TORC_STATUS_RESOURCE_EXHAUSTED;
    }
    snprintf(l->token, sizeof(l->token), "%s", token);
    l->pending = torc_rpc_suspend(rpc);
    if (pthread_create(&thread, NULL, look_up, l) != 0) {
        torc_rpc_resume(l->pending, 0, NULL); /* only frees `pending`: the hook does not return TORC_PENDING */
        free(l);
        torc_rpc_set_text(rpc, "no thread for the token");
        return TORC_STATUS_UNAVAILABLE;
    }
    pthread_detach(thread);
    return TORC_PENDING;
}

static void on_say(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

int main(int argc, char **argv)
{
    const struct torc_interceptor logger = {TORC_SIZE(torc_interceptor),
                                            .state_size = sizeof(int64_t),
                                            .name = "log",
                                            .on_start = log_start,
                                            .on_end = log_end,
                                            .arg = stderr};
    const struct torc_interceptor auth = {TORC_SIZE(torc_interceptor), .name = "auth", .on_start = auth_start};
    const struct torc_interceptor *const list[] = {&logger, &auth, NULL};
    const struct torc_server_options options = {TORC_SIZE(torc_server_options), .interceptors = list};
    const struct torc_handler say = {TORC_SIZE(torc_handler), .unary = on_say};
    torc_error *error = NULL;
    char *bound = NULL;
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    torc_server *server = torc_server_new(&options, &error);
    torc_server_add_method(server, "echo.Echo/Say", &say, &error);
    torc_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:50051", torc_credentials_insecure(), &bound, &error);
    if (torc_server_start(server, &error) != 0) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        torc_server_free(server);
        return 1;
    }
    printf("listening %s\n", bound);
    fflush(stdout);
    sigwait(&signals, &signal);
    torc_server_stop(server, 10000);
    torc_server_free(server);
    torc_free(bound);
    return 0;
}
