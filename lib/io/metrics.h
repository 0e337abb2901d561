/* metrics.h - numbers in the text format that Prometheus reads.
 *
 *     hf_metrics_head(out, "holdfast_tasks", "gauge", "Tasks by state.");
 *     hf_metrics_value(out, "holdfast_tasks", "state", "pending", 3);
 *
 * Pure: nothing is kept but what a histogram counts. */
#ifndef HF_IO_METRICS_H
#define HF_IO_METRICS_H

#include "base/buf.h"
#include "base/clock.h"

/* "# HELP" and "# TYPE", before the first value of a name. */
void hf_metrics_head(struct hf_buf *out, const char *name, const char *type, const char *help);

/* One sample; `label` may be NULL. Label values are escaped. */
void hf_metrics_value(struct hf_buf *out, const char *name, const char *label,
                      const char *label_value, double value);

/* Head and one value. */
void hf_metrics_single(struct hf_buf *out, const char *name, const char *type, const char *help,
                       double value);

#define HF_HISTOGRAM_BUCKETS 16

/* How long things took, in buckets of 1 ms to 60 s. Zero-initialise. */
struct hf_histogram {
    uint64_t buckets[HF_HISTOGRAM_BUCKETS]; /* not cumulative */
    uint64_t count;
    double sum_s;
};

void hf_histogram_observe(struct hf_histogram *histogram, hf_ms took);
void hf_histogram_write(const struct hf_histogram *histogram, struct hf_buf *out,
                        const char *name, const char *help);

#endif
