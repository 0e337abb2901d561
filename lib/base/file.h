/* file.h - small files that others wait for. */
#ifndef HF_BASE_FILE_H
#define HF_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Writes a file in one piece: whoever waits for it finds nothing, the old one or the new one,
 * never half of it. What is there and no file (a pipe, /dev/stdout) is written to as it is, and
 * stays what it is. */
int hf_file_write(const char *path, const void *data, size_t len,
                  struct hf_error *err) HF_MUST_CHECK;

/* A file for reading and writing that has no name and goes when it is closed, on the disk of
 * that directory. Returns its descriptor, or -1 with errno. */
int hf_file_open_nameless(const char *directory) HF_MUST_CHECK;

/* Opens /dev/null for the standard descriptors that are closed. Else they would be taken by
 * what is opened next, which then gets what is printed. First of all in main. */
void hf_stdio_fill(void);

/* Whether this can be run: a path, or a name that is found in one of the directories of `path`,
 * which is written as PATH is. */
bool hf_file_is_program(const char *name, const char *path);

#endif
