/* What `holdfast doctor` finds: a real etcd that is nearly full, slow to elect, without a
 * leader among the controllers; and one with certificates and users. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/admin.h"
#include "support/etcd.h"
#include "support/pki.h"
#include "support/program.h"
#include "support/suite.h"

static struct hft_etcd server;
static struct hft_output report;

static char password[HFT_PATH_MAX + 32]; /* the file with root's */

static void write_password(const char *dir)
{
    FILE *file;

    (void)snprintf(password, sizeof password, "%s/password", dir);
    file = fopen(password, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("root\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void expect(const char *line)
{
    ck_assert_msg(strstr(report.out, line) != NULL, "no '%s' in:\n%s%s", line, report.out,
                  report.err);
}

static void expect_no(const char *line)
{
    ck_assert_msg(strstr(report.out, line) == NULL, "'%s' in:\n%s", line, report.out);
}

START_TEST(a_plain_etcd_is_examined)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_cli(&report, server.endpoint, "doctor", NULL);
    ck_assert_int_eq(report.status, 1); /* nobody leads */
    expect("ok      etcd 3.");
    expect("warning etcd before 3.4.31: a leader whose disk stood still revokes every lease");
    expect("ok      all 1 members of etcd agree");
    expect("ok      the shortest lease that etcd grants is 2 s");
    expect("ok      0% of the quota of 2048 MiB are used");
    expect(" reach etcd's disk within ");
    expect("ok      the clock of etcd's host agrees with this one");
    expect("ok      authentication is off, at an address of this machine alone");
    expect("ok      the way to etcd is not encrypted, and does not leave this machine");
    expect("trouble nobody leads");
    hft_output_done(&report);
    hft_etcd_done(&server);
}
END_TEST

START_TEST(a_full_and_slow_one_is_told_of)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true,
                                                        .quota_bytes = 32 << 20,
                                                        .heartbeat_ms = 1600,
                                                        .election_ms = 8000 });
    (void)hft_etcd_put_many(&server, "fill/", 16, 1 << 20);
    hft_cli(&report, server.endpoint, "doctor", NULL);
    expect("warning the shortest lease that etcd grants is 12 s");
    expect("% of the quota of 32 MiB are used: when it is full, etcd refuses every write");
    expect_no("raises an alarm");
    hft_output_done(&report);
    hft_etcd_fill(&server);
    hft_cli(&report, server.endpoint, "doctor", NULL);
    ck_assert_int_eq(report.status, 1);
    expect("trouble etcd raises an alarm");
    expect("trouble etcd grants no lease");
    hft_output_done(&report);
    hft_etcd_done(&server);
}
END_TEST

START_TEST(one_that_is_corrupt_is_told_of)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_etcd_raise_corrupt(&server);
    hft_cli(&report, server.endpoint, "doctor", NULL);
    ck_assert_int_ne(report.status, 0);
    expect("trouble members of etcd have different data (its alarm CORRUPT)");
    hft_output_done(&report);
    hft_etcd_done(&server);
}
END_TEST

static const char *const FLAGS[] = { "--bcrypt-cost=4", NULL };

START_TEST(users_are_seen)
{
    hft_etcd_start(&server,
                   &(struct hft_etcd_options){ .no_fsync = true, .extra_flags = FLAGS });
    hft_etcd_auth_enable(&server);
    hft_cli(&report, server.endpoint, "doctor", NULL);
    ck_assert_int_eq(report.status, 6); /* whoever has no name may not look at the fleet */
    hft_output_done(&report);
    write_password(server.dir.path);
    hft_cli(&report, server.endpoint, "doctor", "--user", "root", "--password-file", password,
            NULL);
    expect("ok      authentication is on");
    hft_output_done(&report);
    hft_etcd_done(&server);
}
END_TEST

START_TEST(certificates_are_seen)
{
    struct hft_pki pki;
    struct hft_cert cert;
    struct hft_etcd_tls tls;

    hft_pki_init(&pki);
    hft_pki_issue(&pki, "root", 3600, &cert);
    tls = hft_pki_tls(&pki, &cert);
    hft_etcd_start(&server, &(struct hft_etcd_options){
                                .no_fsync = true, .tls = &tls, .extra_flags = FLAGS });
    hft_etcd_auth_enable(&server);
    write_password(pki.dir.path);
    hft_cli(&report, server.endpoint, "doctor", "--cacert", pki.ca, "--cert", cert.cert,
            "--key", cert.key, "--user", "root", "--password-file", password, NULL);
    expect("ok      authentication is on");
    expect("warning the way to etcd is encrypted, with a certificate of our own; etcd's "
           "certificate ends on 2"); /* tomorrow */
    expect("warning our own certificate, ");
    expect("of the quota of 2048 MiB");
    hft_output_done(&report);
    hft_pki_issue(&pki, "root", 365L * 24 * 3600, &cert);
    hft_cli(&report, server.endpoint, "doctor", "--cacert", pki.ca, "--cert", cert.cert,
            "--key", cert.key, "--user", "root", "--password-file", password, NULL);
    expect("ok      our own certificate, ");
    hft_output_done(&report);
    hft_pki_issue(&pki, "root", -3600, &cert);
    hft_cli(&report, server.endpoint, "doctor", "--cacert", pki.ca, "--cert", cert.cert,
            "--key", cert.key, NULL);
    ck_assert_int_eq(report.status, 5);
    expect("trouble our own certificate, ");
    expect(", has expired on 2");
    hft_output_done(&report);
    hft_etcd_done(&server);
    hft_pki_done(&pki);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, a_plain_etcd_is_examined);
    tcase_add_test(stories, a_full_and_slow_one_is_told_of);
    tcase_add_test(stories, one_that_is_corrupt_is_told_of);
    tcase_add_test(stories, users_are_seen);
    tcase_add_test(stories, certificates_are_seen);
    return hft_suite_run("doctor", stories, NULL);
}
