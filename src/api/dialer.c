/* The public functions of dials, over io/dialer.h. */
#include "io/dialer.h"

#include <unistd.h>

void torc_dial_done(torc_dial *dial, int fd, const torc_error *error)
{
    if (dial)
        tc_dial_done(dial, fd, error);
    else if (fd >= 0)
        close(fd);
}

void torc_dial_set_data(torc_dial *dial, void *data)
{
    if (dial)
        tc_dial_set_data(dial, data);
}

void *torc_dial_data(const torc_dial *dial)
{
    return dial ? tc_dial_data(dial) : NULL;
}
