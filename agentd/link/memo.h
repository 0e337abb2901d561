/* memo.h - what the keeper holds of all agents for the next link: which of them were started,
 * so that it does not start them again, with the code that the last process ended with; and
 * whose spec was written, so that it does not bring back what a person removes.
 *
 * Pure: a text, one line for each of them. Where the names are too long for it, it has hashes
 * instead. */
#ifndef LINK_MEMO_H
#define LINK_MEMO_H

#include "base/buf.h"

struct link_agent;

/* Within the buffer's limit, whatever that is: if need be it says of all that they were
 * started.
 */
void link_memo_format(const struct link_agent *agents, struct hf_buf *memo);

/* Fills in what it says of these agents. */
void link_memo_parse(const char *memo, struct link_agent *agents);

#endif
