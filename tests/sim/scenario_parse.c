/* scenario_parse.c - the words of the scripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sim/scenario.h"

enum { WORDS_MAX = 8 };

static const char *const PATTERNS[] = {
#define X(name, pattern) pattern,
    HFS_SETUP(X) HFS_ACTIONS(X)
#undef X
};

static const char *const PROGRAMS[HFS_PROGRAM_KINDS] = {
    [HFS_WORKER] = "worker",
    [HFS_IDLE] = "idle",
    [HFS_FLAKY] = "flaky",
    [HFS_CRASH_START] = "dies_at_start",
    [HFS_CRASH_STEP] = "dies_at_work",
    [HFS_FINISHER] = "finisher",
    [HFS_LAZY] = "lazy",
};

static const char *const POLICIES[] = { "on_failure", "always", "never" };

/* A line, cut at its spaces. */
struct words {
    char text[512];
    const char *list[WORDS_MAX];
    size_t count;
};

static bool cut_words(struct words *words, const char *line)
{
    char *rest = NULL;

    words->count = 0;
    if (snprintf(words->text, sizeof words->text, "%s", line) >= (int)sizeof words->text)
        return false;
    for (char *word = strtok_r(words->text, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (words->count == WORDS_MAX)
            return false;
        words->list[words->count++] = word;
    }
    return true;
}

/* Values. */

static bool take_count(const char *text, unsigned min, unsigned max, unsigned *ret)
{
    uint64_t value;

    if (hf_parse_u64(text, min, max, &value) != HF_OK)
        return false;
    *ret = (unsigned)value;
    return true;
}

static bool take_choice(const char *text, const char *const *known, size_t count, int *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known[i], text) == 0) {
            *ret = (int)i;
            return true;
        }
    }
    return false;
}

static bool take_name(const char *text, struct hfs_act *act)
{
    char *place = act->name[0] == '\0' ? act->name : act->role;

    return strlen(text) < HFS_TEXT && snprintf(place, HFS_TEXT, "%s", text) > 0;
}

static bool take_agent(const struct hfs_scenario *scenario, const char *text,
                       struct hfs_act *act)
{
    for (unsigned i = 0; i < scenario->cluster.agent_count; i++) {
        if (strcmp(scenario->cluster.agents[i].name, text) == 0)
            return take_name(text, act);
    }
    return false;
}

/* "h2": the second of so many. */
static bool take_member(const char *text, char letter, unsigned count, struct hfs_act *act)
{
    if (text[0] != letter || !take_count(text + 1, 1, count, &act->number))
        return false;
    act->number--;
    return true;
}

static bool take_checkpoint(const char *text, struct hfs_act *act)
{
    const char *slash = strchr(text, '/');

    return slash != NULL && (size_t)(slash - text) < HFS_TEXT &&
           snprintf(act->name, HFS_TEXT, "%.*s", (int)(slash - text), text) > 0 &&
           take_count(slash + 1, 1, 1000, &act->number);
}

static bool take_state(const char *text, struct hfs_act *act)
{
    const ProtobufCEnumValue *state = protobuf_c_enum_descriptor_get_value_by_name(
        &holdfast__v1__task__state__descriptor, text);

    if (state != NULL)
        act->choice = state->value;
    return state != NULL;
}

static bool take_value(const struct hfs_scenario *scenario, const char *kind, const char *text,
                       struct hfs_act *act)
{
    const struct hfs_cluster_config *cluster = &scenario->cluster;

