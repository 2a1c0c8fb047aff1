/* test_url.c - canonical addresses: each rule, its switch, bases, hostile bytes, and that a canonical form is its own.
 */
#include "support.h"

#include "doppel.h"

#include <stdio.h>

enum { ALL_RULES = 2047 };

typedef struct example {
    const char *url, *canonical;
} example;

/* The canonical form as a string, in one of a few buffers that take turns. */
static const char *canonical(const char *url, size_t length, const char *base, unsigned without) {
    static char rooms[4][4096];
    static int turn;
    char *to = rooms[turn++ % 4];
    doppel_slice from = {base, base ? strlen(base) : 0};
    size_t written;
    assert_int_equal(
        doppel_url_canonical((doppel_slice){url, length}, base ? &from : NULL, without, to, 4095, &written), DOPPEL_OK);
    to[written] = 0;
    return to;
}

static void check(const example *examples, size_t count, unsigned without) {
    for (size_t i = 0; i < count; i++) {
        const char *found = canonical(examples[i].url, strlen(examples[i].url), NULL, without);
        assert_string_equal(found, examples[i].canonical);
        assert_string_equal(canonical(found, strlen(found), NULL, without), found);
    }
}

#define CHECK_ALL(without, ...)                                       \
    do {                                                              \
        const example examples[] = {__VA_ARGS__};                     \
        check(examples, sizeof examples / sizeof *examples, without); \
    } while (0)

static void schemes_and_ports(void **state) {
    (void)state;
    CHECK_ALL(0, {"HTTP://Example.COM", "https://example.com/"}, {"http://a.b:80/x", "https://a.b/x"},
              {"https://a.b:443/x", "https://a.b/x"}, {"http://a.b:443/x", "https://a.b/x"},
              {"http://a.b:/x", "https://a.b/x"}, {"http://a.b:08080", "https://a.b:8080/"},
              {"http://a.b:0", "https://a.b:0/"});
    CHECK_ALL(DOPPEL_URL_SCHEME, {"HTTP://a.b:80/", "http://a.b/"}, {"https://a.b:80/", "https://a.b:80/"},
              {"http://a.b:443/", "http://a.b:443/"}, {"HTTPS://a.b:443/", "https://a.b/"});
    CHECK_ALL(DOPPEL_URL_PORT, {"http://a.b:80/", "https://a.b:80/"}, {"http://a.b:/", "https://a.b/"});
}

static void hosts(void **state) {
    (void)state;
    CHECK_ALL(0, {"http://www.example.com/", "https://example.com/"}, {"http://www.www.a.b/", "https://a.b/"},
              {"http://www.com/", "https://www.com/"}, {"http://a.b./", "https://a.b/"},
              {"http://WWW.A.B../", "https://a.b/"}, {"http://me:secret@a.b/", "https://a.b/"},
              {"http://a@b@c.d/", "https://c.d/"}, {"http://%61.b/", "https://a.b/"},
              {"http://127.0.0.1:8080/", "https://127.0.0.1:8080/"}, {"http://a_b.c/", "https://a_b.c/"},
              {"http://[2001:DB8:0:0::1]:80/", "https://[2001:db8::1]/"}, {"http://[::1]:81", "https://[::1]:81/"});
    CHECK_ALL(DOPPEL_URL_WWW, {"http://WWW.a.b/", "https://www.a.b/"});
}

static void names_in_other_scripts(void **state) {
    (void)state;
    CHECK_ALL(0,
              {"http://B\xC3\xBC"
               "cher.de/",
               "https://xn--bcher-kva.de/"},
              {"http://b%C3%BCcher.de/", "https://xn--bcher-kva.de/"},
              {"http://fa\xC3\x9F.de/", "https://xn--fa-hia.de/"}, /* non-transitional */
              {"http://\xE4\xBE\x8B\xE3\x81\x88.jp", "https://xn--r8jz45g.jp/"},
              {"http://www\xE3\x80\x82"
               "a\xE3\x80\x82"
               "b/",
               "https://a.b/"}, /* ideographic stops */
              {"http://\xEF\xBC\xA1.b/", "https://a.b/"},
              {"http://\xFF.A/", "https://\xFF.a/"}, /* not UTF-8: as it is */
              {"http://a\xEF\xBC\x8F.b/", "https://a\xEF\xBC\x8F.b/"} /* would be a slash */);
    CHECK_ALL(DOPPEL_URL_IDN, {"http://B\xC3\xBC.DE/", "https://b\xC3\xBC.de/"});
}

