/* torc ring --svg: the ring as a picture, one arc for each run of entries with one owner. Of a ring with more than
 * SLICES_MAX entries, the owners of SLICES_MAX evenly spaced hashes are drawn. */
#include <math.h>

#include "base/mem.h"
#include "cli.h"
#include "ring_command.h"

enum {
    SLICES_MAX = 20000, /* finer arcs would not be visible */
    LEGEND_MAX = 32,
    CENTRE = 320,
    RADIUS = 250,
    STROKE = 60,
    LEGEND_X = 640,
};

static void colour(struct tc_buf *b, uint32_t item)
{
    /* Steps of the golden angle keep neighbours in the list apart in hue, for any number of endpoints. */
    double hue = fmod(item * 137.50776405, 360);
    tc_buf_printf(b, "hsl(%.1f,%d%%,%d%%)", hue, 65, item % 2 ? 45 : 60);
}

/* Draws an arc. Angles are in turns, clockwise from the top: hash 0 is at twelve o'clock. */
static void arc(struct tc_buf *b, const struct ring_opts *o, uint32_t item, double from, double to)
{
    if (to - from > 0.999999) {
        tc_buf_printf(b, "<circle cx=\"%d\" cy=\"%d\" r=\"%d\" stroke=\"", CENTRE, CENTRE, RADIUS);
    } else {
        double a = 2 * M_PI * from, z = 2 * M_PI * to;
        tc_buf_printf(b, "<path d=\"M%.3f %.3fA%d %d 0 %d 1 %.3f %.3f\" stroke=\"", CENTRE + RADIUS * sin(a),
                      CENTRE - RADIUS * cos(a), RADIUS, RADIUS, to - from > 0.5, CENTRE + RADIUS * sin(z),
                      CENTRE - RADIUS * cos(z));
    }
    colour(b, item);
    tc_buf_append_str(b, "\"><title>");
    cli_xml_text(b, o->endpoints.at.data[item].key);
    tc_buf_append_str(b, to - from > 0.999999 ? "</title></circle>\n" : "</title></path>\n");
}

static void arcs(struct tc_buf *b, const struct ring_opts *o, const struct tc_ring *r)
{
    uint32_t size = tc_ring_size(r), steps = TC_MIN(size, SLICES_MAX);
    uint32_t owner = tc_ring_item_at(r, 0);
    double start = 0, at = 0;
    for (uint32_t s = 0; s < steps; s++) {
        bool exact = size <= SLICES_MAX;
        double end = exact ? (double)tc_ring_hash_at(r, s) * 0x1p-64 : (double)(s + 1) / steps;
        uint32_t item = tc_ring_item_at(r, exact ? s : tc_ring_find(r, (uint64_t)((s + 0.5) / steps * 0x1p63) * 2));
        if (item != owner) {
            arc(b, o, owner, start, at);
            owner = item;
            start = at;
        }
        at = end;
    }
    /* Hashes above that of the last entry belong to the first entry. */
    if (at < 1 && owner != tc_ring_item_at(r, 0)) {
        arc(b, o, owner, start, at);
        owner = tc_ring_item_at(r, 0);
        start = at;
    }
    arc(b, o, owner, start, 1);
}

static void legend(struct tc_buf *b, const struct ring_opts *o, const struct tc_ring *r)
{
    size_t n = o->endpoints.at.len, shown = TC_MIN(n, LEGEND_MAX);
    double *shares = ring_shares(r, n);
    for (uint32_t i = 0; i < shown; i++) {
        unsigned y = 40 + 18 * i;
        tc_buf_printf(b, "<rect x=\"%d\" y=\"%u\" width=\"12\" height=\"12\" fill=\"", LEGEND_X, y);
        colour(b, i);
        tc_buf_printf(b, "\"/><text x=\"%d\" y=\"%u\">%.2f%% ", LEGEND_X + 20, y + 10, 100 * shares[i]);
        cli_xml_text(b, o->endpoints.at.data[i].key);
        tc_buf_append_str(b, "</text>\n");
    }
    if (n > shown)
        tc_buf_printf(b, "<text x=\"%d\" y=\"%zu\">and %zu more</text>\n", LEGEND_X, 50 + 18 * shown, n - shown);
    tc_free(shares);
}

int ring_write_svg(const struct ring_opts *o, const struct tc_ring *r)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 660\" "
                          "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"960\" height=\"660\" "
                          "fill=\"white\"/>\n");
    tc_buf_printf(&b, "<g fill=\"none\" stroke-width=\"%d\">\n", STROKE);
    arcs(&b, o, r);
    tc_buf_printf(&b, "</g>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"16\">%u entries</text>\n",
                  CENTRE, CENTRE - 4, tc_ring_size(r));
    tc_buf_printf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%zu endpoints</text>\n", CENTRE, CENTRE + 16,
                  o->endpoints.at.len);
    legend(&b, o, r);
    tc_buf_append_str(&b, "</svg>\n");

    int rc = cli_write_file(RING_COMMAND, o->svg, tc_buf_slice(&b));
    tc_buf_fini(&b);
    return rc;
}
