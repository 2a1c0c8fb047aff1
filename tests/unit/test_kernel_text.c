/* test_kernel_text.c - the kernels that normalise ASCII and find words, each variant against the plain definition. */
#include "support.h"

#include "kernel/kernel.h"
#include "text/normalise.h"

enum { LONGEST = 400 };

/* ---- ascii ---- */

static bool is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_space(int c) {
    return c == ' ' || (c >= 9 && c <= 13);
}

/* The maps that recipes use: fold and drop, keep both, and no spaces. */
enum { MAP_USUAL, MAP_KEEP, MAP_NO_SPACE, MAPS };

static dp_ascii_state state_for(int which, bool at_space) {
    dp_ascii_state state = {.at_space = at_space};
    for (int c = 0; c < 128; c++) {
        int becomes = is_letter(c) || (which == MAP_KEEP && c > ' ' && c < 127) ? c : 0;
        if (which != MAP_KEEP && c >= 'A' && c <= 'Z')
            becomes = c + 32;
        if (is_space(c))
            becomes = which == MAP_NO_SPACE ? 0 : ' ';
        state.map[c] = (uint8_t)becomes;
    }
    dp_ascii_prepare(&state);
    return state;
}

static size_t plain_ascii(const uint8_t *in, size_t length, uint8_t *out, dp_ascii_state *state) {
    size_t made = 0;
    for (state->used = 0; state->used < length && in[state->used] < 128; state->used++) {
        uint8_t c = state->map[in[state->used]];
        if (!c || (c == ' ' && state->at_space))
            continue;
        out[made++] = c;
        state->at_space = c == ' ';
    }
    return made;
}

typedef struct ascii_room {
    guarded in, out;
} ascii_room;

static int setup_ascii(void **state) {
    static ascii_room room;
    room = (ascii_room){guarded_create(LONGEST), guarded_create(LONGEST + 64)};
    *state = &room;
    return 0;
}

static int free_ascii(void **state) {
    ascii_room *room = *state;
    guarded_free(room->in);
    guarded_free(room->out);
    return 0;
}

static void check_ascii(const ascii_room *room, const uint8_t *text, size_t length) {
    uint8_t want[LONGEST];
    const uint8_t *in = guarded_copy(room->in, text, length);
    uint8_t *out = guarded_copy(room->out, NULL, length + 64);
    for (int which = 0; which < 2 * MAPS; which++) {
        dp_ascii_state given = state_for(which / 2, which % 2), expected = given;
        size_t made = plain_ascii(in, length, want, &expected);
        EACH_VARIANT(ascii, variant) {
            dp_ascii_state after = given;
            assert_int_equal(variant->run(in, length, out, &after), made);
            assert_memory_equal(out, want, made);
            assert_int_equal(after.used, expected.used);
            assert_int_equal(after.at_space, expected.at_space);
        }
    }
}

/* Text of one kind: what stands in it, by turns of random length. */
static void fill_text(uint64_t *seed, const char *letters, uint8_t *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        text[i] = (uint8_t)letters[random_below(seed, strlen(letters))];
}

static void ascii_of_every_length_and_kind(void **state) {
    static const char *const kinds[] = {" ", ".", "a", "Z", " .", "a ", "a.", "aB9 .\t\n", "abcdefgh ", "...... a"};
    uint8_t text[LONGEST];
    uint64_t seed = 1;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t length = 0; length <= 200; length++) {
            fill_text(&seed, kinds[kind], text, length);
            check_ascii(*state, text, length);
        }
}

static void ascii_of_every_byte(void **state) {
    uint8_t text[LONGEST];
    uint64_t seed = 2;
    for (int round = 0; round < 2000; round++) {
        size_t length = random_below(&seed, LONGEST + 1);
        for (size_t i = 0; i < length; i++)
            text[i] = (uint8_t)random_below(&seed, round % 2 ? 128 : 129);
        check_ascii(*state, text, length);
    }
}

