/* The client status of a runtime's xDS clients, and a server of it. */
#ifndef TC_ADMIN_CSDS_H
#define TC_ADMIN_CSDS_H

#include <torc/admin.h>

#include "base/buf.h"

/* Appends the serialised ClientStatusResponse: of the clients of the runtime, or of the xDS domain that it shares with
 * others. Loop thread. */
void tc_csds_make(torc_runtime *rt, bool without_contents, struct tc_buf *out);

#endif
