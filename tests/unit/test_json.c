#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schema/json.h"
#include "support/chaos.h"
#include "support/suite.h"
#include "types/everything.pb-c.h"
#include "types/optional.pb-c.h"
#include "types/types.h"

#define EVERYTHING (&holdfast__test__everything__descriptor)
#define OPTIONAL   (&holdfast__test__optional__descriptor)

/* Every field at its zero value, as we write it. */
#define ZERO_SCALARS                                                                           \
    "\"anInt32\":0,\"aSint32\":0,\"anSfixed32\":0,\"aUint32\":0,\"aFixed32\":0,"               \
    "\"anInt64\":\"0\",\"aSint64\":\"0\",\"anSfixed64\":\"0\",\"aUint64\":\"0\","              \
    "\"aFixed64\":\"0\",\"aFloat\":0,\"aDouble\":0,\"aBool\":false,\"aColour\":\"black\","     \
    "\"aString\":\"\",\"someBytes\":\"\""
#define ZERO_LISTS                                                                             \
    "\"int32s\":[],\"uint64s\":[],\"floats\":[],\"doubles\":[],\"bools\":[],\"colours\":[],"   \
    "\"strings\":[],\"blobs\":[],\"children\":[],\"durations\":[],\"pairs\":[]"
#define ZERO_MAPS                                                                              \
    "\"byString\":{},\"byInt32\":{},\"byUint32\":{},\"bySint64\":{},\"byFixed64\":{},"         \
    "\"byBool\":{},\"childByName\":{},\"timeByName\":{}"
#define ZERO_ODD "\"oddName\":\"\",\"x1Y2\":\"\",\"UPPERCase\":\"\""
#define ZERO     "{" ZERO_SCALARS "," ZERO_LISTS "," ZERO_MAPS "," ZERO_ODD "}"

static ProtobufCMessage *decode_as(const ProtobufCMessageDescriptor *type, const char *text)
{
    ProtobufCMessage *message = NULL;
    struct hf_error err = { "" };
    int code = hf_json_decode(type, text, strlen(text), NULL, &message, &err);

    ck_assert_msg(code == HF_OK, "%s\n%s", err.text, text);
    ck_assert_ptr_eq(message->descriptor, type);
    return message;
}

static Holdfast__Test__Everything *decode(const char *text)
{
    return (Holdfast__Test__Everything *)decode_as(EVERYTHING, text);
}

static void release(Holdfast__Test__Everything *e)
{
    hf_json_free(&e->base);
}

static char *encode(const ProtobufCMessage *message)
{
    struct hf_buf out = { 0 };
    char *text = NULL;

    ck_assert_int_eq(hf_json_encode(message, &out), HF_OK);
    ck_assert_int_eq(hf_buf_take(&out, &text, NULL), HF_OK);
    return text;
}

static char *again(const ProtobufCMessageDescriptor *type, const char *text)
{
    ProtobufCMessage *message = decode_as(type, text);
    char *encoded = encode(message);

    hf_json_free(message);
    return encoded;
}

START_TEST(zero_values_are_written_and_unset_messages_are_not)
{
    Holdfast__Test__Everything e = HOLDFAST__TEST__EVERYTHING__INIT;
    HF_CLEANUP_FREE char *built = encode(&e.base);
    HF_CLEANUP_FREE char *read = again(EVERYTHING, "{}");

    ck_assert_str_eq(built, ZERO);
    ck_assert_str_eq(read, ZERO);
}
END_TEST