static void paths(void **state) {
    (void)state;
    CHECK_ALL(0, {"http://a.b/x/../y/./z", "https://a.b/y/z"}, {"http://a.b/../..", "https://a.b/"},
              {"http://a.b/x/%2e%2E/y", "https://a.b/y"}, {"http://a.b/x/y/..", "https://a.b/x"},
              {"http://a.b/x//../y", "https://a.b/x/y"}, {"http://a.b/...", "https://a.b/..."},
              {"http://a.b/x/", "https://a.b/x"}, {"http://a.b/x///", "https://a.b/x"},
              {"http://a.b//", "https://a.b/"}, {"http://a.b//x", "https://a.b//x"},
              {"http://a.b/index.html", "https://a.b/"}, {"http://a.b/x/Index.PHP?a=1", "https://a.b/x?a=1"},
              {"http://a.b/Default.aspx", "https://a.b/"}, {"http://a.b/default.jpg", "https://a.b/default.jpg"},
              {"http://a.b/index.html/index.htm/", "https://a.b/"},
              {"http://a.b/myindex.html", "https://a.b/myindex.html"});
    CHECK_ALL(DOPPEL_URL_DOTS, {"http://a.b/x/../y", "https://a.b/x/../y"});
    CHECK_ALL(DOPPEL_URL_INDEX, {"http://a.b/index.html", "https://a.b/index.html"});
    CHECK_ALL(DOPPEL_URL_SLASH, {"http://a.b/x/", "https://a.b/x/"}, {"http://a.b/x/index.html", "https://a.b/x/"},
              {"http://a.b/index.html/", "https://a.b/index.html/"});
}

static void escapes(void **state) {
    (void)state;
    CHECK_ALL(0, {"http://a.b/%7euser/%41", "https://a.b/~user/A"}, {"http://a.b/a%2fb%3F", "https://a.b/a%2Fb%3F"},
              {"http://a.b/a b", "https://a.b/a%20b"}, {"http://a.b/100%", "https://a.b/100%25"},
              {"http://a.b/%zz%4", "https://a.b/%25zz%254"}, {"http://a.b/%2%35", "https://a.b/%2525"},
              {"http://a.b/\xC3\xA9", "https://a.b/%C3%A9"}, {"http://a.b/%c3%a9", "https://a.b/%C3%A9"},
              {"http://a.b/?a[]=\"x\"", "https://a.b/?a%5B%5D=%22x%22"}, {"http://a.b/?a=b+c", "https://a.b/?a=b+c"},
              {"http://a.b/a:@!$&'()*+,;=", "https://a.b/a:@!$&'()*+,;="});
    CHECK_ALL(DOPPEL_URL_ESCAPES, {"http://a.b/%7e/\xC3\xA9%", "https://a.b/%7e/\xC3\xA9%"},
              {"http://a.b/x #y", "https://a.b/x%20"});
}

static void queries(void **state) {
    (void)state;
    CHECK_ALL(0, {"http://a.b/?b=2&a=1", "https://a.b/?a=1&b=2"}, {"http://a.b/?", "https://a.b/"},
              {"http://a.b/?&&a=1&", "https://a.b/?a=1"}, {"http://a.b/?a=&a", "https://a.b/?a&a="},
              {"http://a.b/?a=2&a=1&a=2", "https://a.b/?a=1&a=2&a=2"},
              {"http://a.b/?ab=1&a=2", "https://a.b/?a=2&ab=1"}, {"http://a.b/?a-b=1&a=2", "https://a.b/?a=2&a-b=1"},
              {"http://a.b/?utm_source=x&id=3&fbclid=y", "https://a.b/?id=3"},
              {"http://a.b/?UTM_Source=x", "https://a.b/"}, {"http://a.b/?utm%5Fsource=x", "https://a.b/"},
              {"http://a.b/?utm_=x", "https://a.b/?utm_=x"}, {"http://a.b/?gclid", "https://a.b/"},
              {"http://a.b/?WT.mc_id=1&gclids=1", "https://a.b/?gclids=1"}, {"http://a.b?x=1", "https://a.b/?x=1"});
    CHECK_ALL(DOPPEL_URL_QUERY, {"http://a.b/?b&a", "https://a.b/?b&a"}, {"http://a.b/?", "https://a.b/?"},
              {"http://a.b/?b&gclid=1&a&", "https://a.b/?b&a&"}, {"http://a.b/?gclid=1", "https://a.b/"});
    CHECK_ALL(DOPPEL_URL_TRACKING, {"http://a.b/?gclid=1&a", "https://a.b/?a&gclid=1"});
}

