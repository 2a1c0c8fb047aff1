/* docx.c - Word documents (.docx): a ZIP file in which word/document.xml has the text, and footnotes.xml and
 * endnotes.xml next to it have the notes.
 *
 * The ZIP file is in memory. Its directory is at its end; each part that is wanted is unpacked at once, into as
 * many bytes as the directory says, which are limited. Of the XML, the text of <t> elements counts; paragraphs, line
 * breaks and tabs separate. What was deleted or moved away while changes were tracked, field codes, and the second
 * rendering of a picture's text (<Fallback>) do not count. Every place that the file names is checked against its
 * length.
 *
 * A document without text is left out: those that have pictures of their pages only would all be copies of each
 * other. */
#include "input/reader.h"

#include <libdeflate.h>

#include <string.h>

/* ---- the ZIP file ---- */

static uint32_t get16(const char *p) {
    const unsigned char *b = (const unsigned char *)p;
    return b[0] | (uint32_t)b[1] << 8;
}

static uint32_t get32(const char *p) {
    return get16(p) | get16(p + 2) << 16;
}

/* Sizes of the three kinds of headers without their names and comments; a comment at the end has at most 64 KiB. */
enum { LOCAL_HEADER = 30, DIRECTORY_ENTRY = 46, DIRECTORY_END = 22, LONGEST_COMMENT = 65535 };

/* A file inside: where its bytes begin, packed. */
typedef struct zip_part {
    const char *data;
    size_t packed, size;
    uint32_t checksum; /* 0: it has none */
    bool stored;       /* not compressed */
} zip_part;

/* Where the directory's end record is; NULL: there is none. */
static const char *find_directory_end(doppel_slice zip) {
    size_t farthest = DIRECTORY_END + LONGEST_COMMENT;
    const char *last = zip.length > farthest ? zip.data + zip.length - farthest : zip.data;
    for (const char *p = zip.data + zip.length; p - last >= DIRECTORY_END; p--)
        if (!memcmp(p - DIRECTORY_END, "PK\5\6", 4))
            return p - DIRECTORY_END;
    return NULL;
}

/* Fills `part` from its entry in the directory: false when it is encrypted, packed otherwise, or out of the file. */
static bool take_part(doppel_slice zip, const char *entry, zip_part *part) {
    size_t at = get32(entry + 42), method = get16(entry + 10);
    bool encrypted = get16(entry + 8) & 1;
    *part = (zip_part){.packed = get32(entry + 20), .size = get32(entry + 24), .stored = method == 0};
    part->checksum = (uint32_t)get32(entry + 16);
    if (encrypted || (method != 0 && method != 8) || at > zip.length || zip.length - at < LOCAL_HEADER)
        return false;
    const char *local = zip.data + at;
    size_t head = LOCAL_HEADER + get16(local + 26) + get16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0 || head > zip.length - at || part->packed > zip.length - at - head)
        return false;
    part->data = local + head;
    return !part->stored || part->packed == part->size;
}

typedef enum docx_result {
    DOCX_READ,
    DOCX_NO_ZIP,  /* it does not begin as a ZIP file does */
    DOCX_OLD,     /* the format before it, which documents with a password have too */
    DOCX_DAMAGED, /* or encrypted */
    DOCX_NO_TEXT, /* a ZIP file of something else */
    DOCX_UTF16,
    DOCX_EMPTY,
    DOCX_TOO_LONG,
    DOCX_NO_MEMORY
} docx_result;

typedef enum part_result { PART_FOUND, PART_ABSENT, PART_DAMAGED } part_result;

static part_result find_part(doppel_slice zip, const char *end, const char *name, zip_part *part) {
    size_t at = get32(end + 16), count = get16(end + 10), length = strlen(name);
    for (; count; count--) {
        if (at > zip.length || zip.length - at < DIRECTORY_ENTRY || memcmp(zip.data + at, "PK\1\2", 4) != 0)
            return PART_DAMAGED;
        const char *entry = zip.data + at;
        size_t name_length = get16(entry + 28),
               size = DIRECTORY_ENTRY + name_length + get16(entry + 30) + get16(entry + 32);
        if (size > zip.length - at)
            return PART_DAMAGED;
        if (name_length == length && !memcmp(entry + DIRECTORY_ENTRY, name, length))
            return take_part(zip, entry, part) ? PART_FOUND : PART_DAMAGED;
        at += size;
    }
    return PART_ABSENT;
}

static docx_result check_part(const zip_part *part, const dp_buffer *xml) {
    bool same = !part->checksum || libdeflate_crc32(0, xml->data, xml->size) == part->checksum;
    return same ? DOCX_READ : DOCX_DAMAGED;
}

