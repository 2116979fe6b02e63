/* Initialises OpenSSL in this process, so that OpenSSL installs no exit handler. If the application initialised OpenSSL
 * before, OpenSSL has one, and Torc's exit handler runs before it. OpenSSL's state of a thread that was in a foreign
 * section is freed when the thread ends. tc_openssl_init does nothing once foreign libraries are closed
 * (base/fork.h). */
#include "base/exit.h"
#include "base/fork.h"
#include "tls/openssl.h"

static void openssl_end_thread(void)
{
    OPENSSL_thread_stop();
}

void tc_openssl_init(void)
{
    if (!tc_foreign_enter())
        return;
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    tc_foreign_leave();
    tc_foreign_set_thread_cleanup(openssl_end_thread);
    tc_exit_before();
}