/* One text with every kind of field; it is canonical, so it must come back as it was. */
START_TEST(every_kind_of_field_comes_back_as_it_was)
{
    static const char TEXT[] =
        "{\"anInt32\":-2147483648,\"aSint32\":2147483647,\"anSfixed32\":-1,"
        "\"aUint32\":4294967295,\"aFixed32\":7,\"anInt64\":\"-9223372036854775808\","
        "\"aSint64\":\"9223372036854775807\",\"anSfixed64\":\"-12\","
        "\"aUint64\":\"18446744073709551615\",\"aFixed64\":\"1\",\"aFloat\":0.1,"
        "\"aDouble\":0.30000000000000004,\"aBool\":true,\"aColour\":\"green\","
        "\"aString\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001 /\x7f \xc3\xa9 \xe2\x82\xac "
        "\xf0\x9f\x98\x80\",\"someBytes\":\"AP/+fw==\",\"child\":" ZERO ","
        "\"aDuration\":\"-1.500s\",\"aTime\":\"2026-01-31T08:15:30.000001Z\","
        "\"int32s\":[1,-2,3],\"uint64s\":[\"1\",\"2\"],\"floats\":[1.5,\"NaN\","
        "\"Infinity\",\"-Infinity\"],\"doubles\":[1e+300,-0,4.94065645841247e-324],\"bools\":["
        "true,false],"
        "\"colours\":[\"red\",\"infrared\",42],\"strings\":[\"\",\"x\"],\"blobs\":[\"\","
        "\"AQ==\",\"AQI=\",\"AQID\"],\"children\":[" ZERO "," ZERO "],"
        "\"durations\":[\"0s\",\"0.000000001s\"],\"pairs\":[{\"key\":\"k\",\"value\":\"v\"}],"
        "\"byString\":{\"a\":\"1\",\"\":\"2\"},\"byInt32\":{\"-1\":1,\"2\":-2},"
        "\"byUint32\":{\"4294967295\":true},\"bySint64\":{\"-9223372036854775808\":2.5},"
        "\"byFixed64\":{\"18446744073709551615\":\"AQ==\"},\"byBool\":{\"true\":\"green\","
        "\"false\":\"red\"},\"childByName\":{\"c\":" ZERO "},"
        "\"timeByName\":{\"epoch\":\"1970-01-01T00:00:00Z\"},"
        "\"choiceDuration\":\"3s\"," ZERO_ODD "}";
    HF_CLEANUP_FREE char *text = again(EVERYTHING, TEXT);
    size_t same = 0;

    while (text[same] != '\0' && text[same] == TEXT[same])
        same++;
    ck_assert_msg(strcmp(text, TEXT) == 0, "differs from \"%.60s\" on", text + same);
}
END_TEST

START_TEST(values_reach_the_fields_of_the_struct)
{
    Holdfast__Test__Everything *e =
        decode("{\"anInt32\":-5,\"aUint64\":\"9\",\"aBool\":true,\"aColour\":\"green\","
               "\"aString\":\"hi\",\"someBytes\":\"AQI=\",\"child\":{\"anInt32\":6},"
               "\"aDuration\":\"-1.5s\",\"int32s\":[4,5],\"strings\":[\"a\",\"b\",\"c\"],"
               "\"byString\":{\"k\":\"v\"},\"choiceText\":\"t\"}");

    ck_assert_int_eq(e->an_int32, -5);
    ck_assert_uint_eq(e->a_uint64, 9);
    ck_assert(e->a_bool);
    ck_assert_int_eq(e->a_colour, HOLDFAST__TEST__EVERYTHING__COLOUR__green);
    ck_assert_str_eq(e->a_string, "hi");
    ck_assert_uint_eq(e->some_bytes.len, 2);
    ck_assert_mem_eq(e->some_bytes.data, "\1\2", 2);
    ck_assert_int_eq(e->child->an_int32, 6);
    ck_assert_int_eq(e->a_duration->seconds, -1);
    ck_assert_int_eq(e->a_duration->nanos, -500000000);
    ck_assert_uint_eq(e->n_int32s, 2);
    ck_assert_int_eq(e->int32s[1], 5);
    ck_assert_uint_eq(e->n_strings, 3);
    ck_assert_str_eq(e->strings[2], "c");
    ck_assert_uint_eq(e->n_by_string, 1);
    ck_assert_str_eq(e->by_string[0]->key, "k");
    ck_assert_str_eq(e->by_string[0]->value, "v");
    ck_assert_int_eq(e->choice_case, HOLDFAST__TEST__EVERYTHING__CHOICE_CHOICE_TEXT);
    ck_assert_str_eq(e->choice_text, "t");
    release(e);
}
END_TEST

