/* What a server says in XML, and what it says when it is none. */
#include <string.h>

#include "io/s3_xml.h"
#include "support/suite.h"

static struct hf_bytes doc_of(const char *text)
{
    return (struct hf_bytes){ text, strlen(text) };
}

START_TEST(texts_are_found_and_their_entities_replaced)
{
    struct hf_bytes doc = doc_of("<?xml?><Error xmlns=\"x\"><Code>NoSuchKey</Code>"
                                 "<ETag>&quot;a&amp;b&#34;</ETag><Empty></Empty></Error>");
    char text[32] = "";

    ck_assert(hf_s3_xml_text(doc, "Code", text, sizeof text));
    ck_assert_str_eq(text, "NoSuchKey");
    ck_assert(hf_s3_xml_text(doc, "ETag", text, sizeof text));
    ck_assert_str_eq(text, "\"a&b\"");
    ck_assert(hf_s3_xml_text(doc, "Empty", text, sizeof text));
    ck_assert_str_eq(text, "");
}
END_TEST

/* Not there, not closed, too long, with something in it, with an entity that nobody knows. */
static const char *const NOTHING[] = {
    "",
    "<Cod>x</Cod>",
    "<Code>",
    "<Code>x<Code>",
    "<Code>a<b>c</b></Code>",
    "<Code>&nbsp;</Code>",
    "<Code>&am</Code>",
    "<Code>123456789</Code>",
};

START_TEST(what_is_no_such_text_leaves_everything_as_it_was)
{
    char text[8] = "before";

    ck_assert(!hf_s3_xml_text(doc_of(NOTHING[_i]), "Code", text, sizeof text));
    ck_assert_str_eq(text, "before");
}
END_TEST

START_TEST(elements_come_one_after_the_other)
{
    struct hf_bytes doc = doc_of("<C><K>1</K></C><C><K>2</K></C><C><K>3</K>"), inner;
    char text[8] = "";

    ck_assert(hf_s3_xml_next(&doc, "C", &inner));
    ck_assert(hf_s3_xml_text(inner, "K", text, sizeof text));
    ck_assert_str_eq(text, "1");
    ck_assert(hf_s3_xml_next(&doc, "C", &inner));
    ck_assert(hf_s3_xml_text(inner, "K", text, sizeof text));
    ck_assert_str_eq(text, "2");
    ck_assert(!hf_s3_xml_next(&doc, "C", &inner));
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char text[32] = "";

    hf_buf_puts(&out, "<T>");
    hf_s3_xml_escape(&out, "\"a<b>&c\"");
    hf_buf_puts(&out, "</T>");
    ck_assert(hf_s3_xml_text((struct hf_bytes){ out.data, out.len }, "T", text, sizeof text));
    ck_assert_str_eq(text, "\"a<b>&c\"");
}
END_TEST

int main(void)
{
    TCase *xml = tcase_create("xml");

    tcase_add_test(xml, texts_are_found_and_their_entities_replaced);
    tcase_add_loop_test(xml, what_is_no_such_text_leaves_everything_as_it_was, 0,
                        sizeof NOTHING / sizeof NOTHING[0]);
    tcase_add_test(xml, elements_come_one_after_the_other);
    tcase_add_test(xml, what_is_written_is_read_back);
    return hft_suite_run("io/s3_xml", xml, NULL);
}