static void fragments(void **state) {
    (void)state;
    CHECK_ALL(0, {"http://a.b/x#y", "https://a.b/x"}, {"http://a.b/x#", "https://a.b/x"},
              {"http://a.b/#!/x?y", "https://a.b/#!/x?y"}, {"http://a.b#!a#b c", "https://a.b/#!a%23b%20c"});
    CHECK_ALL(DOPPEL_URL_FRAGMENT, {"http://a.b/x#y", "https://a.b/x#y"}, {"http://a.b/x#", "https://a.b/x#"});
}

static void what_is_no_address_stays(void **state) {
    (void)state;
    CHECK_ALL(0, {"", ""}, {" \t\n", ""}, {" mailto:A@B ", "mailto:A@B"}, {"a/../b", "a/../b"}, {"//a.b", "//a.b"},
              {"http:", "http:"}, {"http:a", "http:a"}, {"http:/a", "http:/a"}, {"http://", "http://"},
              {"http:///x", "http:///x"}, {"http://:80/", "http://:80/"}, {"http://./", "http://./"},
              {"http://a b/", "http://a b/"}, {"http://a.b:c/", "http://a.b:c/"},
              {"http://a.b:65536/", "http://a.b:65536/"}, {"http://[::1/", "http://[::1/"},
              {"http://[::g]/", "http://[::g]/"}, {"http://[::1]x/", "http://[::1]x/"},
              {"http://a%2Fb/", "http://a%2Fb/"}, {"http://a%/", "http://a%/"}, {"ftp://A.B/", "ftp://A.B/"});
}

/* The examples of RFC 3986, 5.4, that give an http URL, and two that do not. */
/* clang-format off */
static const example rfc_examples[] = {
    {"g", "http://a/b/c/g"}, {"./g", "http://a/b/c/g"}, {"g/", "http://a/b/c/g/"}, {"/g", "http://a/g"},
    {"//g", "http://g/"}, {"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"}, {"#s", "http://a/b/c/d;p?q#s"},
    {"g#s", "http://a/b/c/g#s"}, {"g?y#s", "http://a/b/c/g?y#s"}, {";x", "http://a/b/c/;x"},
    {"g;x?y#s", "http://a/b/c/g;x?y#s"}, {"", "http://a/b/c/d;p?q"}, {".", "http://a/b/c/"}, {"./", "http://a/b/c/"},
    {"..", "http://a/b/"}, {"../g", "http://a/b/g"}, {"../..", "http://a/"}, {"../../../g", "http://a/g"},
    {"/./g", "http://a/g"}, {"/../g", "http://a/g"}, {"g.", "http://a/b/c/g."}, {"..g", "http://a/b/c/..g"},
    {"./../g", "http://a/b/g"}, {"g/./h", "http://a/b/c/g/h"}, {"g;x=1/../y", "http://a/b/c/y"},
    {"g?y/../x", "http://a/b/c/g?y/../x"}, {"g:h", "g:h"}, {"http:g", "http:g"},
};
/* clang-format on */

static void relative_ones_are_resolved(void **state) {
    (void)state;
    const unsigned without = DOPPEL_URL_SLASH | DOPPEL_URL_FRAGMENT | DOPPEL_URL_SCHEME;
    for (size_t i = 0; i < sizeof rfc_examples / sizeof *rfc_examples; i++) {
        const char *url = rfc_examples[i].url;
        assert_string_equal(canonical(url, strlen(url), "http://a/b/c/d;p?q", without), rfc_examples[i].canonical);
        assert_string_equal(canonical(url, strlen(url), "http://a/b/c/d;p?q", without | DOPPEL_URL_DOTS),
                            rfc_examples[i].canonical);
    }
    assert_string_equal(canonical("x", 1, "http://a.b", 0), "https://a.b/x");
    assert_string_equal(canonical("x", 1, "mailto:a", 0), "x");
    assert_string_equal(canonical("x", 1, "http://a b/", 0), "x");
}