/* What is read, and how it is written then. */
static const struct {
    const char *in;
    const char *out;
} READS[] = {
    /* Both spellings, white space, any order. */
    { "{\"an_int32\":1}", "\"anInt32\":1," },
    { " \t\r\n{ \"aUint32\" : 2 , \"an_int32\" :\n1 } ", "\"anInt32\":1,\"aSint32\":0" },
    { "{\"odd__name_\":\"x\"}", "\"oddName\":\"x\"" },
    { "{\"oddName\":\"x\"}", "\"oddName\":\"x\"" },
    { "{\"x1_y2\":\"x\"}", "\"x1Y2\":\"x\"" },
    { "{\"UPPERCase\":\"x\"}", "\"UPPERCase\":\"x\"" },
    { "{\"an\\u0049nt32\":1}", "\"anInt32\":1," },
    /* Integers as numbers and strings, in any notation of a whole number. */
    { "{\"anInt32\":\"12\"}", "\"anInt32\":12," },
    { "{\"anInt32\":1e3}", "\"anInt32\":1000," },
    { "{\"anInt32\":\"-1.50E+2\"}", "\"anInt32\":-150," },
    { "{\"anInt32\":-0}", "\"anInt32\":0," },
    { "{\"anInt32\":0.0e99999999999999999999}", "\"anInt32\":0," },
    { "{\"anInt32\":2500000000000000000000e-20}", "\"anInt32\":25," },
    { "{\"anInt32\":2147483647.0}", "\"anInt32\":2147483647," },
    { "{\"anInt64\":-9223372036854775808}", "\"anInt64\":\"-9223372036854775808\"" },
    { "{\"aUint64\":18446744073709551615}", "\"aUint64\":\"18446744073709551615\"" },
    { "{\"aUint64\":\"\\u0031\\u0032\"}", "\"aUint64\":\"12\"" },
    /* Reals. */
    { "{\"aFloat\":3}", "\"aFloat\":3," },
    { "{\"aFloat\":\"2.5\"}", "\"aFloat\":2.5," },
    { "{\"aFloat\":3.4028235e38}", "\"aFloat\":3.4028235e+38," },
    { "{\"aFloat\":16777217}", "\"aFloat\":16777216," },
    { "{\"aFloat\":\"NaN\"}", "\"aFloat\":\"NaN\"," },
    { "{\"aDouble\":\"-Infinity\"}", "\"aDouble\":\"-Infinity\"," },
    { "{\"aDouble\":1e-400}", "\"aDouble\":0," },
    { "{\"aDouble\":0.1}", "\"aDouble\":0.1," },
    { "{\"aDouble\":123456789012345680000}", "\"aDouble\":1.2345678901234568e+20," },
    /* Enums by number, by another name of the same value, and by a number without a name. */
    { "{\"aColour\":7}", "\"aColour\":\"green\"" },
    { "{\"aColour\":-1}", "\"aColour\":\"infrared\"" },
    { "{\"aColour\":\"crimson\"}", "\"aColour\":\"red\"" },
    { "{\"aColour\":99}", "\"aColour\":99," },
    /* Either alphabet of base64, with and without padding. */
    { "{\"someBytes\":\"-_8\"}", "\"someBytes\":\"+/8=\"" },
    { "{\"someBytes\":\"+/8=\"}", "\"someBytes\":\"+/8=\"" },
    { "{\"someBytes\":\"AQ\\u003d=\"}", "\"someBytes\":\"AQ==\"" },
    /* Strings. */
    { "{\"aString\":\"\\u00e9\\/\\u20AC\\ud83d\\uDE00\"}",
      "\"aString\":\"\xc3\xa9/\xe2\x82\xac\xf0\x9f\x98\x80\"" },
    { "{\"aString\":\"\\u001f\"}", "\"aString\":\"\\u001f\"" },
    /* Durations and times. */
    { "{\"aDuration\":\"1.5s\"}", "\"aDuration\":\"1.500s\"" },
    { "{\"aDuration\":\"-0.25s\"}", "\"aDuration\":\"-0.250s\"" },
    { "{\"aTime\":\"2026-01-31T10:15:30.5+02:00\"}", "\"aTime\":\"2026-01-31T08:15:30.500Z\"" },
    /* null is "not given", for every kind of field. */
    { "{\"anInt32\":null}", ZERO },
    { "{\"aString\":null,\"someBytes\":null,\"aColour\":null,\"aFloat\":null}", ZERO },
    { "{\"child\":null,\"int32s\":null,\"byString\":null,\"aTime\":null}", ZERO },
    { "{\"choiceText\":null}", ZERO },
    { "{\"choiceText\":null,\"choiceNumber\":0}", "\"choiceNumber\":0" },
    /* A oneof is written even at its zero value. */
    { "{\"choiceText\":\"\"}", "\"choiceText\":\"\"" },
    { "{\"choiceFlag\":false}", "\"choiceFlag\":false" },
    { "{\"choiceChild\":{}}", "\"choiceChild\":" ZERO },
    { "{\"choiceBytes\":\"AQ==\"}", "\"choiceBytes\":\"AQ==\"" },
    /* Unknown members are passed over, whatever they hold. */
    { "{\"new\":{\"a\":[1,{\"b\":null}],\"c\":\"\\u0000\\\"}\"},\"anInt32\":1,\"n\":-1.5e9}",
      "\"anInt32\":1," },
    { "{\"an_int\":true,\"anint32\":false,\"an_int32_\":[],\"\":0}", ZERO },
};

