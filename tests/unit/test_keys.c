#include <check.h>
#include <stdio.h>
#include <string.h>

#include "schema/keys.h"
#include "support/suite.h"

#define NS       "default"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct hf_bytes bytes_of(const char *text)
{
    return (struct hf_bytes){ text, strlen(text) };
}

/* A small generator of our own, so that a failure is the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void random_name(uint64_t *state, char name[HF_NAME_SIZE])
{
    static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    uint64_t word = next_random(state);
    size_t len = word % 4 == 0 ? 1 + word / 4 % HF_NAME_MAX : 1 + word / 4 % 12;

    for (size_t i = 0; i < len; i++)
        name[i] = inner[next_random(state) % (i == 0 ? 36 : 39)];
    name[len] = '\0';
}

static void assert_same(const struct hf_key *a, const struct hf_key *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_pstr_eq(a->name, b->name);
    ck_assert_pstr_eq(a->sub, b->sub);
    ck_assert_int_eq(a->seq, b->seq);
}

/* Every kind once, spelled out: the layout is an interface and changes only on purpose. These
 * are the examples of docs/keys.md. */
static const struct {
    const char *text;
    struct hf_key key;
} LAYOUT[HF_KEY_KINDS] = {
    { "/holdfast/default/meta", { .kind = HF_KEY_META } },
    { "/holdfast/default/hosts/node-7/record",
      { .kind = HF_KEY_HOST_RECORD, .name = "node-7" } },
    { "/holdfast/default/hosts/node-7/live", { .kind = HF_KEY_HOST_LIVE, .name = "node-7" } },
    { "/holdfast/default/agents/writer-3/spec",
      { .kind = HF_KEY_AGENT_SPEC, .name = "writer-3" } },
    { "/holdfast/default/agents/writer-3/live",
      { .kind = HF_KEY_AGENT_LIVE, .name = "writer-3" } },
    { "/holdfast/default/agents/writer-3/report",
      { .kind = HF_KEY_AGENT_REPORT, .name = "writer-3" } },
    { "/holdfast/default/agents/writer-3/exit",
      { .kind = HF_KEY_AGENT_EXIT, .name = "writer-3" } },
    { "/holdfast/default/wanted/writer-3", { .kind = HF_KEY_WANTED, .name = "writer-3" } },
    { "/holdfast/default/health/writer-3", { .kind = HF_KEY_HEALTH, .name = "writer-3" } },
    { "/holdfast/default/tasks/report-2026-01-31",
      { .kind = HF_KEY_TASK, .name = "report-2026-01-31" } },
    { "/holdfast/default/pending/writer/report-2026-01-31",
      { .kind = HF_KEY_PENDING, .name = "writer", .sub = "report-2026-01-31" } },
    { "/holdfast/default/checkpoints/report-2026-01-31/0000000000000000007",
      { .kind = HF_KEY_CHECKPOINT, .name = "report-2026-01-31", .seq = 7 } },
    { "/holdfast/default/commands/node-9/writer-3",
      { .kind = HF_KEY_COMMAND, .name = "node-9", .sub = "writer-3" } },
    { "/holdfast/default/recoveries/report-2026-01-31",
      { .kind = HF_KEY_RECOVERY, .name = "report-2026-01-31" } },
    { "/holdfast/default/controller/leader", { .kind = HF_KEY_LEADER } },
    { "/holdfast/default/controller/clock", { .kind = HF_KEY_CLOCK } },
    { "/holdfast/default/events/0000000000000000342", { .kind = HF_KEY_EVENT, .seq = 342 } },
    { "/holdfast-data/default/tasks/report-2026-01-31/payload",
      { .kind = HF_KEY_TASK_PAYLOAD, .name = "report-2026-01-31" } },
    { "/holdfast-data/default/tasks/report-2026-01-31/result",
      { .kind = HF_KEY_TASK_RESULT, .name = "report-2026-01-31" } },
    { "/holdfast-data/default/checkpoints/report-2026-01-31/0000000000000000007",
      { .kind = HF_KEY_CHECKPOINT_BODY, .name = "report-2026-01-31", .seq = 7 } },
};

