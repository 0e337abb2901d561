/* sign_peer.c - our Signature Version 4 behind two pipes, for tests/interop/sign.py.
 *
 * One request per line: fields in hexadecimal, between spaces. METHOD NAME SHA256 DATE REGION
 * KEY_ID SECRET, then names and values of headers, a field that is only a dash, and names and
 * values of query parameters. The answer is the request's target as it would be sent, a space,
 * and its Authorization. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/s3_sign.h"

enum { METHOD, NAME, SHA256, DATE, REGION, KEY_ID, SECRET, FIXED, MOST_FIELDS = 64 };

static bool read_hex(char *text)
{
    size_t len = strlen(text);
    unsigned byte;

    for (size_t i = 0; i < len / 2; i++) {
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        text[i] = (char)byte;
    }
    text[len / 2] = '\0';
    return len % 2 == 0;
}

/* Returns how many fields there are, with *ret_dash as the place of the dash; -1: no request.
 */
static int split(char *line, char *fields[MOST_FIELDS], int *ret_dash)
{
    int count = 0;
    char *rest = line, *at;

    *ret_dash = -1;
    while ((at = strsep(&rest, " \n")) != NULL && rest != NULL && count < MOST_FIELDS) {
        if (strcmp(at, "-") == 0)
            *ret_dash = count;
        else if (!read_hex(at))
            return -1;
        fields[count++] = at;
    }
    return *ret_dash < FIXED ? -1 : count;
}

static size_t pair_up(char *const *fields, int count, struct hf_s3_pair pairs[MOST_FIELDS])
{
    size_t made = 0;

    for (int i = 0; i + 1 < count; i += 2)
        pairs[made++] = (struct hf_s3_pair){ fields[i], fields[i + 1] };
    return made;
}

static int answer(char *const *fields, int count, int dash)
{
    HF_CLEANUP_BUF struct hf_buf path = { 0 };
    HF_CLEANUP_BUF struct hf_buf query = { 0 };
    HF_CLEANUP_BUF struct hf_buf authorization = { 0 };
    struct hf_s3_pair headers[MOST_FIELDS], parameters[MOST_FIELDS];
    struct hf_s3_signed what = { .method = fields[METHOD],
                                 .query = parameters,
                                 .headers = headers,
                                 .sha256 = fields[SHA256],
                                 .date = fields[DATE],
                                 .region = fields[REGION],
                                 .key_id = fields[KEY_ID],
                                 .secret = fields[SECRET] };

    what.header_count = pair_up(fields + FIXED, dash - FIXED, headers);
    what.query_count = pair_up(fields + dash + 1, count - dash - 1, parameters);
    hf_s3_escape(&path, fields[NAME], true);
    hf_s3_query(&query, parameters, what.query_count);
    what.path = path.data;
    if (path.err != HF_OK || query.err != HF_OK || hf_s3_sign(&what, &authorization) != HF_OK)
        return -1;
    return printf("%s%s%s %s\n", path.data, what.query_count > 0 ? "?" : "",
                  what.query_count > 0 ? query.data : "", authorization.data) < 0
               ? -1
               : fflush(stdout);
}

int main(void)
{
    char *line = NULL, *fields[MOST_FIELDS];
    size_t room = 0;
    int rc = 0;

    while (rc == 0 && getline(&line, &room, stdin) > 0) {
        int dash, count = split(line, fields, &dash);

        rc = count < 0 ? -1 : answer(fields, count, dash);
    }
    free(line);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