START_TEST(reads)
{
    HF_CLEANUP_FREE char *text = again(EVERYTHING, READS[_i].in);

    ck_assert_msg(strstr(text, READS[_i].out) != NULL, "%s\nwas read as\n%s", READS[_i].in,
                  text);
}
END_TEST

START_TEST(a_repeated_message_with_key_and_value_is_no_map)
{
    Holdfast__Test__Everything *e = decode("{\"pairs\":[{\"key\":\"k\",\"value\":\"v\"}]}");

    ck_assert_uint_eq(e->n_pairs, 1);
    ck_assert_str_eq(e->pairs[0]->value, "v");
    release(e);
}
END_TEST

START_TEST(map_entry_without_a_value_is_its_default)
{
    Holdfast__Test__Everything__ChildByNameEntry child =
        HOLDFAST__TEST__EVERYTHING__CHILD_BY_NAME_ENTRY__INIT;
    Holdfast__Test__Everything__TimeByNameEntry time =
        HOLDFAST__TEST__EVERYTHING__TIME_BY_NAME_ENTRY__INIT;
    Holdfast__Test__Everything__ChildByNameEntry *children[] = { &child };
    Holdfast__Test__Everything__TimeByNameEntry *times[] = { &time };
    Holdfast__Test__Everything e = HOLDFAST__TEST__EVERYTHING__INIT;

    e.n_child_by_name = 1;
    e.child_by_name = children;
    e.n_time_by_name = 1;
    e.time_by_name = times;
    HF_CLEANUP_FREE char *text = encode(&e.base);
    ck_assert_ptr_nonnull(strstr(text, "\"childByName\":{\"\":{}}"));
    ck_assert_ptr_nonnull(strstr(text, "\"timeByName\":{\"\":\"1970-01-01T00:00:00Z\"}"));
}
END_TEST

static const char *const OPTIONALS[] = {
    "{\"ratio\":0.5}",
    "{}",
    "{\"number\":0}",
    "{\"text\":\"\",\"data\":\"\",\"flag\":false}",
    "{\"child\":{\"number\":1,\"child\":{}},\"ratio\":0}",
    "{\"big\":\"0\"}",
    "{\"word\":\"\"}",
};