START_TEST(layout_is_as_documented)
{
    char text[HF_KEY_SIZE];
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    ck_assert_int_eq(LAYOUT[_i].key.kind, _i);
    ck_assert_int_eq(hf_key_format(NS, &LAYOUT[_i].key, text, NULL), strlen(LAYOUT[_i].text));
    ck_assert_str_eq(text, LAYOUT[_i].text);
    ck_assert_int_eq(hf_key_parse(NS, bytes_of(text), scratch, &key, NULL), HF_OK);
    assert_same(&key, &LAYOUT[_i].key);
}
END_TEST

START_TEST(random_keys_survive_the_round_trip)
{
    uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    bool has_sub = _i == HF_KEY_PENDING || _i == HF_KEY_COMMAND;
    bool has_name = LAYOUT[_i].key.name != NULL;
    bool has_seq = LAYOUT[_i].key.seq != 0;

    for (int round = 0; round < 500; round++) {
        char ns[HF_NAME_SIZE], name[HF_NAME_SIZE], sub[HF_NAME_SIZE];
        char text[HF_KEY_SIZE], scratch[HF_KEY_SIZE];
        struct hf_key got;

        random_name(&state, ns);
        random_name(&state, name);
        random_name(&state, sub);
        struct hf_key want = {
            .kind = (enum hf_key_kind)_i,
            .name = has_name ? name : NULL,
            .sub = has_sub ? sub : NULL,
            .seq = has_seq ? (int64_t)(next_random(&state) >> (1 + round % 60)) + 1 : 0,
        };
        int len = hf_key_format(ns, &want, text, NULL);
        ck_assert_int_gt(len, 0);
        ck_assert_uint_eq(strlen(text), (size_t)len);
        ck_assert_int_eq(hf_key_parse(ns, bytes_of(text), scratch, &got, NULL), HF_OK);
        assert_same(&got, &want);
    }
}
END_TEST

/* Replaces, removes or inserts one byte; returns the new length. */
static size_t damage(char *text, size_t len, uint64_t *state)
{
    size_t at = next_random(state) % len;

    switch (next_random(state) % 3) {
    case 0: memmove(text + at, text + at + 1, len - at - 1); return len - 1;
    case 1:
        memmove(text + at + 1, text + at, len - at);
        len++;
        break;
    default: break;
    }
    uint64_t word = next_random(state);
    text[at] = "/a0-"[word >> 8 & 3];
    if (word % 4 == 0)
        text[at] = (char)(word >> 16);
    return len;
}

START_TEST(a_damaged_key_is_refused_or_is_another_key)
{
    uint64_t state = 88172645463325252u + (uint64_t)_i;
    int parsed = 0;

    for (int round = 0; round < 5000; round++) {
        char damaged[HF_KEY_SIZE], scratch[HF_KEY_SIZE], again[HF_KEY_SIZE];
        struct hf_key key;

        memcpy(damaged, LAYOUT[_i].text, strlen(LAYOUT[_i].text) + 1);
        size_t len = damage(damaged, strlen(damaged), &state);
        if (hf_key_parse(NS, (struct hf_bytes){ damaged, len }, scratch, &key, NULL) != HF_OK)
            continue;
        parsed++;
        ck_assert_int_eq(hf_key_format(NS, &key, again, NULL), (int)len);
        ck_assert_mem_eq(again, damaged, len);
    }
    ck_assert_int_lt(parsed, 5000);
}
END_TEST

START_TEST(every_beginning_of_a_key_is_refused_or_is_another_key)
{
    struct hf_bytes text = bytes_of(LAYOUT[_i].text);
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    while (text.len-- > 0)
        if (hf_key_parse(NS, text, scratch, &key, NULL) == HF_OK)
            ck_assert(key.kind == LAYOUT[_i].key.kind && key.seq == 0);
}
END_TEST

START_TEST(a_key_of_another_namespace_is_refused)
{
    const char *others[] = { "defaul", "default2", "d", "other" };
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    struct hf_error err;

    for (size_t i = 0; i < COUNT(others); i++) {
        ck_assert_int_eq(
            hf_key_parse(others[i], bytes_of(LAYOUT[_i].text), scratch, &key, &err), HF_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "another namespace"));
    }
}
END_TEST

#define P "/holdfast/default/"

