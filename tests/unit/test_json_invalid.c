/* Every way in which a text can be wrong, with the exact sentence that it earns. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/json.h"
#include "support/suite.h"
#include "types/everything.pb-c.h"
#include "types/types.h"

/* A text without a NUL may contain one: its length is given, 0 means strlen. */
struct invalid {
    const char *name;
    const char *text;
    const char *error;
    size_t len;
};

static const struct invalid INVALID[] = {
    /* The grammar of JSON. */
    { "empty", "", "line 1, column 1: expected an object, got the end of the text", 0 },
    { "blank", " \n ", "line 2, column 2: expected an object, got the end of the text", 0 },
    { "no_object", "[]", "line 1, column 1: expected an object, got an array", 0 },
    { "null_record", "null", "line 1, column 1: expected an object, got null", 0 },
    { "open_object", "{", "line 1, column 2: expected a member name, got the end of the text",
      0 },
    { "no_name", "{1:2}", "line 1, column 2: expected a member name, got 1", 0 },
    { "single_quotes", "{'a':2}", "line 1, column 2: expected a member name, got '''", 0 },
    { "no_colon", "{\"anInt32\" 1}", "line 1, column 12: expected ':', got 1", 0 },
    { "no_value", "{\"anInt32\":}", "anInt32: line 1, column 12: expected an int32, got '}'",
      0 },
    { "no_comma", "{\"anInt32\":1 \"aUint32\":2}",
      "line 1, column 14: expected ',' or '}', got \"aUint32\"", 0 },
    { "comma_at_end", "{\"anInt32\":1,}", "line 1, column 14: expected a member name, got '}'",
      0 },
    { "comma_in_front", "{,\"anInt32\":1}", "line 1, column 2: expected a member name, got ','",
      0 },
    { "array_comma_at_end", "{\"int32s\":[1,]}",
      "int32s[1]: line 1, column 14: expected an int32, got ']'", 0 },
    { "array_no_comma", "{\"int32s\":[1 2]}",
      "int32s: line 1, column 14: expected ',' or ']', got 2", 0 },
    { "wrong_bracket", "{\"int32s\":[1}",
      "int32s: line 1, column 13: expected ',' or ']', got '}'", 0 },
    { "two_values", "{} {}", "line 1, column 4: expected nothing more, got an object", 0 },
    { "nul_behind", "{}\0", "line 1, column 3: expected nothing more, got '?'", 3 },
    { "byte_order_mark", "\xef\xbb\xbf{}",
      "line 1, column 1: expected an object, got '\xef\xbb\xbf'", 0 },
    { "cut_word", "{\"new\":tru}", "[\"new\"]: line 1, column 8: expected a value, got tru",
      0 },
    { "long_word", "{\"aBool\":truest}", "line 1, column 14: expected ',' or '}', got st", 0 },
    { "bare_word", "{\"new\":None}", "[\"new\"]: line 1, column 8: expected a value, got None",
      0 },
    { "leading_zero", "{\"anInt32\":01}", "line 1, column 13: expected ',' or '}', got 1", 0 },
    { "plus", "{\"anInt32\":+1}", "anInt32: line 1, column 12: expected an int32, got +1", 0 },
    { "bare_point", "{\"aDouble\":1.}", "aDouble: line 1, column 12: expected a number, got 1.",
      0 },
    { "bare_exponent", "{\"aDouble\":1e+}",
      "aDouble: line 1, column 12: expected a number, got 1e+", 0 },
    { "bare_nan", "{\"aDouble\":NaN}", "aDouble: line 1, column 12: expected a double, got NaN",
      0 },
    { "hexadecimal", "{\"anInt32\":0x1F}", "line 1, column 13: expected ',' or '}', got x1F",
      0 },

    /* Strings. */
    { "open_string", "{\"aString\":\"abc",
      "aString: line 1, column 12: this string does not end", 0 },
    { "open_name", "{\"aStr", "line 1, column 2: this string does not end", 0 },
    { "control", "{\"aString\":\"a\nb\"}",
      "aString: line 1, column 14: unescaped control character 0x0a", 0 },
    { "nul_inside", "{\"aString\":\"a\0\"}",
      "aString: line 1, column 14: unescaped control character 0x00", 16 },
    { "bad_escape", "{\"aString\":\"\\x41\"}",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "cut_escape", "{\"aString\":\"\\",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "short_unicode", "{\"aString\":\"\\u12\"}",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "lone_high_surrogate", "{\"aString\":\"\\ud83dx\"}",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "lone_low_surrogate", "{\"aString\":\"\\ude00\"}",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "two_high_surrogates", "{\"aString\":\"\\ud83d\\ud83d\"}",
      "aString: line 1, column 13: invalid escape in a string", 0 },
    { "nul_escaped", "{\"aString\":\"a\\u0000\"}",
      "aString: line 1, column 12: \\u0000 cannot be kept in a string", 0 },
    { "utf8_continuation", "{\"aString\":\"a\x80\"}",
      "aString: line 1, column 14: invalid UTF-8", 0 },
    { "utf8_overlong", "{\"aString\":\"\xc0\xaf\"}",
      "aString: line 1, column 13: invalid UTF-8", 0 },
    { "utf8_overlong_3", "{\"aString\":\"\xe0\x80\xaf\"}",
      "aString: line 1, column 13: invalid UTF-8", 0 },
    { "utf8_surrogate", "{\"aString\":\"\xed\xa0\x80\"}",
      "aString: line 1, column 13: invalid UTF-8", 0 },
    { "utf8_too_large", "{\"aString\":\"\xf4\x90\x80\x80\"}",
      "aString: line 1, column 13: invalid UTF-8", 0 },
    { "utf8_cut", "{\"aString\":\"\xe2\x82\"}", "aString: line 1, column 13: invalid UTF-8",
      0 },
    { "utf8_name", "{\"\xff\":1}", "line 1, column 3: invalid UTF-8", 0 },
    { "utf8_unknown", "{\"new\":\"\xff\"}", "[\"new\"]: line 1, column 9: invalid UTF-8", 0 },
    { "columns_are_characters", "{\"aString\":\"\xc3\xa9\xe2\x82\xac\",\n \"\xc3\xa9\":1, \"a",
      "line 2, column 9: this string does not end", 0 },

    /* Types. */
    { "int32_bool", "{\"anInt32\":true}",
      "anInt32: line 1, column 12: expected an int32, got true", 0 },
    { "int32_object", "{\"anInt32\":{}}",
      "anInt32: line 1, column 12: expected an int32, got an object", 0 },
    { "int32_text", "{\"anInt32\":\"1x\"}",
      "anInt32: line 1, column 12: expected an int32, got \"1x\"", 0 },
    { "int32_empty", "{\"anInt32\":\"\"}",
      "anInt32: line 1, column 12: expected an int32, got \"\"", 0 },
    { "int32_space", "{\"anInt32\":\" 1\"}",
      "anInt32: line 1, column 12: expected an int32, got \" 1\"", 0 },
    { "int32_fraction", "{\"anInt32\":1.5}",
      "anInt32: line 1, column 12: expected an int32, got 1.5", 0 },
    { "int32_small_exponent", "{\"anInt32\":15e-1}",
      "anInt32: line 1, column 12: expected an int32, got 15e-1", 0 },
    { "int32_large", "{\"anInt32\":2147483648}",
      "anInt32: line 1, column 12: 2147483648 is out of range for an int32", 0 },
    { "int32_small", "{\"anInt32\":\"-2147483649\"}",
      "anInt32: line 1, column 12: -2147483649 is out of range for an int32", 0 },
    { "uint32_negative", "{\"aUint32\":-1}",
      "aUint32: line 1, column 12: -1 is out of range for a uint32", 0 },
    { "fixed32_large", "{\"aFixed32\":4294967296}",
      "aFixed32: line 1, column 13: 4294967296 is out of range for a uint32", 0 },
    { "int64_large", "{\"anInt64\":\"9223372036854775808\"}",
      "anInt64: line 1, column 12: 9223372036854775808 is out of range for an int64", 0 },
    { "int64_small", "{\"anInt64\":-9223372036854775809}",
      "anInt64: line 1, column 12: -9223372036854775809 is out of range for an int64", 0 },
    { "int64_exponent", "{\"anInt64\":1e999999999999}",
      "anInt64: line 1, column 12: 1e999999999999 is out of range for an int64", 0 },
    { "uint64_large", "{\"aUint64\":18446744073709551616}",
      "aUint64: line 1, column 12: 18446744073709551616 is out of range for a uint64", 0 },
    { "uint64_negative", "{\"aUint64\":\"-5\"}",
      "aUint64: line 1, column 12: -5 is out of range for a uint64", 0 },
    { "float_large", "{\"aFloat\":3.5e38}",
      "aFloat: line 1, column 11: 3.5e38 is out of range for a float", 0 },
    { "double_large", "{\"aDouble\":-1e309}",
      "aDouble: line 1, column 12: -1e309 is out of range for a double", 0 },
    { "double_text", "{\"aDouble\":\"nan\"}",
      "aDouble: line 1, column 12: expected a double, got \"nan\"", 0 },
    { "bool_text", "{\"aBool\":\"true\"}",
      "aBool: line 1, column 10: expected true or false, got \"true\"", 0 },
    { "bool_number", "{\"aBool\":1}", "aBool: line 1, column 10: expected true or false, got 1",
      0 },
    { "string_number", "{\"aString\":1}",
      "aString: line 1, column 12: expected a string, got 1", 0 },
    { "enum_name", "{\"aColour\":\"gren\"}",
      "aColour: line 1, column 12: unknown value \"gren\"; did you mean \"green\"?", 0 },
    { "enum_far", "{\"aColour\":\"ultraviolet\"}",
      "aColour: line 1, column 12: unknown value \"ultraviolet\"", 0 },
    { "enum_case", "{\"aColour\":\"GREEN\"}",
      "aColour: line 1, column 12: unknown value \"GREEN\"", 0 },
    { "enum_prefix", "{\"aColour\":\"infra\"}",
      "aColour: line 1, column 12: unknown value \"infra\"; did you mean \"infrared\"?", 0 },
    { "enum_nul", "{\"aColour\":\"red\\u0000\"}",
      "aColour: line 1, column 12: unknown value \"red?\"; did you mean \"red\"?", 0 },
    { "enum_bool", "{\"aColour\":false}",
      "aColour: line 1, column 12: expected the name of a value, got false", 0 },
    { "enum_fraction", "{\"aColour\":1.5}",
      "aColour: line 1, column 12: expected an int32, got 1.5", 0 },
    { "bytes_letter", "{\"someBytes\":\"A*==\"}",
      "someBytes: line 1, column 14: expected base64, got \"A*==\"", 0 },
    { "bytes_length", "{\"someBytes\":\"AAAAA\"}",
      "someBytes: line 1, column 14: expected base64, got \"AAAAA\"", 0 },
    { "bytes_padding", "{\"someBytes\":\"AA=\"}",
      "someBytes: line 1, column 14: expected base64, got \"AA=\"", 0 },
    { "bytes_number", "{\"someBytes\":5}",
      "someBytes: line 1, column 14: expected base64, got 5", 0 },
    { "message_text", "{\"child\":\"x\"}",
      "child: line 1, column 10: expected an object, got \"x\"", 0 },
    { "duration_number", "{\"aDuration\":5}",
      "aDuration: line 1, column 14: expected a duration such as \"1.5s\", got 5", 0 },
    { "duration_unit", "{\"aDuration\":\"5m\"}",
      "aDuration: line 1, column 14: expected a duration such as \"1.5s\", got \"5m\"", 0 },
    { "duration_large", "{\"aDuration\":\"315576000000.1s\"}",
      "aDuration: line 1, column 14: 315576000000.1s is out of range for a duration", 0 },
    { "time_date", "{\"aTime\":\"2026-02-29T00:00:00Z\"}",
      "aTime: line 1, column 10: expected a time such as \"2026-01-31T08:15:30Z\", got "
      "\"2026-02-29T00:00:00Z\"",
      0 },
    { "array_object", "{\"int32s\":{}}",
      "int32s: line 1, column 11: expected an array, got an object", 0 },
    { "array_scalar", "{\"int32s\":1}", "int32s: line 1, column 11: expected an array, got 1",
      0 },
    { "array_null", "{\"strings\":[\"a\",null]}",
      "strings[1]: line 1, column 17: expected a string, got null", 0 },
    { "map_array", "{\"byString\":[]}",
      "byString: line 1, column 13: expected an object, got an array", 0 },
    { "map_null", "{\"byString\":{\"a\":null}}",
      "byString[\"a\"]: line 1, column 18: expected a string, got null", 0 },
    { "map_value", "{\"byInt32\":{\"7\":\"x\"}}",
      "byInt32[\"7\"]: line 1, column 17: expected an int32, got \"x\"", 0 },
    { "key_word", "{\"byInt32\":{\"x\":1}}",
      "byInt32: line 1, column 13: expected an integer as the key, got \"x\"", 0 },
    { "key_exponent", "{\"byInt32\":{\"1e1\":1}}",
      "byInt32: line 1, column 13: expected an integer as the key, got \"1e1\"", 0 },
    { "key_minus_zero", "{\"byInt32\":{\"-0\":1}}",
      "byInt32: line 1, column 13: expected an integer as the key, got \"-0\"", 0 },
    { "key_leading_zero", "{\"byInt32\":{\"01\":1}}",
      "byInt32: line 1, column 13: expected an int32, got \"01\"", 0 },
    { "key_large", "{\"byUint32\":{\"4294967296\":true}}",
      "byUint32: line 1, column 14: 4294967296 is out of range for a uint32", 0 },
    { "key_bool", "{\"byBool\":{\"TRUE\":1}}",
      "byBool: line 1, column 12: expected \"true\" or \"false\" as the key, got \"TRUE\"", 0 },
    { "key_nul", "{\"byString\":{\"\\u0000\":\"\"}}",
      "byString: line 1, column 14: \\u0000 cannot be kept in a string", 0 },

    /* Members that come twice. */
    { "duplicate", "{\"anInt32\":1,\n\"anInt32\":1}",
      "line 2, column 1: duplicate member \"anInt32\"", 0 },
    { "duplicate_spelling", "{\"anInt32\":1,\"an_int32\":1}",
      "line 1, column 14: duplicate member \"an_int32\"", 0 },
    { "duplicate_null", "{\"anInt32\":null,\"anInt32\":1}",
      "line 1, column 17: duplicate member \"anInt32\"", 0 },
    { "duplicate_unknown", "{\"x\":1,\"y\":2,\"\\u0078\":3,\"y\":1}",
      "line 1, column 14: duplicate member \"x\"", 0 },
    { "duplicate_inside_unknown", "{\"new\":[{\"a\":{\"b\":1,\"c\":2,\"b\":3}}]}",
      "[\"new\"]: line 1, column 27: duplicate member \"b\"", 0 },
    { "duplicate_key", "{\"byString\":{\"b\":\"\",\"a\":\"\",\"b\":\"\"}}",
      "byString: line 1, column 28: duplicate member \"b\"", 0 },
    { "oneof_twice", "{\"choiceNumber\":1,\"choiceText\":\"\"}",
      "choiceText: line 1, column 32: cannot be given together with choiceNumber", 0 },

    /* Paths. */
    { "path_deep",
      "{\"children\":[{},{\"childByName\":{\"a b\":{\"child\":{\n"
      "  \"an_int64\":true}}}}]}",
      "children[1].childByName[\"a b\"].child.anInt64: line 2, column 14: expected an int64, "
      "got "
      "true",
      0 },
    { "path_hostile", "{\"byInt32\":{\"1\\u001b[2J\\n\xc2\x85\":1}}",
      "byInt32: line 1, column 13: expected an integer as the key, got \"1\\u001b[2J\\n?\"",
      0 },
    { "path_key_hostile", "{\"childByName\":{\"\\u001b[2J\\n\":{\"aBool\":0}}}",
      "childByName[\"?[2J?\"].aBool: line 1, column 40: expected true or false, got 0", 0 },
    { "path_long_key", "{\"byString\":{\"0123456789012345678901234567890123456789x\":1}}",
      "byString[\"0123456789012345678901234567890123456789\u2026\"]: line 1, column 58: "
      "expected a "
      "string, got 1",
      0 },
    { "path_too_long",
      "{\"childByName\":{\"012345678901234567890123456789\":{\"childByName\":{"
      "\"012345678901234567890123456789\":{\"childByName\":{\"k\":{\"aBool\":0}}}}}}}",
      "\u2026.childByName[\"012345678901234567890123456789\"].childByName[\"k\"].aBool: "
      "line 1, column 128: expected true or false, got 0",
      0 },
};