START_TEST(optional_fields_are_written_when_they_were_given)
{
    HF_CLEANUP_FREE char *text = again(OPTIONAL, OPTIONALS[_i]);

    ck_assert_str_eq(text, OPTIONALS[_i]);
}
END_TEST

START_TEST(a_decoded_message_may_be_changed_before_it_is_encoded_and_freed)
{
    Holdfast__Test__Everything *e = decode("{\"aString\":\"a\",\"strings\":[\"b\"]}");
    char borrowed[] = "borrowed";
    char *list[] = { borrowed, NULL };

    e->a_string = borrowed;
    e->n_strings = 2;
    e->strings = list;
    e->an_int32 = 3;
    HF_CLEANUP_FREE char *text = encode(&e->base);
    ck_assert_ptr_nonnull(strstr(text, "\"anInt32\":3,"));
    ck_assert_ptr_nonnull(strstr(text, "\"aString\":\"borrowed\""));
    ck_assert_ptr_nonnull(strstr(text, "\"strings\":[\"borrowed\",\"\"]"));
    release(e);
    hf_json_free(NULL);
}
END_TEST

/* The text that a long array and its strings need exceeds the first block by far. */
START_TEST(large_messages_are_whole)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    Holdfast__Test__Everything *e;

    hf_buf_puts(&text, "{\"children\":[");
    for (int i = 0; i < 5000; i++)
        hf_buf_printf(&text, "%s{\"int32s\":[%d,%d],\"aString\":\"s%d\"}", i > 0 ? "," : "", i,
                      -i, i);
    hf_buf_puts(&text, "],\"byInt32\":{");
    for (int i = 0; i < 5000; i++)
        hf_buf_printf(&text, "%s\"%d\":%d", i > 0 ? "," : "", i * 7, i);
    hf_buf_puts(&text, "}}");
    ck_assert_int_eq(text.err, HF_OK);
    e = decode(text.data);
    ck_assert_uint_eq(e->n_children, 5000);
    for (int i = 0; i < 5000; i++) {
        char want[16];

        (void)snprintf(want, sizeof want, "s%d", i);
        ck_assert_str_eq(e->children[i]->a_string, want);
        ck_assert_int_eq(e->children[i]->int32s[1], -i);
        ck_assert(e->by_int32[i]->key == i * 7);
    }
    release(e);
}
END_TEST

static char *read_fixture(const char *name)
{
    char path[512];
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    char *ret = NULL;
    char part[4096];
    size_t n;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/fixtures/%s", HOLDFAST_SOURCE_DIR, name);
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        hf_buf_append(&text, part, n);
    (void)fclose(file);
    ck_assert_int_eq(hf_buf_take(&text, &ret, NULL), HF_OK);
    return ret;
}

/* A fixture is named after its record and laid out as we lay it out. */
static void check_fixture(const char *file)
{
    HF_CLEANUP_FREE char *want = read_fixture(file);
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    const ProtobufCMessageDescriptor *type;
    struct hf_error err = { "" };
    ProtobufCMessage *message;
    char name[128];
    int code;

    (void)snprintf(name, sizeof name, "holdfast.v1.%.*s", (int)strcspn(file, "."), file);
    type = hft_types_find(name);
    ck_assert_msg(type != NULL, "%s is no type", name);
    code = hf_json_decode(type, want, strlen(want),
                          &(struct hf_json_options){ .reject_unknown = true }, &message, &err);
    ck_assert_msg(code == HF_OK, "%s: %s", file, err.text);
    ck_assert_int_eq(hf_json_encode_pretty(message, &out), HF_OK);
    hf_buf_putc(&out, '\n');
    ck_assert_str_eq(out.data, want);
    hf_json_free(message);
}

