/* task.h - a task out of the text that agentd sent. Internal to the client; pure but for
 * memory.
 */
#ifndef HF_CLIENT_TASK_H
#define HF_CLIENT_TASK_H

#include "client/private.h"

HF_CLIENT_LOCAL int hf_client_task_parse(const char *text, size_t len,
                                         struct hf_client_task *ret_task,
                                         struct hf_error *err) HF_MUST_CHECK;

#endif
