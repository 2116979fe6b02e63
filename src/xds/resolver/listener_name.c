/* Listener names from targets, by the templates of the bootstrap (A47). */
#include "xds/resolver/listener_name.h"

#include "base/parse.h"

/* Appends the template with the path instead of each "%s". In an xdstp: name, percent-encodes characters of the path
 * that RFC 3986 3.3 does not allow in paths. */
static void template_expand(struct tc_slice template, const char *path, struct tc_buf *out)
{
    bool encode = tc_slice_starts(template, tc_slice_str("xdstp:"));
    while (template.len) {
        ptrdiff_t at = tc_slice_find(template, tc_slice_str("%s"));
        size_t before = at < 0 ? template.len : (size_t)at;
        tc_buf_append(out, template.data, before);
        if (at < 0)
            return;
        if (encode)
            tc_uri_encode(out, tc_slice_str(path), "/:@!$&'()*+,;=");
        else
            tc_buf_append_str(out, path);
        template = tc_slice_of(template.data + before + 2, template.len - before - 2);
    }
}

int tc_listener_name(const struct tc_xds_bootstrap *bootstrap, const struct tc_target *target, struct tc_buf *out)
{
    if (!target->authority[0]) {
        struct tc_slice template = tc_rstr_slice(bootstrap->client_default_listener_template);
        template_expand(template.len ? template : tc_slice_str("%s"), target->path, out);
        return 0;
    }
    const struct tc_xds_authority *a = tc_xds_bootstrap_authority(bootstrap, tc_slice_str(target->authority));
    if (!a)
        return TORC_ENOTFOUND;
    if (a->client_listener_template) {
        template_expand(tc_rstr_slice(a->client_listener_template), target->path, out);
    } else {
        struct tc_buf template = {0};
        tc_buf_append_str(&template, "xdstp://");
        tc_uri_encode(&template, tc_slice_str(target->authority), ":[]@!$&'()*+,;=");
        tc_buf_append_str(&template, "/envoy.config.listener.v3.Listener/%s");
        template_expand(tc_buf_slice(&template), target->path, out);
        tc_buf_fini(&template);
    }
    return 0;
}

void tc_data_plane_authority(const struct tc_target *target, struct tc_buf *out)
{
    tc_uri_encode(out, tc_slice_str(target->path), ":[]@!$&'()*+,;=");
}