START_TEST(fixtures_come_back_as_they_were)
{
    struct dirent **entries = NULL;
    int seen = 0;
    int n = scandir(HOLDFAST_SOURCE_DIR "/tests/fixtures", &entries, NULL, alphasort);

    ck_assert_int_gt(n, 2);
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".json") != NULL) {
            check_fixture(entries[i]->d_name);
            seen++;
        }
        free(entries[i]);
    }
    free(entries);
    ck_assert_int_ge(seen, 18);
}
END_TEST

START_TEST(empty_objects_and_arrays_stay_on_one_line_in_pretty_text)
{
    ProtobufCMessage *m = decode_as(hft_types_find("holdfast.v1.TaskList"), "{}");
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    ck_assert_int_eq(hf_json_encode_pretty(m, &out), HF_OK);
    ck_assert_str_eq(out.data, "{\n    \"tasks\": []\n}");
    hf_json_free(m);
}
END_TEST

/* A failed encode leaves what was in the buffer, and only that. */
static void refuse_to_encode(const Holdfast__Test__Everything *e, size_t limit, int want)
{
    HF_CLEANUP_BUF struct hf_buf out = { .limit = limit };

    hf_buf_puts(&out, "before");
    ck_assert_int_eq(hf_json_encode(&e->base, &out), want);
    ck_assert_str_eq(out.data, "before");
    ck_assert_uint_eq(out.len, 6);
}

START_TEST(encode_refuses_what_json_cannot_say)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Holdfast__Test__Everything e = HOLDFAST__TEST__EVERYTHING__INIT;
    char invalid[] = "x\xed\xa0\x80";

    e.a_string = invalid;
    refuse_to_encode(&e, 0, HF_EINVAL);
    e.a_string = NULL;
    e.a_duration = &duration;
    duration.seconds = 1;
    duration.nanos = -1;
    refuse_to_encode(&e, 0, HF_EINVAL);
    duration.nanos = 1000000000;
    refuse_to_encode(&e, 0, HF_EINVAL);
    e.a_duration = NULL;
    e.a_time = &time;
    time.seconds = 253402300800;
    refuse_to_encode(&e, 0, HF_EINVAL);
    e.a_time = NULL;
    refuse_to_encode(&e, 100, HF_ELIMIT);
    e.child = &e; /* as deep as it gets */
    refuse_to_encode(&e, 0, HF_ELIMIT);
}
END_TEST

START_TEST(limits_hold)
{
    static const char DEEP[] = "{\"child\":{\"child\":{\"int32s\":[1]}}}";
    static const char UNKNOWN_DEEP[] = "{\"x\":[[[1]]]}";
    struct hf_json_options options = { .max_depth = 4, .max_bytes = sizeof DEEP - 1 };
    ProtobufCMessage *message = NULL;
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_json_decode(EVERYTHING, DEEP, strlen(DEEP), &options, &message, &err),
                     HF_OK);
    hf_json_free(message);

    message = NULL;
    options.max_depth = 3;
    ck_assert_int_eq(hf_json_decode(EVERYTHING, DEEP, strlen(DEEP), &options, &message, &err),
                     HF_ELIMIT);
    ck_assert_str_eq(err.text,
                     "child.child.int32s: line 1, column 29: nested deeper than the limit");
    ck_assert_int_eq(hf_json_decode(EVERYTHING, UNKNOWN_DEEP, strlen(UNKNOWN_DEEP), &options,
                                    &message, &err),
                     HF_ELIMIT);
    ck_assert_str_eq(err.text, "[\"x\"]: line 1, column 8: nested deeper than the limit");

    options = (struct hf_json_options){ .max_bytes = sizeof DEEP - 2 };
    ck_assert_int_eq(hf_json_decode(EVERYTHING, DEEP, strlen(DEEP), &options, &message, &err),
                     HF_ELIMIT);
    ck_assert_str_eq(err.text, "34 bytes of JSON are more than the limit of 33");
    ck_assert_ptr_null(message);
}
END_TEST

