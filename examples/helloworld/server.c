/* Greets by generated code, until SIGTERM or SIGINT: server [ADDRESS]. The handler runs on the thread of the default
 * runtime. SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>

#include <torc/torc.h>

#include "helloworld.torc.h"

static void say_hello(torc_server_call *call, const Helloworld__HelloRequest *request, void *arg)
{
    Helloworld__HelloReply reply = HELLOWORLD__HELLO_REPLY__INIT;
    reply.message = (char *)torc_server_call_printf(call, "%s, %s", (const char *)arg, request->name);
    helloworld__greeter__say_hello__reply(call, &reply); /* a reply may be sent now, or later from any thread */
}

int main(int argc, char **argv)
{
    struct helloworld__greeter__handlers handlers = {TORC_SIZE(helloworld__greeter__handlers), .say_hello = say_hello};
    char greeting[] = "Hello", *bound = NULL;
    torc_error *error = NULL;
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    torc_server *server = torc_server_new(NULL, &error);
    helloworld__greeter__add(server, &handlers, greeting, &error);
    torc_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:50051", torc_credentials_insecure(), &bound, &error);
    if (torc_server_start(server, &error) == 0) {
        printf("listening %s\n", bound);
        fflush(stdout);
        sigwait(&signals, &signal);
        torc_server_stop(server, 10000);
    } else {
        fprintf(stderr, "%s\n", torc_error_text(error));
    }
    int failed = error != NULL;
    torc_server_free(server);
    torc_error_free(error);
    torc_free(bound);
    return failed;
}
