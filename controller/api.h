/* api.h - what a controller serves over HTTP: /healthz, /readyz and /metrics. */
#ifndef CTL_API_H
#define CTL_API_H

#include "controller/alert.h"
#include "controller/observe.h"
#include "etcd/client.h"
#include "io/httpd.h"
#include "io/runner.h"

/* What it shows; all of it outlives the server. */
struct ctl_api {
    const struct ctl_observer *observer;
    const struct hf_etcd *etcd;
    const struct ctl_alerts *alerts;
    const struct hf_runner *runner; /* NULL: it does not stand yet */
    uint64_t loop_stalls;           /* times that this loop stood still */
    hf_ms longest_stall;
};

/* Answers one request; for hf_httpd_config.on_request, with the struct as its argument. */
void ctl_api_serve(struct hf_httpd_request *request, void *arg);

#endif