/* A hundred thousand brackets must not become a hundred thousand stack frames. */
START_TEST(depth_is_bounded_by_default)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    ProtobufCMessage *message = NULL;

    hf_buf_puts(&text, "{\"x\":");
    for (int i = 0; i < 100000; i++)
        hf_buf_putc(&text, '[');
    ck_assert_int_eq(hf_json_decode(EVERYTHING, text.data, text.len, NULL, &message, NULL),
                     HF_ELIMIT);
}
END_TEST

static int decode_and_encode(void *arg)
{
    const char *text = arg;
    struct hf_buf out = { 0 };
    ProtobufCMessage *message;
    struct hf_error err;
    int code = hf_json_decode(EVERYTHING, text, strlen(text), NULL, &message, &err);

    if (code != HF_OK)
        return code;
    code = hf_json_encode(message, &out);
    hf_buf_done(&out);
    if (code == HF_OK)
        code = hf_json_encode_over(message, text, strlen(text), &out, &err);
    hf_buf_done(&out);
    hf_json_free(message);
    return code;
}

static const char *const BLOCKS[] = {
    "\"x1_y2\":\"0123456789012345678901234567890123456789\"",
    "\"x1_y2\":\"0123456789012345678901234567890123456789\\n\"",
    "\"someBytes\":\"0123456789012345678901234567890123456789\"",
    "\"int32s\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]",
    "\"byString\":{\"0123456789012345678901234567890123456789\":\"\"}",
    "\"unknown\\n0123456789012345678901234567890123456789\":1",
};

START_TEST(every_allocation_may_fail)
{
    char text[] =
        "{\"aString\":\"\\u00e9\",\"int32s\":[1,2,3,4,5,6,7,8,9],\"child\":{\"strings\":[\"a\","
        "\"b\"],\"new\":{\"\\u0061\":1,\"b\":2}},\"childByName\":{\"k\":{\"blobs\":[\"AQID\"],"
        "\"x\":[]}},\"byString\":{\"k\\n\":\"v\"},\"more\":{\"y\":true}}";

    ck_assert_uint_gt(hft_chaos_run(decode_and_encode, text), 8);
}
END_TEST

/* Each kind of value meets the end of a block in its turn. */
START_TEST(every_block_may_fail)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    const char *member = BLOCKS[_i];

    hf_buf_puts(&text, "{\"children\":[{}");
    for (int padding = 0; padding < 24; padding++)
        hf_buf_printf(&text, ",{\"aString\":\"%0*d\",%s}", 3 * padding + 1, 0, member);
    hf_buf_puts(&text, "]}");
    ck_assert_uint_gt(hft_chaos_run(decode_and_encode, text.data), 4);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("json");

    tcase_add_test(t, zero_values_are_written_and_unset_messages_are_not);
    tcase_add_test(t, every_kind_of_field_comes_back_as_it_was);
    tcase_add_test(t, values_reach_the_fields_of_the_struct);
    tcase_add_loop_test(t, reads, 0, sizeof READS / sizeof READS[0]);
    tcase_add_test(t, a_repeated_message_with_key_and_value_is_no_map);
    tcase_add_test(t, map_entry_without_a_value_is_its_default);
    tcase_add_loop_test(t, optional_fields_are_written_when_they_were_given, 0,
                        sizeof OPTIONALS / sizeof OPTIONALS[0]);
    tcase_add_test(t, a_decoded_message_may_be_changed_before_it_is_encoded_and_freed);
    tcase_add_test(t, large_messages_are_whole);
    tcase_add_test(t, fixtures_come_back_as_they_were);
    tcase_add_test(t, empty_objects_and_arrays_stay_on_one_line_in_pretty_text);
    tcase_add_test(t, encode_refuses_what_json_cannot_say);
    tcase_add_test(t, limits_hold);
    tcase_add_test(t, depth_is_bounded_by_default);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_loop_test(t, every_block_may_fail, 0, sizeof BLOCKS / sizeof BLOCKS[0]);
    return hft_suite_run("schema/json", t, NULL);
}