static void too_little_room_is_refused(void **state) {
    (void)state;
    const char *url = "http://a.b/x";
    char room[13] = "";
    size_t written;
    assert_int_equal(doppel_url_canonical((doppel_slice){url, 12}, NULL, 0, room, 12, &written), DOPPEL_ERROR_USAGE);
    assert_int_equal(written, 13);
    assert_int_equal(room[0], 0);
    assert_int_equal(doppel_url_canonical((doppel_slice){url, 12}, NULL, 0, room, 13, &written), DOPPEL_OK);
    assert_memory_equal(room, "https://a.b/x", 13);
    assert_int_equal(doppel_url_canonical((doppel_slice){NULL, 0}, NULL, 0, NULL, 0, &written), DOPPEL_OK);
    assert_int_equal(written, 0);
}

/* Pieces that meet the rules. */
/* clang-format off */
static const char *const pieces[] = {
    "http://", "https://", "HTTP://", "www.", "a", "B.com", ".", "..", "/", "/", "//", "?", "&", "=", "#", "#!", "%",
    "%2e", "%2F", "%41", "%C3%BC", "\xC3\xBC", "\xE3\x80\x82", "index.html", "default.asp", "utm_x=1", "gclid", ":80",
    ":443", ":", "@", "[::1]", " ", "\t", "xn--", ";", "+", "\xFF", "\xEF\xBC\x8F", "z", "\xC2\xAD", "\xF0",
};
/* clang-format on */

/* Pieces in any order, and any bytes. */
static size_t random_url(uint64_t *random, char *to, size_t room) {
    size_t length = 0, wanted = random_below(random, 12);
    if (random_below(random, 8)) {
        length = 7;
        memcpy(to, "http://", 7);
        if (random_below(random, 2))
            to[length++] = "ax1"[random_below(random, 3)];
    }
    while (wanted-- && length + 16 < room) {
        const char *piece = pieces[random_below(random, sizeof pieces / sizeof *pieces)];
        memcpy(to + length, piece, strlen(piece));
        length += strlen(piece);
        if (!random_below(random, 16))
            to[length++] = (char)random_next(random);
    }
    return length;
}

static void check_once_is_enough(const char *url, size_t length, const doppel_slice *base, unsigned without) {
    char once[1024], twice[4096];
    size_t first, second, most = 3 * (length + (base ? base->length : 0)) + 64;
    assert_true(most <= sizeof once);
    assert_int_equal(doppel_url_canonical((doppel_slice){url, length}, base, without, once, most, &first), DOPPEL_OK);
    assert_true(first <= most);
    assert_int_equal(doppel_url_canonical((doppel_slice){once, first}, NULL, without, twice, sizeof twice, &second),
                     DOPPEL_OK);
    assert_int_equal(first, second);
    assert_memory_equal(once, twice, first);
    doppel_url_parts parts;
    doppel_url_split((doppel_slice){once, first}, &parts);
    assert_true(parts.domain.length <= parts.host.length && parts.host.length <= first);
}

static void once_is_enough(void **state) {
    (void)state;
    uint64_t random = 4;
    guarded memory = guarded_create(256);
    for (size_t i = 0; i < (full_suite() ? 3000000u : 100000u); i++) {
        char bytes[128];
        size_t length = random_url(&random, bytes, sizeof bytes);
        char *url = guarded_copy(memory, bytes, length);
        char from[128];
        doppel_slice base = {from, random_url(&random, from, sizeof from)};
        unsigned without = i % 4 ? (unsigned)random_below(&random, ALL_RULES + 1) : 0;
        check_once_is_enough(url, length, i % 3 ? NULL : &base, without);
    }
    guarded_free(memory);
}

