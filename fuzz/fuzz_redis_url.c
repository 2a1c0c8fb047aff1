/* fuzz_redis_url.c - any bytes as the URL of a shared store: what is accepted is complete, and its name means the same
 * store.
 */
#include "fuzz.h"

#include "known/redis_link.h"

#include <stdlib.h>

static bool same(const char *a, const char *b) {
    return a && b ? !strcmp(a, b) : a == b;
}

/* A name needs no escapes when the host, service and prefix have no marks in them. */
static bool is_plain(const dp_redis_url *url) {
    bool plain = !strpbrk(url->prefix, "%&") && (!url->service || !strpbrk(url->service, "%/?")) && !url->user;
    for (size_t i = 0; i < url->addresses; i++)
        plain = plain && !strpbrk(url->address[i].host, url->kind == DP_REDIS_UNIX ? "%?" : "%?/,@[]");
    return plain;
}

static void check(const dp_redis_url *url) {
    CHECK(url->addresses && url->prefix && url->name && *url->prefix && !strpbrk(url->prefix, "{}"));
    CHECK(url->timeout > 0 && url->retry >= 0 && url->db >= 0 && url->replicas >= 0);
    CHECK((url->kind == DP_REDIS_SENTINEL) == (url->service != NULL));
    for (size_t i = 0; i < url->addresses; i++)
        CHECK(*url->address[i].host && (url->kind == DP_REDIS_UNIX) == !url->address[i].port);
    dp_redis_url again;
    if (!is_plain(url))
        return;
    CHECK(!dp_redis_url_parse(url->name, &again, NULL));
    CHECK(again.kind == url->kind && again.addresses == url->addresses && again.db == url->db);
    CHECK(same(again.prefix, url->prefix) && same(again.service, url->service) && same(again.name, url->name));
    for (size_t i = 0; i < url->addresses; i++)
        CHECK(same(again.address[i].host, url->address[i].host) && again.address[i].port == url->address[i].port);
    dp_redis_url_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    dp_redis_url url;
    doppel_error error = {0};
    if (!dp_redis_url_parse(text, &url, &error)) {
        check(&url);
        dp_redis_url_free(&url);
    } else
        CHECK(*error.message);
    free(text);
    return 0;
}