    if (strcmp(kind, "NAME") == 0 || strcmp(kind, "KEY") == 0)
        return take_name(text, act);
    if (strcmp(kind, "AGENT") == 0)
        return take_agent(scenario, text, act);
    if (strcmp(kind, "HOST") == 0)
        return take_member(text, 'h', cluster->hosts, act);
    if (strcmp(kind, "CONTROLLER") == 0 && strcmp(text, "leader") == 0) {
        act->number = HFS_LEADER;
        return true;
    }
    if (strcmp(kind, "CONTROLLER") == 0)
        return take_member(text, 'c', cluster->controllers, act);
    if (strcmp(kind, "COUNT") == 0)
        return take_count(text, 0, 1000000, &act->number);
    if (strcmp(kind, "TIME") == 0)
        return hf_parse_duration(text, &act->time) == HF_OK && act->time >= 0;
    if (strcmp(kind, "PROGRAM") == 0)
        return take_choice(text, PROGRAMS, HFS_PROGRAM_KINDS, &act->choice);
    if (strcmp(kind, "POLICY") == 0)
        return take_choice(text, POLICIES, 3, &act->choice);
    if (strcmp(kind, "STATE") == 0)
        return take_state(text, act);
    return take_checkpoint(text, act);
}

static bool is_value(const char *word)
{
    return word[0] >= 'A' && word[0] <= 'Z';
}

