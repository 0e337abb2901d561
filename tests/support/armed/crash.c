/* What a crash point does in the programs that tests arm; the others have io/crash.c. */
#include "io/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static const char *const STAGES[] = { "before:", "sent:", "done:" };

static const struct {
    const char *name;
    int signal;
} VARIABLES[] = { { "HOLDFAST_CRASH_AT", SIGKILL }, { "HOLDFAST_STOP_AT", SIGSTOP } };

/* What a variable says, taken apart in its own copy. */
struct wish {
    char text[512];
    const char *key;
    uint64_t number;
    const char *file; /* NULL: none */
};

static bool parse(const char *name, enum hf_crash_stage stage, struct wish *wish)
{
    const char *value = getenv(name);
    size_t len = strlen(STAGES[stage]);
    char *mark;

    if (value == NULL || strlen(value) >= sizeof wish->text ||
        strncmp(value, STAGES[stage], len) != 0)
        return false;
    memcpy(wish->text, value, strlen(value) + 1);
    wish->key = wish->text + len;
    mark = strchr(wish->text, '@');
    if (mark != NULL)
        *mark++ = '\0';
    wish->file = mark;
    wish->number = 1;
    mark = strchr(wish->text, '#');
    if (mark == NULL)
        return true;
    *mark++ = '\0';
    return hf_parse_u64(mark, 1, UINT32_MAX, &wish->number) == HF_OK;
}

static bool changes(const struct hf_plan *plan, const char *key)
{
    for (size_t i = 0; i < plan->write_count; i++) {
        /* /holdfast/<namespace>/ */
        const char *at = strchr(plan->writes[i].key + 1, '/');

        at = at != NULL ? strchr(at + 1, '/') : NULL;
        if (at != NULL && strncmp(at + 1, key, strlen(key)) == 0)
            return true;
    }
    return false;
}

void hf_crash_point(struct hf_crash *crash, enum hf_crash_stage stage,
                    const struct hf_plan *plan)
{
    struct wish wish;

    for (size_t i = 0; i < sizeof VARIABLES / sizeof VARIABLES[0]; i++) {
        if (!parse(VARIABLES[i].name, stage, &wish) || !changes(plan, wish.key) ||
            ++crash->met != wish.number)
            continue;
        if (wish.file == NULL ||
            open(wish.file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
            (void)kill(getpid(), VARIABLES[i].signal);
    }
}
