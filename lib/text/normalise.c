/* normalise.c - UTF-8 to normalised words.
 *
 * ASCII goes through a kernel, 64 bytes at a time. All other text goes code point by code point: a table says what each
 * becomes, its class, and whether it may join what precedes it; a small automaton turns classes into words.
 *
 * Why code points may be written one by one: a code point that is not a mark and never the second half of a
 * composition, itself and when folded and decomposed, is a boundary for all of NFKC, folding, NFKC. Only when a joining
 * one follows is the last one removed again, and collected with all that join it into a piece, which is normalised as a
 * whole by utf8proc (unicode.c). */
#include "text/normalise.h"

#include "unicode_table.h"

#include <stdlib.h>

/* A run of ASCII this long goes back to the kernel. */
#define ASCII_RUN 32

/* After a run shorter than this the next one is read by the portable kernel. */
#define SHORT_RUN 32

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

/* Writes one normalised code point. */
static void put(dp_normaliser *n, uint32_t code_point, int class) {
    uint8_t step = n->at.steps[n->at.state][class];
    if (step & DP_WRITE_SPACE)
        n->text[n->size++] = ' ';
    if (step & DP_WRITE_IT) {
        if (n->ranged && !n->failed)
            note_range(n, n->at.state == DP_AT_SPACE || step & DP_WRITE_SPACE);
        n->size += dp_utf8_encode(code_point, n->text + n->size);
    }
    n->at.state = step >> DP_STEP_STATE;
}

