/* torc simulate --svg: a row of four bar charts for each policy: calls and most connections by backend, keys moved and
 * overload by phase. Charts of one kind have one scale, so that policies can be compared. */
#include <math.h>

#include "cli.h"
#include "simulate.h"

enum {
    CHARTS = 4,
    WIDTH = 250,
    HEIGHT = 120,
    GAP = 30,
    TITLE = 44,      /* above the charts of a policy */
    BARS_MAX = 1000, /* with more values, a bar shows the largest of several neighbours */
};

static double calls_of(const struct sim_result *r, size_t i)
{
    return (double)r->loads[i].calls;
}

static double connections_of(const struct sim_result *r, size_t i)
{
    return r->loads[i].most_connections;
}

static double moved_in(const struct sim_result *r, size_t i)
{
    const struct sim_phase *p = &r->phases.data[i];
    return p->keys ? 100.0 * p->moved / p->keys : 0;
}

static double overload_in(const struct sim_result *r, size_t i)
{
    return (double)r->phases.data[i].overload_ns / 1e9;
}

static const struct chart {
    const char *title, *unit, *colour;
    double (*value)(const struct sim_result *r, size_t i);
    bool by_backend;
} charts[CHARTS] = {
    {"calls by backend", "", "#3b6ea8", calls_of, true},
    {"connections by backend", "", "#4c9a6a", connections_of, true},
    {"keys moved by each change", " %", "#b0722c", moved_in, false},
    {"overload after each change", " s", "#b03a3a", overload_in, false},
};

static size_t chart_size(const struct chart *c, const struct sim_opts *o, const struct sim_result *r)
{
    return c->by_backend ? o->endpoints.len : r->phases.len;
}

static void bar(struct tc_buf *b, const struct chart *c, double x, double width, double value, double most,
                const char *name)
{
    double height = most > 0 ? value / most * HEIGHT : 0;
    tc_buf_printf(b, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>", x, HEIGHT - height, width,
                  height);
    cli_xml_text(b, name);
    tc_buf_printf(b, ": %.6g%s</title></rect>\n", value, c->unit);
}

static void chart(struct tc_buf *b, const struct chart *c, const struct sim_opts *o, const struct sim_result *r,
                  double most)
{
    size_t n = chart_size(c, o, r), bars = TC_MIN(n, (size_t)BARS_MAX), from = 0;
    double width = (double)WIDTH / (double)bars;
    tc_buf_printf(b, "<g fill=\"%s\">\n<path d=\"M0 %dH%d\" stroke=\"#888\"/>\n", c->colour, HEIGHT, WIDTH);
    for (size_t i = 0; i < bars; i++) {
        size_t end = (i + 1) * n / bars, largest = from;
        for (; from < end; from++)
            largest = c->value(r, from) > c->value(r, largest) ? from : largest;
        bar(b, c, (double)i * width, bars > 100 ? width : width * 0.85, c->value(r, largest), most,
            c->by_backend ? o->endpoints.data[largest].name : r->phases.data[largest].name);
    }
    tc_buf_printf(b, "</g>\n<text y=\"-6\">%s, up to %.4g%s</text>\n", c->title, most, c->unit);
}

int sim_write_svg(const struct sim_opts *o, const struct sim_result *results)
{
    struct tc_buf b = {0};
    size_t rows = o->policies.len, row = HEIGHT + TITLE + GAP;
    tc_buf_printf(&b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" font-family=\"sans-serif\" "
                  "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                  CHARTS * (WIDTH + GAP) + GAP, rows * row + GAP);
    for (size_t k = 0; k < rows; k++) {
        tc_buf_printf(&b, "<text x=\"%d\" y=\"%zu\" font-size=\"15\">", GAP, k * row + GAP);
        cli_xml_text(&b, results[k].policy);
        tc_buf_append_str(&b, "</text>\n");
        for (size_t c = 0; c < CHARTS; c++) {
            double most = 0;
            for (size_t r = 0; r < rows; r++)
                for (size_t i = 0; i < chart_size(&charts[c], o, &results[r]); i++)
                    most = fmax(most, charts[c].value(&results[r], i));
            tc_buf_printf(&b, "<g transform=\"translate(%zu %zu)\">\n", GAP + c * (WIDTH + GAP),
                          k * row + GAP + TITLE - 14);
            chart(&b, &charts[c], o, &results[k], most);
            tc_buf_append_str(&b, "</g>\n");
        }
    }
    tc_buf_append_str(&b, "</svg>\n");
    int rc = cli_write_file(SIMULATE_COMMAND, o->svg, tc_buf_slice(&b));
    tc_buf_fini(&b);
    return rc;
}
