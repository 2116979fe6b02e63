/* Backends that send arbitrary bytes over TLS, and backends that break TLS itself. */
#include "support/hostile/client.h"

int main(void)
{
    return hostile_client_run(true);
}
