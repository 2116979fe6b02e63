#include "lb/connectivity.h"

const char *tc_connectivity_name(enum torc_connectivity state)
{
    static const char *const names[] = {"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE", "SHUTDOWN"};
    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "UNKNOWN";
}
