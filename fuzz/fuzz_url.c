/* fuzz_url.c - any bytes as an address, with any rules: the canonical form is its own canonical form, is as long as was
 * promised, and its parts lie inside it. The first two bytes choose the rules, the third how long the base is. */
#include "fuzz.h"

#include "doppel.h"

#include <string.h>

static void check_inside(doppel_slice part, const char *whole, size_t length) {
    CHECK(!part.length || (part.data >= whole && part.data + part.length <= whole + length));
}

static void check_parts(const char *url, size_t length) {
    doppel_url_parts parts;
    doppel_url_split((doppel_slice){url, length}, &parts);
    check_inside(parts.host, url, length);
    check_inside(parts.path, url, length);
    check_inside(parts.domain, parts.host.data, parts.host.length);
    CHECK(!parts.host.length == !parts.domain.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    unsigned without = data[0] | (unsigned)(data[1] & 7) << 8;
    const char *text = (const char *)data + 3;
    size_t length = size - 3, cut = data[2] < length ? data[2] : length;
    doppel_slice base = {text, cut};
    size_t most = 3 * length + 64, written, needed, again;
    char *once = malloc(most), *twice = malloc(3 * most + 64);
    CHECK(once && twice);
    CHECK(!doppel_url_canonical((doppel_slice){text + cut, length - cut}, cut ? &base : NULL, without, once, most,
                                &written));
    CHECK(written <= most);
    /* Without room it says the same. */
    doppel_status status =
        doppel_url_canonical((doppel_slice){text + cut, length - cut}, cut ? &base : NULL, without, twice, 0, &needed);
    CHECK(needed == written && status == (written ? DOPPEL_ERROR_USAGE : DOPPEL_OK));
    CHECK(!doppel_url_canonical((doppel_slice){once, written}, NULL, without, twice, 3 * written + 64, &again));
    CHECK(again == written && !memcmp(once, twice, again));
    check_parts(once, written);
    check_parts(text, length);
    free(once);
    free(twice);
    return 0;
}