static inline int32_t look_up(const dp_normaliser *n, int32_t code_point) {
    return dp_table_entries[n->at.rows[code_point / DP_TABLE_BLOCK]][code_point % DP_TABLE_BLOCK];
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

/* Normalises the piece; returns how many code points it becomes. Small pieces are remembered, as decomposed text
 * repeats them. */
static size_t normalise_piece(dp_normaliser *n, int32_t *normalised) {
    if (n->piece_count > 3)
        return dp_normalise(n->piece, n->piece_count, n->keep_case, normalised);
    uint64_t key = 1;
    for (size_t i = 0; i < n->piece_count; i++)
        key = key << 21 | (uint64_t)n->piece[i];
    dp_known_piece *known = &n->known[dp_hash_mix(key) % DP_KNOWN_PIECES];
    if (known->key != key) {
        size_t made = dp_normalise(n->piece, n->piece_count, n->keep_case, normalised);
        if (made > sizeof known->text / sizeof *known->text)
            return made;
        known->key = key;
        known->count = made;
        memcpy(known->text, normalised, made * sizeof *normalised);
    }
    memcpy(normalised, known->text, known->count * sizeof *normalised);
    return known->count;
}

static void end_piece(dp_normaliser *n) {
    if (!n->piece_count)
        return;
    if (piece_is_plain(n)) {
        for (size_t i = 0; i < n->piece_count; i++) {
            int32_t entry = look_up(n, n->piece[i]);
            put(n, (uint32_t)(n->piece[i] + (entry >> DP_ENTRY_SHIFT)), entry & DP_CLASS_BITS);
        }
    } else {
        int32_t normalised[DP_PIECE_NORMALISED];
        size_t made = normalise_piece(n, normalised);
        for (size_t i = 0; i < made; i++)
            put(n, (uint32_t)normalised[i], dp_code_point_class(normalised[i]));
    }
    n->piece_count = n->piece_joins = 0;
}

/* The last code point written becomes the base of a piece. */
static void take_back(dp_normaliser *n) {
    n->size = n->last_size;
    n->at.state = n->last_state;
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

/* A mark may follow the last code point a kernel read: records it and the state of the text before it. `end` is after
 * it. */
static void note_last(dp_normaliser *n, const uint8_t *end) {
    const uint8_t *p = end - 1;
    while ((*p & 0xC0) == 0x80)
        p--;
    dp_utf8_decode(p, end, &n->last);
    int32_t entry = look_up(n, n->last);
    uint8_t step = n->at.steps[DP_IN_WORD][entry & DP_CLASS_BITS], bytes[4];
    n->last_size = n->size;
    n->last_state = n->at.state;
    if (step & DP_WRITE_IT) {
        n->last_size -= dp_utf8_encode((uint32_t)(n->last + (entry >> DP_ENTRY_SHIFT)), bytes);
        /* A space written before it may stay: a piece with this base needs it too. */
        if (!n->last_size || n->text[n->last_size - 1] == ' ')
            n->last_state = DP_AT_SPACE;
    } else if (step & DP_WRITE_SPACE) {
        n->last = -1; /* nothing composes with a space */
    }
}

static const uint8_t *read_ascii(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    size_t length = (size_t)(end - p) < DP_READ ? (size_t)(end - p) : DP_READ;
    n->ascii_state.at_space = n->at.state == DP_AT_SPACE;
    n->size += n->ascii(p, length, n->text + n->size, &n->ascii_state);
    n->at.state = n->ascii_state.at_space ? DP_AT_SPACE : DP_IN_WORD;
    p += n->ascii_state.used;
    note_last(n, p);
    return p;
}

/* ASCII with its ranges, up to `full` bytes; except the last one before other text, which a mark may join. */
static const uint8_t *read_ascii_ranged(dp_normaliser *n, const uint8_t *p, const uint8_t *end, size_t full) {
    if (end - p < 2 || p[0] >= 0x80 || p[1] >= 0x80 || n->failed)
        return p;
    end_piece(n);
    if (n->at.state == DP_ALONE)
        return p;
    bool in_word = n->at.state == DP_IN_WORD;
    size_t size = n->size;
    uint64_t at = n->piece_end, word_end = 0; /* word_end: 0 until a letter comes */
    n->last = -1;
    for (; end - p > 1 && p[0] < 0x80 && p[1] < 0x80 && size < full && !n->failed; p++, at++) {
        uint8_t becomes = n->ascii_state.map[*p];
        bool letter = becomes && becomes != ' ';
        if (letter && !in_word) {
            n->piece_start = at;
            n->piece_end = at + 1;
            note_range(n, true);
        }
        if (letter)
            word_end = at + 1;
        else if (in_word && becomes && word_end)
            n->ranges[n->range_count - 1] = word_end;
        if (letter || (in_word && becomes))
            n->text[size++] = becomes;
        in_word = letter || (in_word && !becomes);
    }
    if (word_end && !n->failed)
        n->ranges[n->range_count - 1] = word_end;
    n->size = size;
    n->at.state = in_word ? DP_IN_WORD : DP_AT_SPACE;
    n->piece_start = n->piece_end = at;
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

static const uint8_t *read_plain(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    size_t length = (size_t)(end - p) < DP_READ / 4 ? (size_t)(end - p) : DP_READ / 4;
    /* For short plain runs, blocks do not pay. */
    dp_unicode_fn plain = n->at.used < SHORT_RUN ? n->plain_few : n->plain;
    n->size += plain(p, length, n->text + n->size, &n->at);
    p += n->at.used;
    if (n->at.used)
        note_last(n, p);
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

/* Whether the code point at p joins the piece. */
static bool joins_next(const dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    int32_t code_point;
    dp_utf8_decode(p, end, &code_point);
    return code_point >= 0 && look_up(n, code_point) & DP_ENTRY_JOINS;
}

const uint8_t *dp_normaliser_read(dp_normaliser *n, const uint8_t *p, const uint8_t *end) {
    const size_t full = n->size + DP_READ;
    if (!dp_reserve(&n->text, &n->capacity, n->size + 2 * DP_READ + DP_TEXT_ROOM, 1))
        return NULL;
    while (p < end && n->size < full) {
        const uint8_t *start = p;
        bool ascii = !n->ranged && *p < 0x80 && ascii_ahead(p, end);
        if (!n->ranged && n->piece_count && !joins_next(n, p, end))
            end_piece(n);
        if (n->ranged)
            p = read_ascii_ranged(n, p, end, full);
        /* The ASCII kernel does not handle words of a single character. */
        if (ascii && n->at.state != DP_ALONE) {
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

void dp_normaliser_reset(dp_normaliser *n) {
    n->size = n->piece_count = n->piece_joins = n->range_count = 0;
    n->piece_start = n->piece_end = 0;
    n->at.state = DP_AT_SPACE;
    n->last = -1;
    n->failed = false;
}

/* Which classes do what. */
static void fill_sets(dp_normaliser *n, const dp_words_options *options) {
    n->at.letters = 1 << DP_CLASS_LETTER;
    n->at.marks = 1 << DP_CLASS_MARK;
    if (options->chars)
        n->at.letters |= 1 << DP_CLASS_ALONE;
    else
        n->at.alones = 1 << DP_CLASS_ALONE;
    if (options->keep_punct)
        n->at.letters |= 1 << DP_CLASS_PUNCT;
    if (!options->drop_space)
        n->at.spaces = 1 << DP_CLASS_SPACE;
    dp_unicode_prepare(&n->at);
}

/* The same for the bytes of ASCII. */
static void fill_map(dp_normaliser *n) {
    for (int32_t c = 0; c < 128; c++) {
        int32_t entry = look_up(n, c);
        uint8_t step = n->at.steps[DP_IN_WORD][entry & DP_CLASS_BITS];
        n->ascii_state.map[c] = (uint8_t)(step & DP_WRITE_SPACE ? ' '
                                          : step & DP_WRITE_IT  ? c + (entry >> DP_ENTRY_SHIFT)
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
    n->at.rows = dp_table_rows[options->keep_case];
    n->at.entries = dp_table_entries[0];
    n->keep_case = options->keep_case;
    n->ranged = ranged;
    n->ascii = dp_ascii_kernel();
    n->plain = dp_unicode_kernel();
    const dp_unicode_variant *portable = dp_unicode_variants;
    while (portable->needs)
        portable++;
    n->plain_few = portable->run;
    fill_sets(n, options);
    fill_map(n);
    dp_normaliser_reset(n);
    return DOPPEL_OK;
}

void dp_normaliser_close(dp_normaliser *n) {
    free(n->text);
    free(n->ranges);
    memset(n, 0, sizeof *n);
}
