/* test_mbox.c - mail folders: where messages begin, their fields, parts, encodings and charsets, broken ones. */
#include "input_runs.h"

#define FROM "From a@b Thu Jan  1 00:00:00 1970\n"

static void check_mail(const char *text, const char *output, const char *reports) {
    write_text("a.mbox", text);
    check("a.mbox", output, reports);
}

/* The same for one message with this head and body. */
static void check_message(const char *rest, const char *output, const char *reports) {
    dp_buffer text = {0};
    dp_buffer_printf(&text, "%sMessage-ID: <1>\n%s", FROM, rest);
    dp_buffer_add(&text, "", 1);
    check_mail(text.data, output, reports);
    dp_buffer_free(&text);
}

/* The text of a field. */
static void check_words(const char *value, const char *expected) {
    dp_buffer message = {0}, output = {0};
    dp_buffer_printf(&message, "Subject: %s\n\ntext\n", value);
    dp_buffer_printf(&output, "1|text\n||%s\n", expected);
    dp_buffer_add(&message, "", 1);
    dp_buffer_add(&output, "", 1);
    check_message(message.data, output.data, "");
    dp_buffer_free(&message);
    dp_buffer_free(&output);
}

/* ---- folders ---- */

static void messages_are_documents(void **state) {
    (void)state;
    check_mail(FROM "Message-ID: <1@x>\nSubject: One\n\nfirst\n\n" FROM
                    "message-id:  <2@x> \nSUBJECT: Two\n words\n\nsecond\n",
               "1@x|first\n\n||One\n2@x|second\n||Two words\n", "");
}

static void folders_are_told_by_content(void **state) {
    (void)state;
    write_text("inbox", FROM "Subject: s\n\ntext\n");
    check("inbox", "inbox:1|text\n||s\n", "");
    write_text("letter", "From here on, all is text:\n\nno mail\n");
    check("letter", "letter|From here on, all is text:\n\nno mail\n||\n", "");
}

static void ids_that_are_missing_name_the_first_line(void **state) {
    (void)state;
    check_mail("\n" FROM "Subject: s\n\na\n\n\n" FROM "\nb\n", "a.mbox:2|a\n\n\n||s\na.mbox:8|b\n||\n", "");
}

static void lines_that_begin_so_are_text_unless_behind_an_empty_line_with_a_time(void **state) {
    (void)state;
    check_message("\na\nFrom x Thu Jan  1 00:00:00 1970\n\nFrom now on\n>From b\n>>From c\n>Fromage\n",
                  "1|a\nFrom x Thu Jan  1 00:00:00 1970\n\nFrom now on\nFrom b\n>From c\n>Fromage\n||\n", "");
}

static void lines_may_end_in_crlf(void **state) {
    (void)state;
    check_mail("From a 10:00\r\nMessage-ID: <1>\r\nSubject: a\r\n b\r\n\r\ntext\r\n\r\nFrom b 11:00\r\nSubject: "
               "c\r\n\r\nmore\r\n",
               "1|text\r\n\r\n||a b\na.mbox:8|more\r\n||c\n", "");
}

static void what_is_no_message_is_bad(void **state) {
    (void)state;
    check_mail("some text\n\n" FROM "Subject: s\n\na\n", "a.mbox:3|a\n||s\n",
               "a.mbox:1: not a message: it begins with neither a From line nor a field\n");
    check_mail("", "", "");
    check_mail("\n\n\n", "", "");
    check_mail("Subject: s\n\na\n", "a.mbox:1|a\n||s\n", "");
}

/* ---- parts ---- */

static void multiparts_give_their_first_plain_text(void **state) {
    (void)state;
    check_message("Content-Type: multipart/mixed; boundary=\"out er\"\n\nprologue\n--out er\n"
                  "Content-Type: multipart/alternative;\n boundary=in\n\n"
                  "--in\nContent-Type: text/html\n\n<p>page\n--in\nContent-Type: text/plain\n\nplain\n--in--\n\n"
                  "--out er\nContent-Type: text/plain\n\nfooter\n--out er--\nepilogue\n",
                  "1|plain||\n", "");
}

