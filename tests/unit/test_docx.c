/* test_docx.c - the text of Word documents, and of what is damaged in any place. */
#include "input_runs.h"

#include <libdeflate.h>

/* ---- making ZIP files ---- */

typedef struct zip_writer {
    dp_buffer bytes, directory;
    unsigned count;
} zip_writer;

static void put16(dp_buffer *to, size_t value) {
    const char bytes[2] = {(char)value, (char)(value >> 8)};
    dp_buffer_add(to, bytes, 2);
}

static void put32(dp_buffer *to, size_t value) {
    put16(to, value & 0xFFFF);
    put16(to, value >> 16);
}

/* What both headers of a part have in common, from the flags on. */
static void put_sizes(dp_buffer *to, bool packs, size_t packed, const char *text) {
    put16(to, 0);
    put16(to, packs ? 8 : 0);
    put32(to, 0); /* time */
    put32(to, libdeflate_crc32(0, text, strlen(text)));
    put32(to, packed);
    put32(to, strlen(text));
}

static void add_part(zip_writer *zip, const char *name, const char *text, bool packs) {
    char packed[4096];
    size_t size = strlen(text), length = size, at = zip->bytes.size;
    if (packs) {
        struct libdeflate_compressor *packer = libdeflate_alloc_compressor(6);
        length = libdeflate_deflate_compress(packer, text, size, packed, sizeof packed);
        libdeflate_free_compressor(packer);
        assert_true(length > 0);
    }
    dp_buffer_add(&zip->bytes, "PK\3\4\24\0", 6);
    put_sizes(&zip->bytes, packs, length, text);
    put16(&zip->bytes, strlen(name));
    put16(&zip->bytes, 3);
    dp_buffer_add(&zip->bytes, name, strlen(name));
    dp_buffer_add(&zip->bytes, "xyz", 3); /* an extra field */
    dp_buffer_add(&zip->bytes, packs ? packed : text, length);
    dp_buffer_add(&zip->directory, "PK\1\2\24\0\24\0", 8);
    put_sizes(&zip->directory, packs, length, text);
    put16(&zip->directory, strlen(name));
    for (int i = 0; i < 6; i++)
        put16(&zip->directory, 0);
    put32(&zip->directory, at);
    dp_buffer_add(&zip->directory, name, strlen(name));
    zip->count++;
}

static dp_buffer finish(zip_writer *zip, const char *comment) {
    size_t at = zip->bytes.size;
    dp_buffer_add(&zip->bytes, zip->directory.data, zip->directory.size);
    dp_buffer_add(&zip->bytes, "PK\5\6\0\0\0\0", 8);
    put16(&zip->bytes, zip->count);
    put16(&zip->bytes, zip->count);
    put32(&zip->bytes, zip->directory.size);
    put32(&zip->bytes, at);
    put16(&zip->bytes, strlen(comment));
    dp_buffer_add(&zip->bytes, comment, strlen(comment));
    dp_buffer_free(&zip->directory);
    return zip->bytes;
}

#define COMMENT "a comment"

/* A document with this XML, and notes. */
static dp_buffer make(const char *xml, const char *footnotes, bool packs) {
    zip_writer zip = {.count = 0};
    add_part(&zip, "[Content_Types].xml", "<Types/>", packs);
    add_part(&zip, "word/document.xml", xml, packs);
    if (footnotes)
        add_part(&zip, "word/footnotes.xml", footnotes, packs);
    return finish(&zip, COMMENT);
}

typedef struct outcome {
    dp_buffer text;
    char message[sizeof((doppel_error *)NULL)->message]; /* of a document that was left out; else empty */
} outcome;

static doppel_status take_text(void *state, const doppel_document *document, doppel_output *output) {
    (void)state;
    return doppel_output_write(output, document->text);
}