static void ascii_stops_at_a_foreign_byte_at_each_place(void **state) {
    static const uint8_t foreign[] = {0x80, 0xC3, 0xFF};
    uint8_t text[LONGEST];
    uint64_t seed = 3;
    for (size_t length = 1; length <= 140; length += length < 60 ? 7 : 1)
        for (size_t place = 0; place < length; place++) {
            fill_text(&seed, "aB .", text, length);
            text[place] = foreign[place % 3];
            check_ascii(*state, text, length);
        }
}

static void spaces_that_meet_across_punctuation_and_blocks_are_one(void **state) {
    uint8_t text[LONGEST];
    for (size_t start = 0; start <= 130; start++)
        for (size_t dots = 0; dots <= 130; dots += 13) {
            memset(text, 'x', sizeof text);
            text[start] = ' ';
            memset(text + start + 1, '.', dots);
            text[start + 1 + dots] = ' ';
            check_ascii(*state, text, start + dots + 70);
        }
}

/* ---- plain ---- */

/* One code point of normalised text takes its place, by its class: the rules of docs/FORMAT.md section 1. */
static size_t plain_put(uint32_t c, unsigned class, const dp_unicode_state *given, uint8_t *out, unsigned *state) {
    size_t made = 0;
    bool alone = given->alones >> class & 1, letter = given->letters >> class & 1, mark = given->marks >> class & 1;
    if (given->spaces >> class & 1) {
        if (*state != DP_AT_SPACE)
            out[made++] = ' ';
        *state = DP_AT_SPACE;
    } else if (alone || letter) {
        if (alone ? *state != DP_AT_SPACE : *state == DP_ALONE)
            out[made++] = ' ';
        *state = alone ? DP_ALONE : DP_IN_WORD;
    } else if (mark) {
        *state = *state == DP_ALONE ? DP_ALONE : DP_IN_WORD;
    }
    return made + (alone || letter || mark ? dp_utf8_encode(c, out + made) : 0);
}

/* As far as text is plain, but at most `most` bytes of it; sets state->used. */
static size_t plain_plain(const uint8_t *in, size_t most, uint8_t *out, dp_unicode_state *state) {
    size_t made = 0;
    for (state->used = 0; state->used < most;) {
        int32_t c;
        size_t taken = dp_utf8_decode(in + state->used, in + most, &c);
        if (c < 0 || c >= 0x10000)
            break;
        int32_t entry = state->entries[state->rows[c / DP_TABLE_BLOCK] * DP_TABLE_BLOCK + c % DP_TABLE_BLOCK];
        uint32_t becomes = (uint32_t)(c + (entry >> DP_ENTRY_SHIFT));
        if (entry & (DP_ENTRY_SLOW | DP_ENTRY_JOINS) || becomes >= 0x10000)
            break;
        made += plain_put(becomes, (unsigned)entry & DP_CLASS_BITS, state, out + made, &state->state);
        state->used += taken;
    }
    return made;
}

/* A variant may stop short near the end of the text, after some 250 bytes, and where 64 bytes of ASCII follow. */
static bool may_stop(const uint8_t *text, size_t length, size_t used) {
    if (used + 4 > length || used > 250)
        return true;
    for (size_t i = used; i < used + 64; i++)
        if (i >= length || text[i] >= 0x80)
            return false;
    return true;
}

static void check_plain(guarded in_room, guarded out_room, const dp_unicode_state *given, const uint8_t *text,
                        size_t length) {
    uint8_t want[4 * LONGEST];
    const uint8_t *in = guarded_copy(in_room, text, length);
    uint8_t *out = guarded_copy(out_room, NULL, 4 * length + 64);
    dp_unicode_state whole = *given;
    plain_plain(text, length, want, &whole);
    EACH_VARIANT(unicode, variant) {
        dp_unicode_state after = *given, expected = *given;
        size_t made = variant->run(in, length, out, &after);
        assert_true(after.used <= whole.used);
        assert_true(after.used == whole.used || may_stop(text, length, after.used));
        assert_int_equal(made, plain_plain(text, after.used, want, &expected));
        assert_int_equal(after.used, expected.used);
        assert_int_equal(after.state, expected.state);
        assert_memory_equal(out, want, made);
    }
}