static const struct {
    const char *text;
    const char *complaint;
} INVALID[] = {
    { "", "byte 1: the key ends too early" },
    { "/", "byte 2: the key ends too early" },
    { "holdfast/default/meta", "byte 1: no kind of key" },
    { "//holdfast/default/meta", "byte 2: no kind of key" },
    { "/holdfast//meta", "byte 11: another namespace" },
    { "/holdfast/default", "byte 18: the key ends too early" },
    { P, "byte 19: the key ends too early" },
    { P "/meta", "byte 19: no kind of key" },
    { P "meta/", "byte 23: the key should end here" },
    { P "metadata", "byte 23: the key should end here" },
    { P "met", "byte 22: the key ends too early" },
    { P "Meta", "byte 19: no kind of key" },
    { P "unknown/a", "byte 19: no kind of key" },
    { P "hosts", "byte 24: the key ends too early" },
    { P "hosts/", "byte 25: a name must not be empty" },
    { P "hosts//live", "byte 25: a name must not be empty" },
    { P "hosts/h", "byte 26: the key ends too early" },
    { P "hosts/h/", "byte 27: the key ends too early" },
    { P "hosts/h/lives", "byte 31: the key should end here" },
    { P "hosts/h/live/", "byte 31: the key should end here" },
    { P "hosts/h/spec", "byte 27: no kind of key" },
    { P "hosts/H/live", "byte 25: a name begins with" },
    { P "hosts/hoSt/live", "byte 27: a name consists of" },
    { P "hosts/../live", "byte 25: a name begins with" },
    { P "hosts/h t/live", "byte 26: a name consists of" },
    { P "hosts/h\xff/live", "byte 26: a name consists of" },
    { P "agents/a/record", "byte 30: no kind of key" },
    { P "agents/a/live ", "byte 32: the key should end here" },
    { P "wanted/", "byte 26: a name must not be empty" },
    { P "wanted/a/b", "byte 27: the key should end here" },
    { P "tasks/t/", "byte 26: the key should end here" },
    { P "tasks/t/payload", "byte 26: the key should end here" },
    { P "pending/r", "byte 28: the key ends too early" },
    { P "pending/r/", "byte 29: a name must not be empty" },
    { P "pending//t", "byte 27: a name must not be empty" },
    { P "pending/r/t/x", "byte 30: the key should end here" },
    { P "checkpoints/t/7", "byte 33: a number in a key has 19 digits" },
    { P "checkpoints/t/", "byte 33: a number in a key has 19 digits" },
    { P "checkpoints/t/00000000000000000007", "byte 33: a number in a key has 19 digits" },
    { P "checkpoints/t/000000000000000000x", "byte 51: not a digit" },
    { P "checkpoints/t/-000000000000000001", "byte 33: not a digit" },
    { P "checkpoints/t/ 000000000000000001", "byte 33: not a digit" },
    { P "checkpoints/t/0000000000000000000", "byte 33: a number in a key is between" },
    { P "checkpoints/t/9223372036854775808", "byte 33: a number in a key is between" },
    { P "checkpoints/t/9999999999999999999", "byte 33: a number in a key is between" },
    { P "checkpoints/t/0000000000000000007/", "byte 52: the key should end here" },
    { P "checkpoints//0000000000000000007", "byte 31: a name must not be empty" },
    { P "controller/clocks", "byte 35: the key should end here" },
    { P "events/1", "byte 26: a number in a key has 19 digits" },
    { "/holdfast-data/default/tasks/t", "byte 31: the key ends too early" },
    { "/holdfast-data/default/tasks/t/", "byte 32: the key ends too early" },
    { "/holdfast-data/default/tasks/t/input", "byte 32: no kind of key" },
    { "/holdfast-data/default/meta", "byte 24: no kind of key" },
    { "/holdfast-dat/default/meta", "byte 14: no kind of key" },
};

START_TEST(malformed_keys_are_refused_and_the_place_is_named)
{
    struct hf_key key = { .kind = HF_KEY_CLOCK, .seq = 42 };
    char scratch[HF_KEY_SIZE];
    struct hf_error err;
    struct hf_bytes text = bytes_of(INVALID[_i].text);

    ck_assert_int_eq(hf_key_parse(NS, text, scratch, &key, &err), HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, INVALID[_i].complaint));
    ck_assert_int_eq(key.kind, HF_KEY_CLOCK);
    ck_assert_int_eq(key.seq, 42);
}
END_TEST

