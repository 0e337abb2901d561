/* decider_engine.h - the controller's engine as a decider. */
#ifndef HF_IO_DECIDER_ENGINE_H
#define HF_IO_DECIDER_ENGINE_H

#include "core/engine.h"
#include "io/decider.h"

/* Follows the whole namespace. The engine must outlive it. */
struct hf_decider hf_decider_engine(struct hf_engine *engine);

#endif
