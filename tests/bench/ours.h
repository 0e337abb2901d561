/* ours.h - what `./dev bench etcd` measures of our client, one process per figure.
 *
 * Each runs against the etcd at `endpoint` and prints one JSON object with raw figures; the
 * peer's program has the same commands and prints the same members. */
#ifndef HFB_OURS_H
#define HFB_OURS_H

/* 0, or 1 with a sentence on stderr. */
int hfb_ours(int argc, char **argv);

/* The load for both: `ENDPOINT PREFIX COUNT KEYS` writes COUNT times, many in flight, over KEYS
 * keys in turn. */
int hfb_writer(int argc, char **argv);

#endif
