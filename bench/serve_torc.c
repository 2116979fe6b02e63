/* The server of bench/server on libtorc: echoes unary requests. Prints its port. on_echo runs on the thread of the
 * default runtime; the main thread waits until the process is killed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

int main(void)
{
    const struct torc_handler echo = {TORC_SIZE(torc_handler), .unary = on_echo};
    torc_error *error = NULL;
    char *bound = NULL;
    torc_server *server = torc_server_new(NULL, &error);
    torc_server_add_method(server, "bench.Echo/Echo", &echo, &error);
    if (torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error) != 0 ||
        torc_server_start(server, &error) != 0)
        return fprintf(stderr, "bench_server_torc: %s\n", torc_error_text(error)), 1;
    printf("%s\n", strrchr(bound, ':') + 1);
    fflush(stdout);
    for (;;)
        pause();
}
