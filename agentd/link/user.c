#include "agentd/link/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

static int find_groups(const char *name, struct link_user *user, struct hf_error *err)
{
    gid_t groups[AGENTD_GROUPS_MAX];
    int count = AGENTD_GROUPS_MAX;

    if (getgrouplist(name, user->gid, groups, &count) < 0)
        return hf_error_set(err, HF_ELIMIT, "user: %s is in %d groups, at most %d are possible",
                            name, count, AGENTD_GROUPS_MAX);
    for (int i = 0; i < count; i++)
        user->groups[i] = groups[i];
    user->group_count = (uint32_t)count;
    return HF_OK;
}

int link_user_find(const char *name, struct link_user *ret_user, struct hf_error *err)
{
    const struct passwd *account = getpwnam(name);
    struct link_user user = { 0 };
    int rc;

    if (account == NULL)
        return hf_error_set(err, HF_ENOENT, "user: this machine has no %s", name);
    user.uid = account->pw_uid;
    user.gid = account->pw_gid;
    (void)snprintf(user.home, sizeof user.home, "%s", account->pw_dir);
    if (user.uid != geteuid() && geteuid() != 0)
        return hf_error_set(err, HF_EDENIED, "user: only root can start agents as %s", name);
    rc = find_groups(name, &user, err);
    if (rc == HF_OK)
        *ret_user = user;
    return rc;
}