static void every_set_of_rules(void **state) {
    (void)state;
    static const char *const urls[] = {
        "HTTP://u@WWW.B\xC3\xBC.com.:443/a/%2e%2E/./%7ex y/index.php/?b=1&&utm_id=2&a%[]#!x y",
        "https://www.www.a.b:80//x/../index.html///?gclid=1&#x", "http://\xE3\x80\x82.a/ ?#", "http://a/..?&#!"};
    for (unsigned without = 0; without <= ALL_RULES; without++)
        for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
            check_once_is_enough(urls[i], strlen(urls[i]), NULL, without);
}

/* A megabyte of one thing: no crash, no quadratic time, the length that was promised. */
static void long_ones(void **state) {
    (void)state;
    static const char *const repeated[] = {"/", "/..", "/.", "a", "%", " ", "?",        "&",    "&b=1",       "&a",
                                           "#", ".",   "@",  ":", "[", "]", "\xC3\xBC", "www.", "/index.html"};
    static const char *const starts[] = {"http://", "http://a/", "http://a/?", "http://a/?x&c=1", "x", ""};
    enum { SIZE = 1 << 20 };
    char *url = malloc(SIZE + 64), *to = malloc(3 * SIZE + 512), *again = malloc(9 * SIZE + 2048);
    assert_true(url && to && again);
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        for (size_t p = 0; p < sizeof repeated / sizeof *repeated; p++) {
            size_t length = (size_t)sprintf(url, "%s", starts[s]), piece = strlen(repeated[p]), written, second;
            for (; length + piece <= SIZE; length += piece)
                memcpy(url + length, repeated[p], piece);
            assert_int_equal(doppel_url_canonical((doppel_slice){url, length}, NULL, 0, to, 3 * length + 64, &written),
                             DOPPEL_OK);
            assert_int_equal(
                doppel_url_canonical((doppel_slice){to, written}, NULL, 0, again, 3 * written + 64, &second),
                DOPPEL_OK);
            assert_int_equal(written, second);
            assert_memory_equal(to, again, written);
        }
    }
    free(url);
    free(to);
    free(again);
}

static void check_split(const char *url, const char *host, const char *domain, const char *path) {
    doppel_url_parts parts;
    doppel_url_split(doppel_slice_of(url), &parts);
    assert_int_equal(parts.host.length, strlen(host));
    assert_memory_equal(parts.host.data, host, strlen(host));
    assert_int_equal(parts.domain.length, strlen(domain));
    assert_memory_equal(parts.domain.data, domain, strlen(domain));
    assert_int_equal(parts.path.length, strlen(path));
    assert_memory_equal(parts.path.data, path, strlen(path));
}

static void split_into_parts(void **state) {
    (void)state;
    check_split("https://news.example.co.uk/a?b=1", "news.example.co.uk", "example.co.uk", "/a?b=1");
    check_split("http://example.com:8080/", "example.com", "example.com", "/");
    check_split("https://a.b.github.io/#!x", "a.b.github.io", "b.github.io", "/");
    check_split("https://co.uk/", "co.uk", "co.uk", "/");
    check_split("https://localhost/x", "localhost", "localhost", "/x");
    check_split("https://10.1.2.3/x", "10.1.2.3", "10.1.2.3", "/x");
    check_split("https://[::1]:81/x", "[::1]", "[::1]", "/x");
    check_split("https://[::1]/", "[::1]", "[::1]", "/");
    check_split("https://a.xn--55qx5d.cn/", "a.xn--55qx5d.cn", "a.xn--55qx5d.cn", "/");
    check_split("https://a.b.unknown-suffix/", "a.b.unknown-suffix", "b.unknown-suffix", "/");
    check_split("mailto:a@b.c", "", "", "");
    check_split("", "", "", "");
    check_split("https://", "", "", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_and_ports),
        cmocka_unit_test(hosts),
        cmocka_unit_test(names_in_other_scripts),
        cmocka_unit_test(paths),
        cmocka_unit_test(escapes),
        cmocka_unit_test(queries),
        cmocka_unit_test(fragments),
        cmocka_unit_test(what_is_no_address_stays),
        cmocka_unit_test(relative_ones_are_resolved),
        cmocka_unit_test(too_little_room_is_refused),
        cmocka_unit_test(once_is_enough),
        cmocka_unit_test(every_set_of_rules),
        cmocka_unit_test(long_ones),
        cmocka_unit_test(split_into_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
