/* stall.h - a file whose readers wait, as on a file system that hangs. */
#ifndef HFT_STALL_H
#define HFT_STALL_H

#include <stdbool.h>

struct hft_stall {
    int fd;
};

/* From now on everybody who reads the file waits, and nobody who opens it. False: only root may
 * do this, where the kernel can. */
bool hft_stall_begin(struct hft_stall *stall, const char *path);

/* Until somebody waits. */
void hft_stall_await(struct hft_stall *stall);

/* Lets all of them go on. */
void hft_stall_end(struct hft_stall *stall);

#endif
