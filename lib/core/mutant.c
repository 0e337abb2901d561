#include "core/mutant.h"

#include <assert.h>

static_assert(HF_MUTANTS <= 64, "a set of mutants is one word");

const char *hf_mutant_name(enum hf_mutant mutant)
{
    switch (mutant) {
#define X(name, text)                                                                          \
    case HF_MUTANT_##name: return #name;
        HF_MUTANT_RULE_MAP(X)
        HF_MUTANT_NODE_MAP(X)
        HF_MUTANT_LEASE_MAP(X)
        HF_MUTANT_NUMBER_MAP(X)
#undef X
    case HF_MUTANTS: break;
    }
    return "?";
}

const char *hf_mutant_text(enum hf_mutant mutant)
{
    switch (mutant) {
#define X(name, text)                                                                          \
    case HF_MUTANT_##name: return text;
        HF_MUTANT_RULE_MAP(X)
        HF_MUTANT_NODE_MAP(X)
        HF_MUTANT_LEASE_MAP(X)
        HF_MUTANT_NUMBER_MAP(X)
#undef X
    case HF_MUTANTS: break;
    }
    return "?";
}