START_TEST(invalid)
{
    const struct invalid *c = &INVALID[_i];
    size_t len = c->len != 0 ? c->len : strlen(c->text);
    char *exact = malloc(len > 0 ? len : 1); /* so that a sanitizer sees a byte read too much */
    ProtobufCMessage *message = NULL;
    struct hf_error err = { "" };
    int code;

    ck_assert_ptr_nonnull(exact);
    memcpy(exact, c->text, len);
    code = hf_json_decode(&holdfast__test__everything__descriptor, exact, len, NULL, &message,
                          &err);
    free(exact);
    ck_assert_msg(code == HF_EINVAL, "invalid/%s returned %d", c->name, code);
    ck_assert_msg(strcmp(err.text, c->error) == 0, "invalid/%s:\n  got  %s\n  want %s", c->name,
                  err.text, c->error);
    ck_assert_ptr_null(message);
}
END_TEST

/* No prefix of a good text is one, and none makes us read past its end. */
START_TEST(every_prefix_is_refused)
{
    static const char TEXT[] =
        "{\"anInt32\":-1.0e1,\"aBool\":true,\"aString\":\"\\u00e9\\ud83d\\ude00\xe2\x82\xac\","
        "\"child\":{\"int32s\":[1,2]},\"new\":[null,{\"a\":false}],\"byString\":{\"k\":\"v\"}}";

    for (size_t len = 0; len < sizeof TEXT - 1; len++) {
        char *prefix = malloc(len > 0 ? len : 1);
        ProtobufCMessage *message = NULL;
        struct hf_error err = { "" };
        int code;

        ck_assert_ptr_nonnull(prefix);
        memcpy(prefix, TEXT, len);
        code = hf_json_decode(&holdfast__test__everything__descriptor, prefix, len, NULL,
                              &message, &err);
        free(prefix);
        ck_assert_msg(code == HF_EINVAL, "%zu bytes gave %d", len, code);
        ck_assert_ptr_nonnull(strstr(err.text, "line 1, column "));
    }
}
END_TEST

