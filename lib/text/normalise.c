/* normalise.c - UTF-8 to normalised words.
 *
 * ASCII goes through a kernel, 64 bytes at a time. All other text goes code point by code point: a table tells what
 * each becomes, its class, and whether it may join what stands before it; a small automaton turns classes into words.
 *
 * Why code points may be written one by one: a code point that is no mark and never the second half of a composition,
 * itself and when folded and decomposed, is a boundary for all of NFKC, folding, NFKC. Only when one that joins follows
 * is the last one taken back, and collected with all that join it into a piece, which is normalised as a whole by
 * utf8proc (unicode.c). */
#include "text/normalise.h"

#include "unicode_table.h"

#include <stdlib.h>

/* A run of ASCII this long goes back to the kernel. */
#define ASCII_RUN 32

/* The plain way looks after so many bytes whether ASCII is ahead. */
#define PLAIN_RUN 64

/* A step of the automaton: bits that say what to write, and the next state above them. */
enum { WRITE_SPACE = 1, WRITE_IT = 2, STEP_STATE = 2 };

/* ---- writing ---- */

static void note_range(dp_normaliser *n, bool new_word) {
    if (new_word) {
        if (!dp_reserve(&n->ranges, &n->ranges_capacity, n->range_count + 2, sizeof *n->ranges)) {
            n->failed = true;
            return;
        }
        n->ranges[n->range_count] = n->piece_start;
        n->range_count += 2;
    }
    n->ranges[n->range_count - 1] = n->piece_end;
}

/* One normalised code point takes its place in the words. */
static void put(dp_normaliser *n, uint32_t code_point, int class) {
    uint8_t step = n->steps[n->state][class];
    if (step & WRITE_SPACE)
        n->text[n->size++] = ' ';
    if (step & WRITE_IT) {
        if (n->ranged && !n->failed)
            note_range(n, n->state == DP_AT_SPACE || step & WRITE_SPACE);
        n->size += dp_encode(code_point, n->text + n->size);
    }
    n->state = step >> STEP_STATE;
}

static inline int32_t look_up_in(const uint16_t *rows, int32_t code_point) {
    return dp_table_entries[rows[code_point / DP_TABLE_BLOCK]][code_point % DP_TABLE_BLOCK];
}

static inline int32_t look_up(const dp_normaliser *n, int32_t code_point) {
    return look_up_in(n->rows, code_point);
}

/* ---- pieces ---- */

/* Whether the piece has a base of one code point and marks that are in order and change nothing: by the quick check of
 * Unicode annex 15 it is then normalised as soon as its base is. */
static bool piece_is_plain(const dp_normaliser *n) {
    int before = 0;
    for (size_t i = 0; i < n->piece_count; i++) {
        int32_t entry = look_up(n, n->piece[i]);
        bool joins = entry & DP_ENTRY_JOINS;
        if (entry & DP_ENTRY_SLOW || (joins && !(entry & DP_ENTRY_INERT)))
            return false;
        int class = joins ? dp_combining_class(n->piece[i]) : 0;
        if (class < before)
            return false;
        before = class;
    }
    return true;
}

static void end_piece(dp_normaliser *n) {
    if (!n->piece_count)
        return;
    if (piece_is_plain(n)) {
        for (size_t i = 0; i < n->piece_count; i++) {
            int32_t entry = look_up(n, n->piece[i]);
            put(n, (uint32_t)(n->piece[i] + (entry >> DP_ENTRY_SHIFT)), entry & DP_CLASS_PLAIN);
        }
    } else {
        int32_t normalised[DP_PIECE_NORMALISED];
        size_t made = dp_normalise(n->piece, n->piece_count, n->keep_case, normalised);
        for (size_t i = 0; i < made; i++)
            put(n, (uint32_t)normalised[i], dp_code_point_class(normalised[i]));
    }
    n->piece_count = n->piece_joins = 0;
}

/* What was written last becomes the base of a piece. */
static void take_back(dp_normaliser *n) {
    n->size = n->last_size;
    n->state = n->last_state;
    n->piece[n->piece_count++] = n->last;
    n->last = -1;
}

static void join_piece(dp_normaliser *n, int32_t code_point) {
    if (!n->piece_count && n->last >= 0)
        take_back(n);
    if (n->piece_joins == DP_PIECE_JOINS)
        end_piece(n);
    if (!n->piece_count)
        n->piece_start = n->piece_end;
    n->piece[n->piece_count++] = code_point;
    n->piece_joins++;
}

/* ---- reading ---- */

/* The kernel's last byte could be joined: what the text was before it. */
static void note_last_ascii(dp_normaliser *n, uint8_t byte) {
    uint8_t mapped = n->ascii_state.map[byte];
    n->last = mapped == ' ' ? -1 : byte; /* nothing composes with a space, which may have been dropped */
    if (mapped == ' ')
        return;
    n->last_size = n->size - (mapped != 0);
    n->last_state = n->state;
    if (mapped)
        n->last_state = !n->last_size || n->text[n->last_size - 1] == ' ' ? DP_AT_SPACE : DP_IN_WORD;
}