static bool matches(const struct hfs_scenario *scenario, const char *pattern,
                    const struct words *line, struct hfs_act *act)
{
    struct words words;

    if (!cut_words(&words, pattern) || words.count != line->count)
        return false;
    for (size_t i = 0; i < words.count; i++) {
        if (is_value(words.list[i])) {
            if (!take_value(scenario, words.list[i], line->list[i], act))
                return false;
        } else if (strcmp(words.list[i], line->list[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* Lines. */

static int complain(const struct words *line, const char *file, unsigned number,
                    struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf known = { 0 };

    for (size_t i = 0; i < HFS_WORDS; i++) {
        struct words words;

        if (cut_words(&words, PATTERNS[i]) && strcmp(words.list[0], line->list[0]) == 0)
            hf_buf_printf(&known, "%s`%s`", known.len > 0 ? ", " : "", PATTERNS[i]);
    }
    if (known.len > 0)
        return hf_error_set(err, HF_EINVAL, "%s:%u: not understood; known are %s", file, number,
                            known.data);
    return hf_error_set(err, HF_EINVAL, "%s:%u: unknown word `%s`", file, number,
                        line->list[0]);
}

/* The cast. False: there is no room, or no such agent. */
static bool set_up(struct hfs_cluster_config *cluster, const struct hfs_act *act)
{
    struct hfs_agent_config *agent = &cluster->agents[cluster->agent_count];

    switch (act->word) {
    case HFS_WORD_HOSTS:
        cluster->hosts = act->number;
        return act->number >= 1 && act->number <= HFS_HOSTS;
    case HFS_WORD_CONTROLLERS:
        cluster->controllers = act->number;
        return act->number <= HFS_CONTROLLERS;
    case HFS_WORD_SEED: cluster->seed = act->number; return true;
    case HFS_WORD_NEW_AGENT:
    case HFS_WORD_NEW_PROGRAM:
        if (cluster->agent_count == HFS_AGENTS)
            return false;
        *agent = (struct hfs_agent_config){ .home = act->number,
                                            .kind = (enum hfs_program_kind)act->choice };
        (void)snprintf(agent->name, sizeof agent->name, "%s", act->name);
        (void)snprintf(agent->role, sizeof agent->role, "%s", act->role);
        cluster->agent_count++;
        return true;
    case HFS_WORD_HOLDS:
        for (unsigned i = 0; i < cluster->agent_count; i++) {
            if (strcmp(cluster->agents[i].name, act->name) == 0)
                cluster->agents[i].fence = HOLDFAST__V1__SPEC__FENCE__hold;
        }
        return true;
    case HFS_WORD_RESTART_POLICY:
        for (unsigned i = 0; i < cluster->agent_count; i++) {
            if (strcmp(cluster->agents[i].name, act->name) == 0)
                cluster->agents[i].restart = (Holdfast__V1__Spec__Restart)act->choice;
        }
        return true;
    case HFS_WORD_STEPS:
        cluster->steps_exact = act->number;
        cluster->step_exact = act->time;
        return true;
    case HFS_WORD_KEEPS_ALL: cluster->keeps_all = true; return true;
    case HFS_WORD_KEEPS_NONE: cluster->keeps_none = true; return true;
    case HFS_WORD_OWN_FILES: cluster->own_files = true; return true;
    case HFS_WORD_RUNNING_MAX: cluster->running_max = act->number; return true;
    case HFS_WORD_EXPECTED: cluster->expected = act->time; return true;
    case HFS_WORD_HEARTBEATS: cluster->heartbeat = act->time; return true;
    default: return false;
    }
}

static int parse_line(struct hfs_scenario *scenario, const char *file, unsigned number,
                      const char *text, struct hf_error *err)
{
    struct hfs_act act = { .line = number };
    struct words line;

    if (text[strspn(text, " ")] == '\0' || text[0] == '#')
        return HF_OK;
    if (!cut_words(&line, text))
        return hf_error_set(err, HF_EINVAL, "%s:%u: the line is too long", file, number);
    for (; act.word < HFS_WORDS; act.word++) {
        struct hfs_act tried = act;

        if (matches(scenario, PATTERNS[act.word], &line, &tried)) {
            act = tried;
            break;
        }
    }
    if (act.word == HFS_WORDS)
        return complain(&line, file, number, err);
    if (act.word >= HFS_WORD_TASK) {
        hfs_grow(&scenario->acts, &scenario->act_cap, scenario->act_count + 1, sizeof act);
        scenario->acts[scenario->act_count++] = act;
    } else if (scenario->act_count > 0 || !set_up(&scenario->cluster, &act)) {
        return hf_error_set(err, HF_EINVAL, "%s:%u: %s", file, number,
                            scenario->act_count > 0
                                ? "the cast is named before anything happens"
                                : "there is no room for so many");
    }
    return HF_OK;
}

/* Blocks. */

static void add_block(struct hfs_scenario *scenario, struct hf_buf *script)
{
    struct hfs_block *block;

    hfs_grow(&scenario->blocks, &scenario->cap, scenario->count + 1, sizeof *block);
    block = &scenario->blocks[scenario->count++];
    *block = (struct hfs_block){ .script = hfs_copy_text(script->len > 0 ? script->data : ""),
                                 .told = hfs_copy_text(""),
                                 .end = scenario->act_count };
    hf_buf_clear(script);
}

static void end_told(struct hfs_scenario *scenario, struct hf_buf *told)
{
    struct hfs_block *block = &scenario->blocks[scenario->count - 1];

    free(block->told);
    block->told = hfs_copy_text(told->len > 0 ? told->data : "");
    hf_buf_clear(told);
}

/* Whether something happens that no block has yet. */
static bool has_more(const struct hfs_scenario *scenario)
{
    return scenario->count == 0 ||
           scenario->blocks[scenario->count - 1].end < scenario->act_count;
}

int hfs_scenario_parse(struct hfs_scenario *scenario, const char *file, char *text,
                       struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf part = { 0 };
    bool in_told = false;
    unsigned number = 0;
    int rc = HF_OK;

    *scenario = (struct hfs_scenario){ .cluster = { .seed = 1, .hosts = 1, .controllers = 1 } };
    for (char *line; rc == HF_OK && (line = strsep(&text, "\n")) != NULL;) {
        number++;
        if (in_told && line[0] == '\0') {
            end_told(scenario, &part);
            in_told = false;
        } else if (!in_told && strcmp(line, "----") == 0) {
            add_block(scenario, &part);
            in_told = true;
        } else {
            if (!in_told)
                rc = parse_line(scenario, file, number, line, err);
            if (text != NULL)
                hf_buf_printf(&part, "%s\n", line);
        }
    }
    if (rc == HF_OK && in_told)
        end_told(scenario, &part);
    if (rc == HF_OK && has_more(scenario))
        add_block(scenario, &part);
    if (rc != HF_OK)
        hfs_scenario_done(scenario);
    return rc;
}

void hfs_scenario_done(struct hfs_scenario *scenario)
{
    for (size_t i = 0; i < scenario->count; i++) {
        free(scenario->blocks[i].script);
        free(scenario->blocks[i].told);
    }
    free(scenario->blocks);
    free(scenario->acts);
    *scenario = (struct hfs_scenario){ 0 };
}
