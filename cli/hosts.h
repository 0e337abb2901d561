/* hosts.h - what a person does to the record of a host. */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

#include "cli/cli.h"
#include "holdfast/v1/records.pb-c.h"

struct cli_host_change {
    void (*change)(Holdfast__V1__Host *host);
    bool when_gone; /* only while the host has no lease */
    const char *what, *then;
};

/* HF_ENOENT when there is no such host, HF_ECONFLICT when it must be gone and is not. */
int cli_change_host(struct cli *cli, const struct cli_host_change *change) HF_MUST_CHECK;

#endif