static const uint8_t *read_ascii(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    size_t length = (size_t)(end - p) < DP_READ ? (size_t)(end - p) : DP_READ;
    /* Behind a word that stands alone, the first byte that stays needs a space ahead. */
    while (n->state == DP_ALONE && length && *p < 0x80 && !n->ascii_state.map[*p]) {
        n->last = *p++;
        n->last_size = n->size;
        n->last_state = n->state;
        length--;
    }
    if (!length || *p >= 0x80)
        return p;
    if (n->state == DP_ALONE) {
        n->text[n->size++] = ' ';
        n->state = DP_AT_SPACE;
    }
    n->ascii_state.at_space = n->state == DP_AT_SPACE;
    n->size += n->ascii(p, length, n->text + n->size, &n->ascii_state);
    n->state = n->ascii_state.at_space ? DP_AT_SPACE : DP_IN_WORD;
    p += n->ascii_state.used;
    note_last_ascii(n, p[-1]);
    return p;
}

static inline bool ascii_ahead(const uint8_t *p, const uint8_t *end) {
    if (end - p >= ASCII_RUN) {
        uint64_t high = 0;
        for (int i = 0; i < ASCII_RUN; i += 8)
            high |= dp_load64(p + i);
        return !(high & 0x8080808080808080);
    }
    while (p < end)
        if (*p++ >= 0x80)
            return false;
    return true;
}

/* What is being written, with the text as it was before the last code point. */
typedef struct dp_pen {
    uint8_t *out, *before;
    unsigned state, state_before;
    int32_t last;
} dp_pen;

/* Code points of one and two bytes, which alternate in most scripts: without a branch that hangs on the text, and with
 * one look-up each (unicode.h, DP_SHORT_*). Stops at any other, and at one that joins or needs more. */
static inline const uint8_t *write_shorts(const dp_normaliser *n, const uint8_t *p, const uint8_t *end, dp_pen *pen) {
    dp_pen at = *pen;
    uint8_t steps[DP_STATES * 8];
    memcpy(steps, n->steps, sizeof steps);
    const uint32_t *shorts = n->shorts;
    for (; end - p >= 2;) {
        uint32_t first = p[0], second = p[1], two = first >> 7;
        uint32_t c = two ? (first & 0x1F) << 6 | (second & 0x3F) : first;
        uint32_t entry = shorts[c], wrong = (first >= 0xE0) | (two & ((first < 0xC2) | (second >> 6 != 2)));
        if (wrong | (entry & DP_SHORT_OTHER))
            break;
        uint8_t step = steps[at.state * 8 + (entry >> DP_SHORT_CLASS)];
        at.before = at.out;
        at.state_before = at.state;
        at.last = (int32_t)c;
        *at.out = ' ';
        at.out += step & WRITE_SPACE;
        memcpy(at.out, &entry, 2);
        at.out += (entry >> DP_SHORT_LENGTH & 3) & -(uint32_t)(step / WRITE_IT & 1);
        at.state = step >> STEP_STATE;
        p += 1 + two;
    }
    *pen = at;
    return p;
}

/* The same for code points of three bytes. */
static inline const uint8_t *write_threes(const dp_normaliser *n, const uint8_t *p, const uint8_t *end, dp_pen *pen) {
    dp_pen at = *pen;
    uint8_t steps[DP_STATES * 8];
    memcpy(steps, n->steps, sizeof steps);
    const uint16_t *rows = n->rows;
    for (; end - p >= 4 && (dp_load32(p) & 0xC0C0F0) == 0x8080E0; p += 3) {
        int32_t c = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F), entry = look_up_in(rows, c);
        if (c < 0x800 || c >> 11 == 0x1B || entry & (DP_ENTRY_SLOW | DP_ENTRY_JOINS))
            break;
        uint8_t step = steps[at.state * 8 + (unsigned)(entry & DP_CLASS_PLAIN)];
        size_t written = step & WRITE_IT ? 3 : 0;
        at.before = at.out;
        at.state_before = at.state;
        at.last = c;
        *at.out = ' ';
        at.out += step & WRITE_SPACE;
        memcpy(at.out, p, 4);
        if (written && entry >> DP_ENTRY_SHIFT)
            written = dp_encode((uint32_t)(c + (entry >> DP_ENTRY_SHIFT)), at.out);
        at.out += written;
        at.state = step >> STEP_STATE;
    }
    *pen = at;
    return p;
}

/* Code points that become one code point and join nothing; stops at any other. */
static const uint8_t *read_plain(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    uint8_t *start = n->text + n->size;
    dp_pen pen = {start, start, n->state, n->state, -1};
    /* Short runs, so that ASCII ahead is seen; 16 bytes become at most 32. */
    const uint8_t *stop = end - p < PLAIN_RUN ? end : p + PLAIN_RUN;
    for (const uint8_t *before = NULL; p != before;) {
        before = p;
        p = write_shorts(n, p, stop, &pen);
        p = write_threes(n, p, stop, &pen);
    }
    if (pen.last >= 0) {
        n->last = pen.last;
        n->last_size = (size_t)(pen.before - n->text);
        n->last_state = pen.state_before;
    }
    n->size = (size_t)(pen.out - n->text);
    n->state = pen.state;
    return p;
}

