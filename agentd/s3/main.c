/* agentd-s3: stores, reads and removes objects for the link, which starts it when there is
 * something to do. It ends when the link closes its end of their socket, or is gone. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/s3/packet.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "io/s3.h"
#include "io/secret.h"

enum { SOCKET = STDIN_FILENO, NAMES_ROOM = 8192 };

/* Aligned, and large enough for every packet. */
union room {
    struct s3_packet packet;
    char bytes[S3_PACKET_MAX];
};

struct helper {
    union room setup; /* has the texts of the settings */
    union room request;
    struct hf_s3 *s3;
};

/* The link closes its end when it goes, or when nobody waits any more. */
static bool is_link_gone(void *arg)
{
    struct pollfd link = { .fd = SOCKET, .events = POLLRDHUP };

    (void)arg;
    return poll(&link, 1, 0) > 0 && (link.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static const char *text_of(const struct s3_packet *setup, enum s3_setup which)
{
    const char *text = s3_packet_get(setup, which);

    return text[0] != '\0' ? text : NULL;
}

static int set_up(struct helper *helper, struct hf_error *err)
{
    const struct s3_packet *setup = &helper->setup.packet;
    struct hf_s3_config cfg = {
        .settings = { .bucket = text_of(setup, S3_SETUP_BUCKET),
                      .endpoint = text_of(setup, S3_SETUP_ENDPOINT),
                      .region = s3_packet_get(setup, S3_SETUP_REGION),
                      .prefix = s3_packet_get(setup, S3_SETUP_PREFIX),
                      .addressing =
                          setup->err == HF_S3_VIRTUAL_HOST ? HF_S3_VIRTUAL_HOST : HF_S3_PATH,
                      .credentials_file = text_of(setup, S3_SETUP_CREDENTIALS_FILE),
                      .profile = s3_packet_get(setup, S3_SETUP_PROFILE),
                      .access_key_id = text_of(setup, S3_SETUP_ACCESS_KEY_ID),
                      .secret_access_key = text_of(setup, S3_SETUP_SECRET_ACCESS_KEY),
                      .session_token = text_of(setup, S3_SETUP_SESSION_TOKEN),
                      .cacert = text_of(setup, S3_SETUP_CACERT),
                      .timeout = setup->size },
        .is_over = is_link_gone,
    };

    return hf_s3_new(&cfg, &helper->s3, err);
}

static int answer(int err, const struct hf_error *why, const struct hf_s3_object *object)
{
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };
    const char *texts[] = { err != HF_OK ? why->text : "", object->sha256 };
    struct s3_packet head = { .type = S3_DONE, .count = 2, .err = err, .size = object->size };

    return s3_packet_make(&packet, &head, texts) == HF_OK &&
                   s3_packet_send(SOCKET, &packet, -1) == 0
               ? 0
               : -1;
}

/* Names, as many as one packet has room for. */
struct names {
    const char *texts[NAMES_ROOM / 2];
    char room[NAMES_ROOM];
    size_t used;
    uint32_t count;
};

static int send_names(struct names *names)
{
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };
    struct s3_packet head = { .type = S3_NAMES, .count = names->count };
    int rc = names->count == 0 ? HF_OK : s3_packet_make(&packet, &head, names->texts);

    if (rc == HF_OK && names->count > 0 && s3_packet_send(SOCKET, &packet, -1) != 0)
        rc = HF_ECANCELED;
    names->used = names->count = 0;
    return rc;
}

static int add_name(const char *name, void *arg)
{
    struct names *names = arg;
    size_t len = strlen(name) + 1;
    int rc = HF_OK;

    if (len >= S3_PACKET_TEXT || len == 1)
        return HF_OK; /* none of ours */
    if (names->used + len > sizeof names->room)
        rc = send_names(names);
    memcpy(names->room + names->used, name, len);
    names->texts[names->count++] = names->room + names->used;
    names->used += len;
    return rc;
}

static int list(struct hf_s3 *s3, const struct s3_packet *request, struct hf_error *err)
{
    const char *under = s3_packet_get(request, 0);
    struct names *names = hf_calloc(1, sizeof *names);
    int rc;

    if (names == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    rc = hf_s3_claim(s3, under, s3_packet_get(request, 1), err);
    /* Who may not do that may still list. */
    if (rc == HF_OK && hf_s3_abort_old(s3, under, request->size, err) == HF_ECANCELED)
        rc = HF_ECANCELED;
    if (rc == HF_OK)
        rc = hf_s3_list(s3, under, add_name, names, err);
    if (rc == HF_OK)
        rc = send_names(names);
    free(names);
    return rc;
}

/* Returns -1 when the link is gone. */
static int serve(struct helper *helper, int file)
{
    const struct s3_packet *request = &helper->request.packet;
    const char *name = s3_packet_get(request, 0);
    struct hf_s3_object object = { .size = request->size };
    struct hf_error err = { "" };
    int rc;

    if (request->type == S3_GET)
        (void)snprintf(object.sha256, sizeof object.sha256, "%s", s3_packet_get(request, 1));
    switch (request->type) {
    case S3_PUT:
        rc = file < 0 ? hf_error_set(&err, HF_EINVAL, "there is nothing to store")
                      : hf_s3_put(helper->s3, name, file, request->size, &object, &err);
        break;
    case S3_GET: rc = hf_s3_get(helper->s3, name, &object, file, &err); break;
    case S3_DROP: rc = hf_s3_drop(helper->s3, name, &err); break;
    case S3_LIST: rc = list(helper->s3, request, &err); break;
    default: rc = hf_error_set(&err, HF_EINVAL, "that is no request"); break;
    }
    return answer(rc, &err, &object);
}

/* The next request. 1: it is there; 0: none will come; -1: something else came. */
static int receive(union room *room, int *ret_file)
{
    ssize_t len = s3_packet_receive(SOCKET, room, sizeof *room, ret_file);

    if (len <= 0)
        return len == 0 ? 0 : -1;
    return s3_packet_check(room, (size_t)len) == NULL ? 1 : -1;
}

static int run(struct helper *helper)
{
    struct hf_error err = { "" };
    int file, got, rc;

    got = receive(&helper->setup, &file);
    if (got <= 0 || helper->setup.packet.type != S3_SETUP)
        return got;
    rc = set_up(helper, &err);
    while ((got = receive(&helper->request, &file)) > 0) {
        HF_CLEANUP_FD int given = file;

        if (rc != HF_OK) /* the link asks all the same, and is told */
            got = answer(rc, &err, &(struct hf_s3_object){ 0 });
        else
            got = serve(helper, given);
        if (got < 0)
            return 0;
    }
    return got;
}

int main(void)
{
    struct helper *helper;
    int status;

    hf_secret_protect();
    hf_stdio_fill();
    hf_alloc_tune();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fcntl(SOCKET, F_SETFL, 0); /* who answers waits until there is room for it */
    helper = hf_calloc(1, sizeof *helper);
    if (helper == NULL)
        return EXIT_FAILURE;
    status = run(helper);
    if (status < 0)
        (void)fprintf(stderr, "agentd-s3: is started by agentd, not by hand\n");
    hf_s3_free(helper->s3);
    free(helper);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
