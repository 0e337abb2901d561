#include "io/metrics.h"

#include <inttypes.h>

/* Upper bounds; what is longer is counted in the sum of all alone. */
static const hf_ms BOUNDS[HF_HISTOGRAM_BUCKETS] = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000,
};

void hf_metrics_head(struct hf_buf *out, const char *name, const char *type, const char *help)
{
    hf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_escaped(struct hf_buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            hf_buf_puts(out, "\\n");
            continue;
        }
        if (*text == '\\' || *text == '"')
            hf_buf_putc(out, '\\');
        hf_buf_putc(out, *text);
    }
}

void hf_metrics_value(struct hf_buf *out, const char *name, const char *label,
                      const char *label_value, double value)
{
    hf_buf_puts(out, name);
    if (label != NULL) {
        hf_buf_printf(out, "{%s=\"", label);
        write_escaped(out, label_value);
        hf_buf_puts(out, "\"}");
    }
    hf_buf_printf(out, " %.17g\n", value);
}

void hf_metrics_single(struct hf_buf *out, const char *name, const char *type, const char *help,
                       double value)
{
    hf_metrics_head(out, name, type, help);
    hf_metrics_value(out, name, NULL, NULL, value);
}

void hf_histogram_observe(struct hf_histogram *histogram, hf_ms took)
{
    histogram->count++;
    histogram->sum_s += (double)took / 1000;
    for (size_t i = 0; i < HF_HISTOGRAM_BUCKETS; i++) {
        if (took <= BOUNDS[i]) {
            histogram->buckets[i]++;
            return;
        }
    }
}

void hf_histogram_write(const struct hf_histogram *histogram, struct hf_buf *out,
                        const char *name, const char *help)
{
    uint64_t below = 0;

    hf_metrics_head(out, name, "histogram", help);
    for (size_t i = 0; i < HF_HISTOGRAM_BUCKETS; i++) {
        below += histogram->buckets[i];
        hf_buf_printf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, (double)BOUNDS[i] / 1000,
                      below);
    }
    hf_buf_printf(out,
                  "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.17g\n%s_count %" PRIu64 "\n",
                  name, histogram->count, name, histogram->sum_s, name, histogram->count);
}
