/* Texts of EDS resources. */
#include "xds/resource/endpoints.h"

void tc_eds_locality_format(const struct tc_eds_locality *l, struct tc_buf *out)
{
    tc_buf_printf(out, "{region=\"%s\", zone=\"%s\", sub_zone=\"%s\"}", l->region->data, l->zone->data,
                  l->sub_zone->data);
}
