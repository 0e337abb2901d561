/* writer.h - changes keys at random, through a client of its own, while a test does its worst.
 */
#ifndef HFT_WRITER_H
#define HFT_WRITER_H

#include "support/client.h"

struct hft_writer_config {
    const char *endpoint[3]; /* NULL: fewer */
    const char *prefix;
    unsigned keys;           /* how many different ones */
    unsigned delete_percent; /* of the changes; the others are puts */
    size_t value_bytes;      /* at most 64 KiB */
    unsigned in_flight;      /* changes at a time; 0: one */
    hf_ms pause;             /* after each */
    unsigned limit;          /* stop after so many; 0: never */
    uint32_t seed;
};

struct hft_writer {
    struct hft_writer_config cfg;
    struct hft_client *client; /* whose loop it uses */
    struct hf_etcd *etcd;
    char *value;
    uint32_t random;
    unsigned started, done, failed; /* failed: not known to have happened */
    unsigned under_way;             /* requests and pauses */
    bool stopping;
};

/* Strings of the configuration are borrowed until the stop. */
void hft_writer_start(struct hft_client *client, struct hft_writer *writer,
                      const struct hft_writer_config *cfg);

/* Runs the loop until `count` more changes are done. */
void hft_writer_until(struct hft_writer *writer, unsigned count, hf_ms timeout);

/* Lets what is under way end, and runs the loop until then. */
void hft_writer_stop(struct hft_writer *writer);

/* Puts <prefix>00000 and on, `count` of them, 64 in a revision, and runs the loop until then.
 * Returns the revision of the last ones. */
hf_rev hft_write_many(struct hft_client *client, const char *prefix, unsigned count,
                      size_t value_bytes);

#endif