static void attachments_are_left_out(void **state) {
    (void)state;
    check_message("Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n"
                  "Content-Disposition: attachment; filename=a.txt\n\nattached\n--b\n\nbody\n--b--\n",
                  "1|body||\n", "");
    check_message("Content-Type: image/png\n\nxxxx\n", "1|||\n", "");
}

static void broken_multiparts_give_what_they_have(void **state) {
    (void)state;
    check_message("Content-Type: multipart/mixed\n\nno boundary\n", "1|no boundary\n||\n", "");
    check_message("Content-Type: multipart/mixed; boundary=b\n\nnever there\n", "1|never there\n||\n", "");
    check_message("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nno end\n", "1|no end\n||\n", "");
    check_message("Content-Type: multipart/mixed; boundary=b\n\n--b\n--b\n--bx\n\ntext", "1|text||\n", "");
    check_message("Content-Type: text/plain; charset=\"\n\nopen quote\n", "1|open quote\n||\n", "");
    check_message("Subject: only a head", "1|||only a head\n", "");
}

static void multiparts_are_looked_into_to_a_limit(void **state) {
    (void)state;
    dp_buffer text = {0};
    for (int i = 0; i < 2000; i++)
        dp_buffer_printf(&text, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i);
    dp_buffer_add(&text, "\ndeep", 6);
    check_message(text.data, "1|||\n", "");
    text.size = 0;
    dp_buffer_printf(&text, "Content-Type: multipart/mixed; boundary=b\n\n");
    for (int i = 0; i < 3000; i++)
        dp_buffer_printf(&text, "--b\nContent-Type: image/png\n\nx\n");
    dp_buffer_add(&text, "--b\n\nlast", 10);
    check_message(text.data, "1|||\n", "");
    dp_buffer_free(&text);
}

/* ---- encodings ---- */

static void transfer_encodings_are_undone(void **state) {
    (void)state;
    check_message("Content-Transfer-Encoding: BASE64\n\naGVs\nbG8=\n IQ==\n", "1|hello!||\n", "");
    check_message("Content-Transfer-Encoding: quoted-printable\n\na=3Db soft=\n line =\nend=20\n=zz =4 =",
                  "1|a=b soft line end \n=zz =4 ||\n", "");
    check_message("Content-Transfer-Encoding: 8bit\n\na=3Db\n", "1|a=3Db\n||\n", "");
}

static void charsets_become_utf8(void **state) {
    (void)state;
    check_message("Content-Type: text/plain; charset=iso-8859-1\n\ncaf\xE9 \x80\n", "1|caf\xC3\xA9 \xE2\x82\xAC\n||\n",
                  "");
    check_message("Content-Type: text/plain; format=flowed; charset=\"KOI8-R\"\n\n\xF0\xD2\n",
                  "1|\xD0\x9F\xD1\x80\n||\n", "");
    check_message("Content-Type: text/plain; charset=iso-2022-jp\n\n\x1B$B$\"\x1B(B\n", "1|\xE3\x81\x82\n||\n", "");
    /* Letters that may go with the mark behind them are held back by iconv. */
    check_message("Content-Type: text/plain; charset=windows-1255\n\n\xE9\xF9", "1|\xD7\x99\xD7\xA9||\n", "");
    check_words("=?windows-1258?Q?a?=", "a");
    check_message("\nna\xEFve\n", "1|na\xC3\xAFve\n||\n", "");
    check_message("\nna\xC3\xAFve\n", "1|na\xC3\xAFve\n||\n", "");
}

