#include "io/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* The leak checker of the address sanitizer looks at its own process as a debugger would. */
#ifdef __SANITIZE_ADDRESS__
enum { MAY_HIDE = 0 };
#else
enum { MAY_HIDE = 1 };
#endif

void hf_secret_protect(void)
{
    const char *wish = getenv("HOLDFAST_DUMPABLE");
    struct rlimit core;

    if (wish != NULL && strcmp(wish, "1") == 0)
        return;
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &core);
    }
    if (MAY_HIDE)
        (void)prctl(PR_SET_DUMPABLE, 0);
}