/* Code points of one script (surrogates among them), of all, or bytes of any kind. */
static size_t random_text(uint64_t *seed, int kind, uint8_t *text) {
    static const uint32_t scripts[][2] = {{0x400, 0x460},   {0x4E00, 0x9FFF}, {0xE00, 0xE5C},   {0x3040, 0x30FF},
                                          {0x600, 0x6F0},   {0x20, 0x7F},     {0xAC00, 0xD7A3}, {0x900, 0x980},
                                          {0x2000, 0x2070}, {0, 0x110000},    {0xD700, 0xD810}, {0xFE00, 0x10000}};
    size_t length = 0, most = random_below(seed, LONGEST - 8);
    while (length < most) {
        const uint32_t *script = scripts[kind < 12 ? (size_t)kind : random_below(seed, 12)];
        uint32_t c = random_below(seed, 6) ? script[0] + (uint32_t)random_below(seed, script[1] - script[0]) : ' ';
        length += dp_utf8_encode(c, text + length);
        if (kind == 13 && !random_below(seed, 60))
            text[random_below(seed, length)] = (uint8_t)random_next(seed);
    }
    /* Cut anywhere. */
    return length - random_below(seed, length + 1) / 20;
}

static void plain_text_of_every_script(void **state) {
    (void)state;
    static const dp_words_options options[] = {
        {0}, {.keep_case = true, .keep_punct = true}, {.chars = true}, {.chars = true, .drop_space = true}};
    guarded in_room = guarded_create(LONGEST), out_room = guarded_create(4 * LONGEST + 64);
    uint8_t text[LONGEST];
    uint64_t seed = 5;
    for (int round = 0; round < 40000; round++) {
        dp_normaliser n;
        assert_int_equal(dp_normaliser_open(&n, &options[round % 4], false, NULL), DOPPEL_OK);
        size_t length = random_text(&seed, round % 14, text);
        n.at.state = (unsigned)random_below(&seed, DP_STATES);
        check_plain(in_room, out_room, &n.at, text, length);
        dp_normaliser_close(&n);
    }
    guarded_free(in_room);
    guarded_free(out_room);
}

/* ---- spaces ---- */

static void check_spaces(guarded text_room, guarded starts_room, const uint8_t *text, size_t length) {
    const uint8_t *at = guarded_copy(text_room, text, length);
    size_t room = length / 2 + 32;
    uint32_t *starts = guarded_copy(starts_room, NULL, room * sizeof *starts);
    const uint32_t bases[] = {0, 1, 0x7FFFF000};
    for (size_t b = 0; b < 3; b++) {
        EACH_VARIANT(spaces, variant) {
            memset(starts, 0xAA, room * sizeof *starts);
            size_t count = variant->run(at, length, bases[b], starts), found = 0;
            for (size_t i = 0; i < length; i++)
                if (text[i] == ' ') {
                    assert_true(found < count);
                    assert_int_equal(starts[found++], bases[b] + i + 1);
                }
            assert_int_equal(found, count);
        }
    }
}

static void word_starts_at_every_length_and_density(void **state) {
    (void)state;
    uint8_t text[LONGEST];
    guarded text_room = guarded_create(LONGEST), starts_room = guarded_create((LONGEST / 2 + 32) * 4);
    uint64_t seed = 4;
    for (size_t length = 0; length <= LONGEST; length++)
        for (size_t density = 1; density <= 64; density *= 2) {
            for (size_t i = 0; i < length; i++) {
                bool space = random_below(&seed, density) == 0 && (!i || text[i - 1] != ' ');
                text[i] = space ? ' ' : (uint8_t)(33 + random_below(&seed, 223));
            }
            check_spaces(text_room, starts_room, text, length);
        }
    guarded_free(text_room);
    guarded_free(starts_room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ascii_of_every_length_and_kind, setup_ascii, free_ascii),
        cmocka_unit_test_setup_teardown(ascii_of_every_byte, setup_ascii, free_ascii),
        cmocka_unit_test_setup_teardown(ascii_stops_at_a_foreign_byte_at_each_place, setup_ascii, free_ascii),
        cmocka_unit_test_setup_teardown(spaces_that_meet_across_punctuation_and_blocks_are_one, setup_ascii,
                                        free_ascii),
        cmocka_unit_test(plain_text_of_every_script),
        cmocka_unit_test(word_starts_at_every_length_and_density),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
