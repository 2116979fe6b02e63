/* Backends that send arbitrary bytes, over plaintext. */
#include "support/hostile/client.h"

int main(void)
{
    return hostile_client_run(false);
}
