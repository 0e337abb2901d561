#include "agentd/link/link.h"
#include "base/log.h"

void link_certificate_on_renewed(int err, const char *message, void *arg)
{
    (void)arg;
    if (err == HF_OK)
        HF_LOG_INFO("certificate_renewed",
                    HF_STR("next", "every new connection to etcd shows it"));
    else
        HF_LOG_WARN("certificate_not_renewed", HF_STR("why", message),
                    HF_STR("next", "the old one stays in use; looks again every 30 s"));
}
