/* Two interceptors of a channel: one logs each RPC, the other adds a token, which a thread fetches while the RPC waits.
 * Hooks run on the thread of the default runtime. usage: interceptor [TARGET [MESSAGE]] */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

/* --- a log of RPCs --- */

struct logged {
    int64_t begin_ms;
};

static int log_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)rpc, (void)arg;
    ((struct logged *)state)->begin_ms = torc_time_ms();
    return 0;
}

static void log_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    const struct logged *l = state;
    fprintf(arg, "%s to %s: %s %s, %lld ms, %u attempt(s)\n", torc_rpc_method(rpc), torc_rpc_peer(rpc),
            torc_status_code_name(code), torc_rpc_text(rpc), (long long)(torc_time_ms() - l->begin_ms),
            (unsigned)torc_rpc_attempts(rpc));
}

/* --- a token for each RPC, which takes a while to get --- */

static void *fetch_token(void *arg)
{
    torc_pending *pending = arg;
    const char *token = "Bearer 1234"; /* an HTTP request, say */
    int rc = torc_pending_add_metadata(pending, "x-token", token, strlen(token));
    torc_rpc_resume(pending, rc == 0 ? 0 : TORC_STATUS_UNAUTHENTICATED, "the token cannot be sent");
    return NULL;
}

static int token_start(torc_rpc *rpc, void *state, void *arg)
{
    (void)state, (void)arg;
    pthread_t thread;
    torc_pending *pending = torc_rpc_suspend(rpc);
    if (pthread_create(&thread, NULL, fetch_token, pending) != 0) {
        torc_rpc_resume(pending, 0, NULL); /* only frees `pending`: the hook does not return TORC_PENDING */
        torc_rpc_set_text(rpc, "no thread for the token");
        return TORC_STATUS_UNAVAILABLE;
    }
    pthread_detach(thread);
    return TORC_PENDING;
}

int main(int argc, char **argv)
{
    const char *target = argc > 1 ? argv[1] : "127.0.0.1:50051";
    const char *message = argc > 2 ? argv[2] : "hello";
    const struct torc_interceptor logger = {TORC_SIZE(torc_interceptor),
                                            .state_size = sizeof(struct logged),
                                            .name = "log",
                                            .on_start = log_start,
                                            .on_end = log_end,
                                            .arg = stdout};
    const struct torc_interceptor token = {TORC_SIZE(torc_interceptor), .name = "token", .on_start = token_start};
    const struct torc_interceptor *const list[] = {&logger, &token, NULL}; /* the log is outermost */
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .interceptors = list};
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, target, &options, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        return 1;
    }
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
    torc_result *result = torc_unary(channel, "echo.Echo/Say", message, strlen(message), &call);
    int code = torc_result_code(result);
    torc_result_free(result);
    torc_channel_free(channel);
    return code == TORC_STATUS_OK ? 0 : 1;
}