/* Unpacks a part into `xml`. */
static docx_result unpack(const zip_part *part, size_t limit, dp_buffer *xml) {
    if (part->size > limit)
        return DOCX_TOO_LONG;
    if (!dp_reserve(&xml->data, &xml->capacity, part->size + 1, 1))
        return DOCX_NO_MEMORY;
    xml->size = part->size;
    if (part->stored) {
        memcpy(xml->data, part->data, part->size);
        return check_part(part, xml);
    }
    struct libdeflate_decompressor *unpacker = libdeflate_alloc_decompressor();
    if (!unpacker)
        return DOCX_NO_MEMORY;
    enum libdeflate_result result =
        libdeflate_deflate_decompress(unpacker, part->data, part->packed, xml->data, part->size, NULL);
    libdeflate_free_decompressor(unpacker);
    return result == LIBDEFLATE_SUCCESS ? check_part(part, xml) : DOCX_DAMAGED;
}

/* ---- the text of its XML ---- */

typedef struct xml_reader {
    const char *p, *end;
    dp_buffer *out;
    bool in_text;
    size_t skipped; /* depth inside an element that does not count; 0: outside */
    bool failed;    /* no memory */
} xml_reader;

static void add(xml_reader *x, const char *bytes, size_t length) {
    if (!x->skipped)
        x->failed = !dp_buffer_add(x->out, bytes, length) || x->failed;
}

static void add_point(xml_reader *x, uint32_t point) {
    char bytes[4];
    if (point == 0 || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        point = 0xFFFD;
    size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 1; point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3F));
    bytes[0] = (char)(lead[length] | point);
    add(x, bytes, length);
}

/* The character of &...; at p, `length` bytes between; false: it is none that is known. */
static bool add_entity(xml_reader *x, const char *p, size_t length) {
    static const struct {
        const char *name;
        char is;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == length && !memcmp(names[i].name, p, length)) {
            add(x, &names[i].is, 1);
            return true;
        }
    if (length < 2 || *p != '#')
        return false;
    bool hex = p[1] == 'x';
    uint32_t point = 0;
    for (size_t i = hex ? 2 : 1; i < length; i++) {
        unsigned digit = (unsigned char)p[i] - '0', letter = ((unsigned char)p[i] | 32U) - 'a';
        if (digit > 9 && !(hex && letter < 6))
            return false;
        point = point * (hex ? 16 : 10) + (digit <= 9 ? digit : letter + 10);
        if (point > 0x10FFFF)
            point = 0x110000; /* none: it becomes U+FFFD */
    }
    add_point(x, point);
    return true;
}

/* The text up to the next tag. */
static void read_text(xml_reader *x) {
    const char *tag = memchr(x->p, '<', (size_t)(x->end - x->p)), *stop = tag ? tag : x->end;
    while (x->in_text && x->p < stop) {
        const char *entity = memchr(x->p, '&', (size_t)(stop - x->p));
        add(x, x->p, (size_t)((entity ? entity : stop) - x->p));
        if (!entity)
            break;
        size_t room = (size_t)(stop - entity - 1), longest = room < 12 ? room : 12;
        const char *semicolon = memchr(entity + 1, ';', longest);
        bool known = semicolon && add_entity(x, entity + 1, (size_t)(semicolon - entity - 1));
        if (!known)
            add(x, "&", 1);
        x->p = known ? semicolon + 1 : entity + 1;
    }
    x->p = stop;
}

static bool is_name(const char *name, size_t length, const char *wanted) {
    return strlen(wanted) == length && !memcmp(name, wanted, length);
}

/* What an element means, by its name without a prefix. */
static void take_tag(xml_reader *x, const char *name, size_t length, bool closes, bool empty) {
    bool uncounted = is_name(name, length, "Fallback") || is_name(name, length, "moveFrom");
    if (uncounted && !empty)
        x->skipped = closes ? x->skipped - (x->skipped > 0) : x->skipped + 1;
    else if (is_name(name, length, "t"))
        x->in_text = !closes && !empty;
    else if (is_name(name, length, "tab") && !closes)
        add(x, "\t", 1);
    else if ((is_name(name, length, "p") && (closes || empty)) ||
             ((is_name(name, length, "br") || is_name(name, length, "cr")) && !closes))
        add(x, "\n", 1);
    else if (is_name(name, length, "noBreakHyphen") && !closes)
        add(x, "-", 1);
}

/* Where a tag that begins at p ends: after its '>', which may stand in an attribute's quotes too. */
static const char *tag_end(const char *p, const char *end) {
    for (char quote = 0; p < end; p++) {
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else if (*p == '>')
            return p + 1;
    }
    return end;
}

