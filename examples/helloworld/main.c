/* Says hello by generated code: helloworld [TARGET [NAME]]. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <torc/torc.h>

#include "helloworld.torc.h"

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "localhost:50051", NULL, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        return 1;
    }
    Helloworld__HelloRequest request = HELLOWORLD__HELLO_REQUEST__INIT;
    request.name = argc > 2 ? argv[2] : (char *)"world";
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
    torc_result *result = helloworld__greeter__say_hello__call(channel, &request, &options);
    const Helloworld__HelloReply *reply = helloworld__greeter__say_hello__response(result);
    if (reply)
        printf("%s\n", reply->message);
    else
        fprintf(stderr, "%s\n", torc_error_text(torc_result_error(result)));
    int failed = !reply;
    torc_result_free(result); /* the reply goes with it */
    torc_channel_free(channel);
    torc_runtime_default_free(); /* for leak checkers: the default runtime otherwise lives until the process ends */
    return failed;
}