/* A C string would hide these: the length counts, not the first NUL. */
START_TEST(nul_bytes_are_refused_wherever_they_stand)
{
    static const char valid[] = P "pending/writer/t1";
    char text[sizeof valid];
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    for (size_t at = 0; at < sizeof text; at++) {
        memcpy(text, valid, sizeof text);
        text[at] = '\0';
        struct hf_bytes whole = { text, sizeof text };
        ck_assert_int_eq(hf_key_parse(NS, whole, scratch, &key, NULL), HF_EINVAL);
    }
}
END_TEST

START_TEST(too_long_names_and_keys_are_refused)
{
    char text[4096] = P "wanted/";
    size_t head = strlen(text);
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    struct hf_error err;

    memset(text + head, 'x', sizeof text - head);
    struct hf_bytes whole = { text, head + HF_NAME_MAX };
    ck_assert_int_eq(hf_key_parse(NS, whole, scratch, &key, &err), HF_OK);
    whole.len++;
    ck_assert_int_eq(hf_key_parse(NS, whole, scratch, &key, &err), HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "at most 253 characters"));
    whole.len = HF_KEY_SIZE - 1;
    ck_assert_int_eq(hf_key_parse(NS, whole, scratch, &key, &err), HF_EINVAL);
    whole.len = sizeof text;
    ck_assert_int_eq(hf_key_parse(NS, whole, scratch, &key, &err), HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "4096 bytes are too many"));
}
END_TEST

START_TEST(the_longest_key_fits)
{
    char name[HF_NAME_SIZE] = "";
    char text[HF_KEY_SIZE];
    char scratch[HF_KEY_SIZE];
    struct hf_key got;

    memset(name, '9', HF_NAME_MAX);
    struct hf_key key = { .kind = HF_KEY_COMMAND, .name = name, .sub = name };
    int len = hf_key_format(name, &key, text, NULL);
    ck_assert_int_eq(len, 21 + 3 * HF_NAME_MAX);
    ck_assert_int_eq(hf_key_parse(name, bytes_of(text), scratch, &got, NULL), HF_OK);
    assert_same(&got, &key);
}
END_TEST

static const struct {
    const char *ns;
    struct hf_key key;
    const char *complaint;
} UNBUILDABLE[] = {
    { NULL, { .kind = HF_KEY_META }, "namespace is missing" },
    { "", { .kind = HF_KEY_META }, "namespace, character 1" },
    { "a/b", { .kind = HF_KEY_META }, "namespace, character 2" },
    { "Prod", { .kind = HF_KEY_META }, "namespace, character 1" },
    { NS, { .kind = HF_KEY_TASK }, "name in a key is missing" },
    { NS, { .kind = HF_KEY_TASK, .name = "" }, "name in a key, character 1" },
    { NS, { .kind = HF_KEY_TASK, .name = "t/1" }, "name in a key, character 2" },
    { NS, { .kind = HF_KEY_TASK, .name = "T" }, "name in a key, character 1" },
    { NS, { .kind = HF_KEY_PENDING, .name = "r" }, "name in a key is missing" },
    { NS, { .kind = HF_KEY_PENDING, .sub = "t" }, "name in a key is missing" },
    { NS, { .kind = HF_KEY_PENDING, .name = "r", .sub = "t " }, "name in a key, character 2" },
    { NS, { .kind = HF_KEY_EVENT }, "number 0 is below 1" },
    { NS, { .kind = HF_KEY_EVENT, .seq = -1 }, "number -1 is below 1" },
    { NS, { .kind = HF_KEY_CHECKPOINT, .seq = 1 }, "name in a key is missing" },
};

START_TEST(format_refuses_what_would_not_parse)
{
    char text[HF_KEY_SIZE] = "untouched";
    struct hf_error err;

    ck_assert_int_eq(hf_key_format(UNBUILDABLE[_i].ns, &UNBUILDABLE[_i].key, text, &err),
                     HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, UNBUILDABLE[_i].complaint));
    ck_assert_str_eq(text, "untouched");
}
END_TEST