static void refuse(const char *text, const char *want)
{
    ProtobufCMessage *message = NULL;
    struct hf_error err = { "" };
    int code =
        hf_json_decode(&holdfast__test__everything__descriptor, text, strlen(text),
                       &(struct hf_json_options){ .reject_unknown = true }, &message, &err);

    ck_assert_int_eq(code, HF_EINVAL);
    ck_assert_str_eq(err.text, want);
}

START_TEST(unknown_members_can_be_refused)
{
    refuse("{\"aStrin\":1}",
           "line 1, column 2: unknown member \"aStrin\"; did you mean \"aString\"?");
    refuse("{\"child\":{\n\"nothing_like_it\":1}}",
           "child: line 2, column 1: unknown member \"nothing_like_it\"");
    refuse(
        "{\"0123456789012345678901234567890123456789012345678901234567890123456789\":1}",
        "line 1, column 2: unknown member \"0123456789012345678901234567890123456789\u2026\"");
}
END_TEST

START_TEST(error_text_is_optional)
{
    ProtobufCMessage *message = NULL;

    ck_assert_int_eq(
        hf_json_decode(&holdfast__test__everything__descriptor, "{]", 2, NULL, &message, NULL),
        HF_EINVAL);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("invalid");

    tcase_add_loop_test(t, invalid, 0, sizeof INVALID / sizeof INVALID[0]);
    tcase_add_test(t, every_prefix_is_refused);
    tcase_add_test(t, unknown_members_can_be_refused);
    tcase_add_test(t, error_text_is_optional);
    return hft_suite_run("schema/json", t, NULL);
}