static void what_cannot_be_read_is_counted(void **state) {
    (void)state;
    check_message("Content-Type: text/plain; charset=utf-8\n\na\xFFz\n", "1|a\xEF\xBF\xBDz\n||\n",
                  "a.mbox:1: repaired: bytes that are not utf-8 became U+FFFD\n");
    check_message("Content-Type: text/plain; charset=gb2312\n\na\xFF\xFFz\n", "1|a\xEF\xBF\xBD\xEF\xBF\xBDz\n||\n",
                  "a.mbox:1: repaired: bytes that are not gb2312 became U+FFFD\n");
    check_message("Content-Type: text/plain; charset=\"x//TRANSLIT\"\n\ncaf\xE9\n", "1|caf\xC3\xA9\n||\n",
                  "a.mbox:1: repaired: charset \"x//TRANSLIT\" is not known; read as UTF-8, or else windows-1252\n");
}

static doppel_status write_page(void *state, const doppel_document *d, doppel_output *output) {
    (void)state;
    doppel_output_write(output, d->html);
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, (doppel_slice){d->charset, d->charset ? strlen(d->charset) : 0});
    doppel_output_write(output, doppel_slice_of("|"));
    doppel_output_write(output, d->extra[0]);
    return doppel_output_write(output, doppel_slice_of("\n"));
}

static void a_page_beside_an_empty_text_is_used(void **state) {
    (void)state;
    const char *path = "a.mbox";
    result r = {0};
    doppel_input_options options = {.size = sizeof options, .extra_keys = (const char *[]){"date"}, .extra_count = 1};
    doppel_work work = {.user = &r, .document = write_page, .emit = collect};
    write_text(path, FROM "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n \n\n--b\n"
                          "Content-Type: text/html\n\n<p>page\n--b--\n");
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, NULL, NULL), DOPPEL_OK);
    dp_buffer_add(&r.output, "", 1);
    assert_string_equal(r.output.data, "<p>page||\n");
    free_result(&r);
}

static void pages_and_more_fields_are_given(void **state) {
    (void)state;
    const char *path = "a.mbox", *extra[] = {"date"};
    result r = {0};
    doppel_work work = {.user = &r, .document = write_page, .emit = collect};
    doppel_input_options options = {.size = sizeof options, .extra_keys = extra, .extra_count = 1};
    write_text(path, FROM "Date: Thu, 1 Jan\nContent-Type: text/html; charset=koi8-r\n"
                          "Content-Transfer-Encoding: quoted-printable\n\n<p>=F0\n");
    assert_int_equal(doppel_input_run(&path, 1, &options, &work, NULL, NULL), DOPPEL_OK);
    dp_buffer_add(&r.output, "", 1);
    assert_string_equal(r.output.data, "<p>\xF0\n|koi8-r|Thu, 1 Jan\n");
    free_result(&r);
}

/* ---- subjects ---- */

static void charsets_have_many_names(void **state) {
    (void)state;
    check_words("=?cp1251?Q?=CF?= =?x-gbk?Q?=C4=E3?= =?latin2?Q?=B1?=", "\xD0\x9F\xE4\xBD\xA0\xC4\x85");
    check_words("=?SJIS?Q?=82=A0?= =?cp949?Q?=B0=A1?= =?iso-8859-11?Q?=A1?=", "\xE3\x81\x82\xEA\xB0\x80\xE0\xB8\x81");
}

static void encoded_words_are_decoded(void **state) {
    (void)state;
    check_words("plain  text\r\n\tfolded", "plain text folded");
    check_words("=?utf-8?Q?caf=C3=A9_x?=", "caf\xC3\xA9 x");
    check_words("=?ISO-8859-1?q?a?= b =?utf-8*en?B?w6k=?=", "a b \xC3\xA9");
    check_words("=?utf-8?B?w6k=?=\n =?utf-8?B?w6k=?= =?koi8-r?Q?=F0?=", "\xC3\xA9\xC3\xA9\xD0\x9F");
    check_words("=?utf-8?Q?=C3?= =?UTF-8?Q?=A9?=", "\xC3\xA9"); /* a character cut in two */
    check_words("a=?utf-8?Q?b?=c", "abc");
    check_words("caf\xE9 na\xC3\xAFve", "caf\xC3\xA9 na\xC3\xAFve");
}