/* One code point, whatever it is. */
static const uint8_t *read_one(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    int32_t code_point;
    const uint8_t *next = p + dp_utf8_decode(p, end, &code_point);
    if (code_point < 0) {
        end_piece(n);
        put(n, ' ', DP_CLASS_SPACE);
        n->last = -1;
    } else if (look_up(n, code_point) & DP_ENTRY_JOINS) {
        join_piece(n, code_point);
    } else {
        end_piece(n);
        n->last = -1;
        n->piece_start = n->piece_end;
        n->piece[n->piece_count++] = code_point;
    }
    n->piece_end += (uint64_t)(next - p);
    return next;
}

const uint8_t *dp_normaliser_read(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    const size_t full = n->size + DP_READ;
    if (!dp_reserve(&n->text, &n->capacity, n->size + 2 * DP_READ + DP_TEXT_ROOM, 1))
        return NULL;
    while (p < end && n->size < full) {
        const uint8_t *start = p;
        if (!n->ranged && *p < 0x80 && ascii_ahead(p, end)) {
            end_piece(n);
            p = read_ascii(n, p, end);
        } else if (!n->ranged && !n->piece_count) {
            p = read_plain(n, p, end);
        }
        if (p == start)
            p = read_one(n, p, end);
    }
    return p;
}

/* ---- the calls around it ---- */

bool dp_normaliser_finish(dp_normaliser *n) {
    if (!dp_reserve(&n->text, &n->capacity, n->size + DP_TEXT_ROOM, 1))
        return false;
    end_piece(n);
    if (n->size && n->text[n->size - 1] == ' ')
        n->size--;
    return !n->failed;
}

void dp_normaliser_drop(dp_normaliser *n, size_t size) {
    n->size -= size;
    memmove(n->text, n->text + size, n->size);
    /* A word's last code point is never used up before the word; a space is, and nothing composes with it. */
    if (n->last_size < size)
        n->last = -1;
    n->last_size -= size;
}

void dp_normaliser_reset(dp_normaliser *n) {
    n->size = n->piece_count = n->piece_joins = n->range_count = 0;
    n->piece_start = n->piece_end = 0;
    n->state = DP_AT_SPACE;
    n->last = -1;
    n->failed = false;
}

/* What each class does in each state. Classes that are not named here vanish. */
static void fill_steps(dp_normaliser *n, const dp_words_options *options) {
    for (unsigned state = 0; state < DP_STATES; state++) {
        unsigned space = state == DP_ALONE ? WRITE_SPACE : 0, apart = state == DP_AT_SPACE ? 0 : WRITE_SPACE;
        uint8_t *steps = n->steps[state];
        uint8_t stay = (uint8_t)(state << STEP_STATE);
        uint8_t letter = (uint8_t)(space | WRITE_IT | DP_IN_WORD << STEP_STATE);
        memset(steps, stay, sizeof n->steps[state]);
        steps[DP_CLASS_LETTER] = letter;
        steps[DP_CLASS_ALONE] = options->chars ? letter : (uint8_t)(apart | WRITE_IT | DP_ALONE << STEP_STATE);
        steps[DP_CLASS_MARK] = (uint8_t)(WRITE_IT | (state == DP_ALONE ? DP_ALONE : DP_IN_WORD) << STEP_STATE);
        if (options->keep_punct)
            steps[DP_CLASS_PUNCT] = letter;
        if (!options->drop_space)
            steps[DP_CLASS_SPACE] = (uint8_t)(apart | DP_AT_SPACE << STEP_STATE);
    }
}

/* The same for the kernel's bytes. */
static void fill_map(dp_normaliser *n) {
    for (int32_t c = 0; c < 128; c++) {
        int32_t entry = look_up(n, c);
        uint8_t step = n->steps[DP_IN_WORD][entry & DP_CLASS_PLAIN];
        n->ascii_state.map[c] = (uint8_t)(step & WRITE_SPACE ? ' '
                                          : step & WRITE_IT  ? c + (entry >> DP_ENTRY_SHIFT)
                                                             : 0);
    }
    dp_ascii_prepare(&n->ascii_state);
}

doppel_status dp_normaliser_open(dp_normaliser *n, const dp_words_options *options, bool ranged, doppel_error *error) {
    memset(n, 0, sizeof *n);
    if (strcmp(doppel_unicode_version(), DP_TABLE_UNICODE))
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "this library was built for Unicode %s, but the utf8proc it runs with has %s: build it again",
                       DP_TABLE_UNICODE, doppel_unicode_version());
    n->rows = dp_table_rows[options->keep_case];
    n->shorts = dp_table_shorts[options->keep_case];
    n->keep_case = options->keep_case;
    n->ranged = ranged;
    n->ascii = dp_ascii_kernel();
    fill_steps(n, options);
    fill_map(n);
    dp_normaliser_reset(n);
    return DOPPEL_OK;
}

void dp_normaliser_close(dp_normaliser *n) {
    free(n->text);
    free(n->ranges);
    memset(n, 0, sizeof *n);
}
