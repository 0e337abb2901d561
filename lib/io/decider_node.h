/* decider_node.h - an agentd's node as a decider. */
#ifndef HF_IO_DECIDER_NODE_H
#define HF_IO_DECIDER_NODE_H

#include "core/node.h"
#include "io/decider.h"

/* The node must outlive it. */
struct hf_decider hf_decider_node(struct hf_node *node);

#endif