static void broken_words_stay(void **state) {
    (void)state;
    check_words("=?utf-8?Q?open", "=?utf-8?Q?open");
    check_words("=?utf-8?X?a?=", "=?utf-8?X?a?=");
    check_words("=??Q?a?=", "=??Q?a?=");
    check_words("=? =?= =?a?", "=? =?= =?a?");
    check_words("", "");
    check_words("  ", "");
    check_words("=?none-such?Q?a?=", "a");
    check_words("=?utf-8?Q?=FF?=", "\xEF\xBF\xBD");
}

/* Words without an end are not looked for to the end of the field, each of them anew. */
static void many_words_without_an_end_take_little_time(void **state) {
    (void)state;
    dp_buffer value = {0};
    for (int i = 0; i < 300000; i++)
        dp_buffer_add(&value, "=?a?Q?x", 7);
    dp_buffer_add(&value, "", 1);
    check_words(value.data, value.data);
    dp_buffer_free(&value);
}

/* ---- cutting ---- */

static const char sample[] =
    "\n" FROM "Subject: a\n\ntext\n\nFrom now on, text\n\n" FROM "Subject: b\r\n\r\nmore\r\n\r\n" FROM "\n\n\n" FROM
    "Message-ID: <x>\n\n>From here\n\n\n\n\n" FROM "junk\n";

static void blocks_may_be_cut_anywhere(void **state) {
    (void)state;
    const char *path = "a.mbox";
    write_text(path, sample);
    result whole = run_path(path);
    assert_int_equal(whole.counts.documents, 5);
    check_every_cut(path, strlen(sample), &(doppel_input_options){0}, &whole);
    free_result(&whole);
}

static void messages_that_are_too_long_are_passed_over(void **state) {
    (void)state;
    const char *path = "a.mbox";
    dp_buffer text = {0};
    dp_buffer_printf(&text, "%sMessage-ID: <1>\n\na\n\n%s\n", FROM, FROM);
    for (int i = 0; i < 500; i++)
        dp_buffer_printf(&text, "a long line\n\nFrom here\n");
    dp_buffer_printf(&text, "\n%sMessage-ID: <2>\n\nb\n", FROM);
    write_bytes(path, text.data, text.size);
    for (size_t block = 64; block < 20000; block *= 7) {
        dp_input_sizes sizes = {.block = block, .small_file = 0, .batch_files = 1, .pending = 1 << 20};
        doppel_input_options options = {.threads = 1, .max_record = 200};
        result r = run_job((dp_input_job){.paths = &path, .path_count = 1, .sizes = &sizes}, &options);
        assert_string_equal(r.output.data, "1|a\n\n||\n2|b\n||\n");
        assert_string_equal(r.reports.data, "a.mbox:6: longer than the limit of 200 bytes; --max-record sets it\n");
        free_result(&r);
    }
    dp_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(messages_are_documents),
        TEST(folders_are_told_by_content),
        TEST(ids_that_are_missing_name_the_first_line),
        TEST(lines_that_begin_so_are_text_unless_behind_an_empty_line_with_a_time),
        TEST(lines_may_end_in_crlf),
        TEST(what_is_no_message_is_bad),
        TEST(multiparts_give_their_first_plain_text),
        TEST(attachments_are_left_out),
        TEST(broken_multiparts_give_what_they_have),
        TEST(multiparts_are_looked_into_to_a_limit),
        TEST(transfer_encodings_are_undone),
        TEST(charsets_become_utf8),
        TEST(what_cannot_be_read_is_counted),
        TEST(a_page_beside_an_empty_text_is_used),
        TEST(pages_and_more_fields_are_given),
        TEST(encoded_words_are_decoded),
        TEST(charsets_have_many_names),
        TEST(broken_words_stay),
        TEST(many_words_without_an_end_take_little_time),
        TEST(blocks_may_be_cut_anywhere),
        TEST(messages_that_are_too_long_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
