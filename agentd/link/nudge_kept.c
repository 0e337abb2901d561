#include <inttypes.h>
#include <string.h>

#include "agentd/link/nudge.h"
#include "base/str.h"

/* ID WAY DELIVERED READ BEGUN ENDED HOOKED */

void link_nudge_format(const struct link_nudge *nudge, struct hf_buf *out)
{
    const struct hf_receipt *receipt = &nudge->receipt;

    if (receipt->id[0] == '\0')
        return;
    hf_buf_printf(out, "%s %s %" PRId64 " %" PRId64 " %" PRIu32 " %" PRIu32 " %d", receipt->id,
                  receipt->by[0] != '\0' ? receipt->by : "-", receipt->delivered_wall,
                  receipt->read_wall, nudge->begun, nudge->ended, nudge->hooked);
}

static bool take_word(const char **line, char *out, size_t size)
{
    size_t len = strcspn(*line, " \n");

    if (len == 0 || len >= size)
        return false;
    memcpy(out, *line, len);
    out[len] = '\0';
    *line += len + ((*line)[len] == ' ' ? 1 : 0);
    return true;
}

static bool take_number(const char **line, uint64_t max, uint64_t *ret_number)
{
    char digits[24];

    return take_word(line, digits, sizeof digits) &&
           hf_parse_u64(digits, 0, max, ret_number) == HF_OK;
}

void link_nudge_parse(struct link_nudge *nudge, const char *line)
{
    struct link_nudge kept = { .receipt_due = true };
    struct hf_receipt *receipt = &kept.receipt;
    uint64_t delivered, read, begun, ended, hooked;

    if (!take_word(&line, receipt->id, sizeof receipt->id) ||
        !take_word(&line, receipt->by, sizeof receipt->by) ||
        !take_number(&line, INT64_MAX, &delivered) || !take_number(&line, INT64_MAX, &read) ||
        !take_number(&line, UINT32_MAX, &begun) || !take_number(&line, UINT32_MAX, &ended) ||
        !take_number(&line, 1, &hooked))
        return;
    if (strcmp(receipt->by, "-") == 0)
        receipt->by[0] = '\0';
    receipt->delivered_wall = (hf_ms)delivered;
    receipt->read_wall = (hf_ms)read;
    kept.begun = (uint32_t)begun;
    kept.ended = (uint32_t)ended;
    /* Of one whose end no link saw nobody knows what it did. */
    kept.hooked = hooked != 0 || begun != ended;
    *nudge = kept;
}