static doppel_status keep_text(void *user, doppel_slice bytes) {
    return dp_buffer_add(&((outcome *)user)->text, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static void keep_message(const doppel_error *what, void *user) {
    strcpy(((outcome *)user)->message, what->message);
}

/* Reads bytes as a file of this name. */
static outcome read_as(const char *name, const char *bytes, size_t length, size_t max_record) {
    outcome o = {.text = {0}};
    doppel_input_options options = {
        .size = sizeof options, .threads = 1, .max_record = max_record, .bad = keep_message, .user = &o};
    doppel_work work = {.user = &o, .document = take_text, .emit = keep_text};
    write_bytes(name, bytes, length);
    assert_int_equal(doppel_input_run(&name, 1, &options, &work, NULL, NULL), DOPPEL_OK);
    dp_buffer_add(&o.text, "", 1);
    return o;
}

static void check_text(const char *xml, const char *expected) {
    for (int packs = 0; packs < 2; packs++) {
        dp_buffer file = make(xml, NULL, packs);
        outcome o = read_as("a.docx", file.data, file.size, 0);
        assert_string_equal(o.text.data, expected);
        assert_string_equal(o.message, "");
        dp_buffer_free(&o.text);
        dp_buffer_free(&file);
    }
}

/* ---- tests ---- */

static void test_text(void **state) {
    (void)state;
    check_text(
        "<w:document><w:body><w:p><w:r><w:t>One</w:t></w:r><w:r><w:t xml:space=\"preserve\"> two</w:t></w:r></w:p>"
        "<w:p/><w:p><w:r><w:t>three</w:t><w:tab/><w:t>four</w:t><w:br/><w:t>five</w:t></w:r></w:p></w:body>"
        "</w:document>",
        "One two\n\nthree\tfour\nfive\n");
    check_text(
        "<?xml version=\"1.0\"?><!-- <t>no</t> --><x:p><x:t a='>' b=\"'>\">&lt;b&gt; &amp;&#233;&#x20AC;&#x1F600;"
        "&quot;&apos;</x:t></x:p>",
        "<b> &\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"'\n");
    check_text("<p><t>a &nosuch; b & c &#xZZ; &#0; &#xD800; &#x110000; &#9999999999;</t></p>",
               "a &nosuch; b & c &#xZZ; \xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD\n");
    check_text(
        "<p><r>not text</r><t>kept</t><del><r><delText>gone</delText></r></del><instrText>PAGE</instrText>"
        "<moveFrom><r><t>moved</t></r></moveFrom><Choice><t> box</t></Choice><Fallback><p><t>box</t></p></Fallback>"
        "<t>!</t></p>",
        "kept box!\n");
    check_text("<p><t>never closed", "never closed");
    check_text("<p><t>no end of a tag</t", "no end of a tag");
}

static void test_notes_follow(void **state) {
    (void)state;
    dp_buffer file = make("<p><t>text</t></p>", "<p><t>a note</t></p>", true);
    outcome o = read_as("a.DOCX", file.data, file.size, 0);
    assert_string_equal(o.text.data, "text\na note\n");
    dp_buffer_free(&o.text);
    dp_buffer_free(&file);
}

static void check_refused(const char *name, const char *bytes, size_t length, size_t max_record, const char *why) {
    outcome o = read_as(name, bytes, length, max_record);
    assert_string_equal(o.text.data, "");
    assert_non_null(strstr(o.message, why));
    dp_buffer_free(&o.text);
}

static void test_other_files(void **state) {
    (void)state;
    check_refused("a.docx", "", 0, 0, "not a Word document");
    check_refused("a.docx", "some text", 9, 0, "not a Word document");
    check_refused("a.docx", "\xD0\xCF\x11\xE0\xA1\xB1", 6, 0, "with a password");
    check_refused("a.docx", "PK\3\4 and no more", 16, 0, "damaged");
    zip_writer zip = {.count = 0};
    add_part(&zip, "content.xml", "<p><t>x</t></p>", true);
    dp_buffer file = finish(&zip, "");
    check_refused("a.docx", file.data, file.size, 0, "no word/document.xml");
    dp_buffer_free(&file);
    static const char *const without_text[] = {"", "<p><r><pict/></r></p>", "<p><t> \t\n</t></p><p/>"};
    for (size_t i = 0; i < sizeof without_text / sizeof *without_text; i++) {
        file = make(without_text[i], NULL, true);
        check_refused("a.docx", file.data, file.size, 0, "without text");
        dp_buffer_free(&file);
    }
    file = make("\xFF\xFE<", NULL, true);
    check_refused("a.docx", file.data, file.size, 0, "UTF-16");
    dp_buffer_free(&file);
    char xml[4000] = "<p><t>";
    memset(xml + 6, 'x', 3000);
    file = make(xml, NULL, true);
    check_refused("a.docx", file.data, file.size, 1000, "longer than the limit");
    dp_buffer_free(&file);
}

/* Cut at any place before its comment, it is refused; with any byte changed, it is read or refused. */
static void test_damage(void **state) {
    (void)state;
    for (int packs = 0; packs < 2; packs++) {
        dp_buffer file = make("<p><t>some text &amp; more of it</t></p>", "<p><t>a note</t></p>", packs);
        for (size_t length = 1; length < file.size - strlen(COMMENT); length += 1 + length % 3)
            check_refused("a.docx", file.data, length, 0, "Word document");
        for (size_t i = 0; i < file.size; i++) {
            file.data[i] = (char)(file.data[i] ^ (i % 2 ? 0x80 : 0x01));
            outcome o = read_as("a.docx", file.data, file.size, 0);
            dp_buffer_free(&o.text);
            file.data[i] = (char)(file.data[i] ^ (i % 2 ? 0x80 : 0x01));
        }
        dp_buffer_free(&file);
    }
}

/* A document is not read with other words than it had. */
static void test_damaged_text(void **state) {
    (void)state;
    const char *xml = "<p><t>some text &amp; more of it</t></p>";
    dp_buffer file = make(xml, "<p><t>a note</t></p>", false);
    char *found = memmem(file.data, file.size, xml, strlen(xml));
    assert_non_null(found);
    for (size_t i = 0; i < strlen(xml); i++) {
        found[i] ^= 1;
        check_refused("a.docx", file.data, file.size, 0, "damaged");
        found[i] ^= 1;
    }
    dp_buffer_free(&file);
}

/* The library runs no program unless it is told to. */
static void test_pdf_is_left_out(void **state) {
    (void)state;
    check_refused("a.pdf", "%PDF-1.4\n", 9, 0, "pdftotext");
    check_refused("no-ending", "%PDF-1.4\n", 9, 0, "pdftotext");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_text),   TEST(test_notes_follow), TEST(test_other_files),
        TEST(test_damage), TEST(test_damaged_text), TEST(test_pdf_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