/* Passes what begins with <! or <?: comments, declarations. Word writes no CDATA. */
static void pass_other(xml_reader *x) {
    const char *closing = x->end - x->p >= 4 && !memcmp(x->p, "<!--", 4) ? "-->" : x->p[1] == '?' ? "?>" : ">";
    const char *found = memmem(x->p, (size_t)(x->end - x->p), closing, strlen(closing));
    x->p = found ? found + strlen(closing) : x->end;
}

static bool read_xml(const dp_buffer *xml, dp_buffer *out) {
    xml_reader x = {.p = xml->data, .end = xml->data + xml->size, .out = out};
    while (x.p < x.end && !x.failed) {
        read_text(&x);
        if (x.end - x.p < 2) {
            break;
        } else if (x.p[1] == '!' || x.p[1] == '?') {
            pass_other(&x);
        } else {
            bool closes = x.p[1] == '/';
            const char *name = x.p + 1 + closes, *end = tag_end(name, x.end), *stop = name;
            while (stop < end && !strchr(" \t\r\n/>", *stop))
                stop++;
            const char *colon = memchr(name, ':', (size_t)(stop - name));
            name = colon ? colon + 1 : name;
            take_tag(&x, name, (size_t)(stop - name), closes, end - x.p >= 3 && end[-2] == '/');
            x.p = end;
        }
    }
    return !x.failed;
}

/* ---- all of it ---- */

static docx_result add_part(doppel_slice zip, const char *end, const char *name, size_t limit, dp_buffer *xml,
                            dp_buffer *out) {
    zip_part part;
    part_result found = find_part(zip, end, name, &part);
    if (found != PART_FOUND)
        return found == PART_ABSENT ? DOCX_NO_TEXT : DOCX_DAMAGED;
    docx_result result = unpack(&part, limit, xml);
    if (result == DOCX_READ && dp_is_utf16(xml->data, xml->size))
        return DOCX_UTF16;
    return result == DOCX_READ && !read_xml(xml, out) ? DOCX_NO_MEMORY : result;
}

/* Writes the text to `out`; no part of the document may have more than `limit` bytes. `xml` is memory to work in. */
static docx_result read_docx(doppel_slice zip, size_t limit, dp_buffer *xml, dp_buffer *out) {
    static const char *const notes[] = {"word/footnotes.xml", "word/endnotes.xml"};
    out->size = 0;
    if (zip.length >= 4 && !memcmp(zip.data, "\xD0\xCF\x11\xE0", 4))
        return DOCX_OLD;
    if (zip.length < 4 || memcmp(zip.data, "PK", 2) != 0)
        return DOCX_NO_ZIP;
    const char *end = find_directory_end(zip);
    if (!end)
        return DOCX_DAMAGED;
    docx_result result = add_part(zip, end, "word/document.xml", limit, xml, out);
    for (size_t i = 0; i < 2 && result == DOCX_READ; i++) {
        docx_result more = add_part(zip, end, notes[i], limit, xml, out);
        result = more == DOCX_NO_TEXT ? result : more;
    }
    bool blank = result == DOCX_READ && !dp_slice_trim((doppel_slice){out->data, out->size}).length;
    return blank ? DOCX_EMPTY : result;
}

static void docx_read(dp_reader *reader, dp_unit *unit, const char *file) {
    static const char *const why[] = {
        [DOCX_NO_ZIP] = "not a Word document, despite its name",
        [DOCX_OLD] = "a Word document with a password, or in the old .doc format: save it as .docx without a password",
        [DOCX_DAMAGED] = "a Word document that is damaged or encrypted",
        [DOCX_NO_TEXT] = "not a Word document: it has no word/document.xml",
        [DOCX_UTF16] = "a Word document in UTF-16: saving it again with Word makes it UTF-8",
        [DOCX_EMPTY] = "a Word document without text; its pages may be images"};
    const dp_raw_record at = {.file = file, .bytes = unit->block.data, .length = unit->block.size};
    docx_result result = read_docx((doppel_slice){at.bytes, at.length}, reader->options->max_record, &reader->spare[1],
                                   &reader->spare[0]);
    if (result == DOCX_READ)
        dp_reader_give_made(reader, unit, &at, &reader->spare[0]);
    else if (result == DOCX_NO_MEMORY)
        dp_unit_no_memory(unit);
    else if (result == DOCX_TOO_LONG)
        dp_reader_too_long(reader, unit, &at);
    else
        dp_reader_bad_record(reader, unit, &at, "%s", why[result]);
}

static const char *const endings[] = {".docx", NULL};

const dp_format dp_format_docx = {.name = "Word", .endings = endings, .read = docx_read};
