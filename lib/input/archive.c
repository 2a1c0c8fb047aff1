/* archive.c - where the records of a web archive end.
 *
 * The reading side and the threads must cut alike, though they see different amounts of what follows: `measure` goes by
 * the bytes up to the next record alone. */
#include "input/archive.h"

/* mark->state while the start of the next record is looked for; otherwise how many bytes the record has behind `seen`.
 */
#define SEARCHING UINT64_MAX

/* So many line ends may stand ahead of a record and behind it; more are a record of their own, which is nothing. It is
 * below what cut.c lets a record have beside its own bytes. */
#define LINE_ENDS 8

typedef enum verdict {
    GOOD,
    BLANK,   /* nothing but line ends */
    GARBAGE, /* does not start as a record */
    BROKEN,  /* the head makes no sense */
    WRONG,   /* the length is wrong */
    CUT      /* breaks off */
} verdict;

typedef struct measured {
    verdict verdict;
    size_t start;       /* line ends ahead of it */
    size_t head_length; /* from there */
    uint64_t total;     /* bytes with its content, if the head tells; else 0 */
    size_t searched;    /* SEARCHING: where to go on; else 0 */
} measured;

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

static size_t skip_line_ends(const char *data, size_t at, size_t size) {
    for (int i = 0; i < LINE_ENDS && at < size && is_line_end(data[at]); i++)
        at++;
    return at;
}

/* Whether reading can go on at p: a record starts there, and its head is good. */
static dp_answer can_go_on(const dp_archive *archive, const char *p, size_t size) {
    size_t length;
    uint64_t content;
    dp_answer answer = archive->starts(p, size);
    return answer == DP_YES ? archive->head(p, size, &length, &content) : answer;
}

/* Where reading can go on, at a line start behind `from`. 0: not in these bytes, or (m->searched) not surely. */
static size_t find_start(const dp_archive *archive, const char *data, size_t from, size_t size, measured *m) {
    const char *p;
    while (from < size && (p = memchr(data + from, '\n', size - from))) {
        size_t at = (size_t)(p - data) + 1;
        dp_answer answer = can_go_on(archive, data + at, size - at);
        if (answer == DP_YES)
            return at;
        m->searched = at - 1;
        if (answer == DP_UNSURE)
            return 0;
        from = at;
    }
    m->searched = size;
    return 0;
}

/* The record is not as it should be; it goes on to the next start. */
static size_t give_up(const dp_archive *archive, const char *data, size_t size, size_t from, measured *m) {
    size_t start = find_start(archive, data, from, size, m);
    m->searched = start ? 0 : m->searched;
    return start;
}

/* The head has been read: is there a record behind the content? */
static size_t check_length(const dp_archive *archive, const char *data, size_t size, bool last, measured *m) {
    size_t content = m->start + m->head_length;
    if (m->total > size) {
        m->verdict = CUT;
        size_t start = last ? give_up(archive, data, size, content, m) : 0;
        if (start)
            m->verdict = WRONG;
        return start;
    }
    size_t behind = skip_line_ends(data, (size_t)m->total, size);
    dp_answer answer = DP_UNSURE;
    if (behind < size)
        answer = is_line_end(data[behind]) ? DP_YES : archive->starts(data + behind, size - behind);
    m->verdict = GOOD;
    if (answer == DP_YES || (answer == DP_UNSURE && last))
        return behind;
    if (answer == DP_UNSURE)
        return 0;
    m->verdict = WRONG;
    return give_up(archive, data, size, content, m);
}

/* How many bytes the record has; 0: it has no end within these bytes. `last`: there are no more. */
static size_t measure(const dp_archive *archive, const char *data, size_t size, bool last, measured *m) {
    *m = (measured){.verdict = BLANK, .start = skip_line_ends(data, 0, size)};
    const char *p = data + m->start;
    size_t left = size - m->start;
    if (!left || is_line_end(*p))
        return left ? m->start : 0;
    uint64_t content;
    dp_answer answer = archive->starts(p, left);
    m->verdict = answer == DP_UNSURE ? CUT : GARBAGE;
    if (answer != DP_YES)
        return answer == DP_UNSURE ? 0 : give_up(archive, data, size, m->start, m);
    answer = archive->head(p, left, &m->head_length, &content);
    m->verdict = answer == DP_UNSURE ? CUT : BROKEN;
    if (answer != DP_YES)
        return answer == DP_UNSURE ? 0 : give_up(archive, data, size, m->start, m);
    m->total = m->start + m->head_length + content;
    return check_length(archive, data, size, last, m);
}

/* ---- the reading side ---- */

/* Notes how far the record was seen, so that what was seen of a long one can be dropped. */
static void note(dp_mark *mark, size_t size, const measured *m) {
    if (m->searched) {
        mark->state = SEARCHING;
        mark->seen = m->searched;
    } else if (m->total) {
        /* One byte is left to see, so that the record never ends with nothing. */
        mark->seen = m->total > size ? size : (size_t)m->total - 1;
        mark->state = m->total - mark->seen;
    }
}

size_t dp_archive_end(const dp_archive *archive, dp_mark *mark, const char *data, size_t size) {
    measured m = {0};
    if (mark->state == SEARCHING) {
        size_t start = find_start(archive, data, mark->seen, size, &m);
        mark->seen = m.searched;
        return start;
    }
    if (mark->state && !mark->seen) { /* the start of the record was dropped */
        if (mark->state <= size)
            return (size_t)mark->state;
        mark->state -= size;
        mark->seen = size;
        return 0;
    }
    size_t length = measure(archive, data, size, false, &m);
    if (!length)
        note(mark, size, &m);
    return length;
}

/* ---- the threads ---- */

static void read_record(const dp_archive *archive, dp_reader *reader, dp_unit *unit, dp_place *at, const measured *m) {
    const dp_block *block = &unit->block;
    bool ends_block = at->bytes + at->length == block->data + block->size;
    bool at_end = ends_block && block->last && !block->cut_line && !block->long_line;
    at->bytes += m->start;
    at->length -= m->start;
    if (m->verdict == GOOD)
        at->length = (size_t)m->total - m->start;
    if (at->length > reader->options->max_record)
        dp_reader_too_long(reader, unit, at);
    else if (m->verdict == GOOD)
        archive->give(reader, unit, at, m->head_length);
    else if (m->verdict == GARBAGE)
        dp_reader_bad_record(reader, unit, at, "does not start as a record; passed over up to the next one");
    else if (m->verdict == CUT && at_end)
        dp_reader_cut_off(reader, unit, at);
    else if (m->verdict == BROKEN || !m->total)
        dp_reader_bad_record(reader, unit, at,
                             "its head is broken, or tells no length; passed over up to the next one");
    else
        dp_reader_bad_record(reader, unit, at, "its length is wrong: no record starts behind it");
}

void dp_archive_read(const dp_archive *archive, dp_reader *reader, dp_unit *unit, const char *file) {
    const char *p = unit->block.data, *end = p + unit->block.size;
    for (uint64_t number = unit->block.first_line; p < end && !dp_reader_stopped(reader, unit); number++) {
        measured m;
        size_t length = measure(archive, p, (size_t)(end - p), true, &m);
        if (!length)
            length = (size_t)(end - p);
        dp_place at = {file, number, p, length};
        if (m.verdict != BLANK)
            read_record(archive, reader, unit, &at, &m);
        p += length;
    }
}
