/* A server with TLS. Its files may be replaced while it runs: new connections use the new files. With CLIENT_CA each
 * client must show a certificate, and the answer begins with the first subject alternative name of that certificate.
 * The handler runs on the thread of the default runtime.
 * usage: server_tls CERTIFICATE KEY [ADDRESS [CLIENT_CA]] */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

static void on_say(torc_server_call *call, const torc_message *request, void *arg)
{
    const char *name = "stranger";
    (void)arg;
    torc_server_call_peer_name(call, 0, NULL, &name);
    const char *text = torc_server_call_printf(call, "%s says %.*s", name, (int)torc_message_size(request),
                                               (const char *)torc_message_data(request));
    torc_server_call_reply(call, text, strlen(text));
}

int main(int argc, char **argv)
{
    struct torc_handler say = {TORC_SIZE(torc_handler), .unary = on_say};
    struct torc_server_tls_files files = {TORC_SIZE(torc_server_tls_files), .refresh_interval_ms = 60000};
    torc_error *error = NULL;
    char *bound = NULL;
    sigset_t signals;
    int signal;
    if (argc < 3) {
        fprintf(stderr, "usage: server_tls CERTIFICATE KEY [ADDRESS [CLIENT_CA]]\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    files.certificate_file = argv[1];
    files.private_key_file = argv[2];
    if (argc > 4) {
        files.client_ca_certificate_file = argv[4];
        files.client_certificates = TORC_CLIENT_CERTIFICATES_REQUIRED;
    }
    torc_credentials *credentials = torc_server_credentials_tls_files(&files, &error);
    torc_server *server = torc_server_new(NULL, &error);
    torc_server_add_method(server, "echo.Echo/Say", &say, &error);
    torc_server_listen(server, argc > 3 ? argv[3] : "127.0.0.1:50051", credentials, &bound, &error);
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
    torc_credentials_unref(credentials);
    torc_error_free(error);
    torc_free(bound);
    return failed;
}