START_TEST(parse_refuses_a_malformed_namespace)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    ck_assert_int_eq(hf_key_parse("a/b", bytes_of("/holdfast/a/b/meta"), scratch, &key, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hf_key_parse("", bytes_of("/holdfast//meta"), scratch, &key, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hf_key_parse(NULL, bytes_of("/holdfast/a/meta"), scratch, &key, NULL),
                     HF_EINVAL);
}
END_TEST

START_TEST(numbered_keys_sort_by_number)
{
    const int64_t rising[] = { 1, 2, 9, 10, 99, 100, 4294967296, INT64_MAX - 1, INT64_MAX };
    char before[HF_KEY_SIZE] = "";

    for (size_t i = 0; i < COUNT(rising); i++) {
        char text[HF_KEY_SIZE];
        struct hf_key key = { .kind = HF_KEY_EVENT, .seq = rising[i] };

        ck_assert_int_gt(hf_key_format(NS, &key, text, NULL), 0);
        ck_assert_str_lt(before, text);
        memcpy(before, text, sizeof text);
    }
}
END_TEST

static const struct {
    const char *prefix;
    const char *name;
} SCOPES[HF_KEY_IN_SCOPES] = {
    [HF_KEY_IN_NAMESPACE] = { P, NULL },
    [HF_KEY_IN_HOSTS] = { P "hosts/", NULL },
    [HF_KEY_IN_HOST] = { P "hosts/node-7/", "node-7" },
    [HF_KEY_IN_AGENTS] = { P "agents/", NULL },
    [HF_KEY_IN_AGENT] = { P "agents/writer-3/", "writer-3" },
    [HF_KEY_IN_WANTED] = { P "wanted/", NULL },
    [HF_KEY_IN_HEALTH] = { P "health/", NULL },
    [HF_KEY_IN_TASKS] = { P "tasks/", NULL },
    [HF_KEY_IN_PENDING] = { P "pending/", NULL },
    [HF_KEY_IN_PENDING_ROLE] = { P "pending/writer/", "writer" },
    [HF_KEY_IN_CHECKPOINTS] = { P "checkpoints/", NULL },
    [HF_KEY_IN_CHECKPOINTS_TASK] = { P "checkpoints/report-2026-01-31/", "report-2026-01-31" },
    [HF_KEY_IN_COMMANDS] = { P "commands/", NULL },
    [HF_KEY_IN_COMMANDS_HOST] = { P "commands/node-9/", "node-9" },
    [HF_KEY_IN_RECOVERIES] = { P "recoveries/", NULL },
    [HF_KEY_IN_CONTROLLER] = { P "controller/", NULL },
    [HF_KEY_IN_EVENTS] = { P "events/", NULL },
    [HF_KEY_IN_DATA] = { "/holdfast-data/default/", NULL },
    [HF_KEY_IN_DATA_TASK] = { "/holdfast-data/default/tasks/report-2026-01-31/",
                              "report-2026-01-31" },
    [HF_KEY_IN_DATA_CHECKPOINTS] = { "/holdfast-data/default/checkpoints/report-2026-01-31/",
                                     "report-2026-01-31" },
};

START_TEST(scopes_are_prefixes_of_keys_and_end_in_a_slash)
{
    const char *prefix = SCOPES[_i].prefix;
    size_t len = strlen(prefix);
    char text[HF_KEY_SIZE];
    int members = 0;

    ck_assert_int_eq(hf_key_prefix(NS, (enum hf_key_scope)_i, SCOPES[_i].name, text, NULL),
                     (int)len);
    ck_assert_str_eq(text, prefix);
    ck_assert_int_eq(text[len - 1], '/');
    for (size_t i = 0; i < COUNT(LAYOUT); i++)
        members += strncmp(LAYOUT[i].text, prefix, len) == 0;
    ck_assert_int_gt(members, 0);
}
END_TEST

START_TEST(a_narrowed_scope_needs_a_good_name)
{
    const char *bad[] = { NULL, "", "a/b", "A", ".." };
    char text[HF_KEY_SIZE] = "untouched";

    if (SCOPES[_i].name != NULL)
        for (size_t i = 0; i < COUNT(bad); i++)
            ck_assert_int_eq(hf_key_prefix(NS, (enum hf_key_scope)_i, bad[i], text, NULL),
                             HF_EINVAL);
    ck_assert_int_eq(hf_key_prefix("a b", (enum hf_key_scope)_i, "x", text, NULL), HF_EINVAL);
    ck_assert_str_eq(text, "untouched");
}
END_TEST

START_TEST(bodies_stay_outside_of_the_mirrored_prefix)
{
    for (size_t i = 0; i < COUNT(LAYOUT); i++) {
        bool mirrored = strncmp(LAYOUT[i].text, P, strlen(P)) == 0;

        ck_assert_int_eq(mirrored, hf_key_get_record(LAYOUT[i].key.kind) != NULL);
    }
}
END_TEST

START_TEST(only_presence_hangs_on_a_lease)
{
    for (size_t i = 0; i < COUNT(LAYOUT); i++) {
        enum hf_key_kind kind = LAYOUT[i].key.kind;
        bool presence =
            kind == HF_KEY_HOST_LIVE || kind == HF_KEY_AGENT_LIVE || kind == HF_KEY_LEADER;

        ck_assert_int_eq(hf_key_is_ephemeral(kind), presence);
    }
}
END_TEST

static size_t read_file(const char *path, char *ret_text, size_t size)
{
    FILE *file = fopen(path, "re");

    ck_assert_msg(file != NULL, "%s is missing", path);
    size_t len = fread(ret_text, 1, size - 1, file);
    ck_assert(feof(file) && fclose(file) == 0);
    ret_text[len] = '\0';
    return len;
}

/* The page shows an example of each key and, under it, the fixture of its record. */
START_TEST(documentation_shows_the_key_and_its_fixture)
{
    const ProtobufCMessageDescriptor *record = hf_key_get_record((enum hf_key_kind)_i);
    static char page[256 * 1024];
    char want[8192];
    char path[4096];

    (void)read_file(HOLDFAST_SOURCE_DIR "/docs/keys.md", page, sizeof page);
    (void)snprintf(want, sizeof want, "\n    %s\n", LAYOUT[_i].text);
    const char *shown = strstr(page, want);
    ck_assert_msg(shown != NULL, "docs/keys.md does not show %s", LAYOUT[_i].text);
    if (record == NULL)
        return;

    (void)snprintf(path, sizeof path, "%s/tests/fixtures/%s.json", HOLDFAST_SOURCE_DIR,
                   record->short_name);
    (void)read_file(path, want, sizeof want);
    ck_assert_msg(strstr(shown, want) != NULL, "docs/keys.md does not show %s as it is", path);
}
END_TEST

static TCase *each_kind(void)
{
    TCase *t = tcase_create("each kind");
    int kinds = COUNT(LAYOUT);

    tcase_add_loop_test(t, layout_is_as_documented, 0, kinds);
    tcase_add_loop_test(t, random_keys_survive_the_round_trip, 0, kinds);
    tcase_add_loop_test(t, a_damaged_key_is_refused_or_is_another_key, 0, kinds);
    tcase_add_loop_test(t, every_beginning_of_a_key_is_refused_or_is_another_key, 0, kinds);
    tcase_add_loop_test(t, a_key_of_another_namespace_is_refused, 0, kinds);
    tcase_add_loop_test(t, documentation_shows_the_key_and_its_fixture, 0, kinds);
    return t;
}

static TCase *malformed(void)
{
    TCase *t = tcase_create("malformed");

    tcase_add_loop_test(t, malformed_keys_are_refused_and_the_place_is_named, 0,
                        COUNT(INVALID));
    tcase_add_loop_test(t, format_refuses_what_would_not_parse, 0, COUNT(UNBUILDABLE));
    tcase_add_test(t, parse_refuses_a_malformed_namespace);
    tcase_add_test(t, nul_bytes_are_refused_wherever_they_stand);
    tcase_add_test(t, too_long_names_and_keys_are_refused);
    return t;
}

static TCase *layout(void)
{
    TCase *t = tcase_create("layout");

    tcase_add_test(t, the_longest_key_fits);
    tcase_add_test(t, numbered_keys_sort_by_number);
    tcase_add_test(t, bodies_stay_outside_of_the_mirrored_prefix);
    tcase_add_test(t, only_presence_hangs_on_a_lease);
    tcase_add_loop_test(t, scopes_are_prefixes_of_keys_and_end_in_a_slash, 0, COUNT(SCOPES));
    tcase_add_loop_test(t, a_narrowed_scope_needs_a_good_name, 0, COUNT(SCOPES));
    return t;
}

int main(void)
{
    return hft_suite_run("schema/keys", each_kind(), malformed(), layout(), NULL);
}
