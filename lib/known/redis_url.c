/* redis_url.c - where a shared store is: the URL, taken apart.
 *
 *   SCHEME://[USER:PASSWORD@]HOSTS[/REST][?NAME=VALUE&...]
 *
 * is cut at its marks first, and each part is unescaped afterwards, so that an escaped mark is an ordinary character.
 * No message repeats what may be a password. */
#include "known/redis_link.h"

#include <stdlib.h>

/* ---- pieces ---- */

/* DOPPEL_ERROR_USAGE with a message. */
static doppel_status usage_error(doppel_error *error, const char *what) {
    return dp_fail(error, DOPPEL_ERROR_USAGE, "invalid Redis URL: %s", what);
}

static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* A copy with its escapes undone, instead of *copy. Control characters have no place in names and messages, and are an
 * error. */
static doppel_status copy_part(doppel_slice part, char **copy, doppel_error *error) {
    char *out = malloc(part.length + 1);
    if (!out)
        return dp_no_memory(error);
    free(*copy);
    *copy = out;
    for (size_t i = 0; i < part.length; i++, out++) {
        *out = part.data[i];
        if (*out == '%') {
            int high = i + 2 < part.length ? digit_of(part.data[i + 1]) : -1;
            int low = i + 2 < part.length ? digit_of(part.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return usage_error(error, "a % that is not followed by two hexadecimal digits (%25 is a %)");
            *out = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)*out < 0x20 || *out == 0x7F)
            return usage_error(error, "a control character");
    }
    *out = 0;
    return DOPPEL_OK;
}

/* A decimal number without sign, blanks or anything after it; false: it is none, or above `most`. */
static bool read_number(doppel_slice text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return text.length > 0;
}

/* Seconds: digits with a point, or none, among them. */
static bool read_seconds(doppel_slice text, double least, double most, double *seconds) {
    double value = 0, unit = 1;
    size_t digits = 0, points = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (text.data[i] == '.' && !points++)
            continue;
        if (digit > 9 || ++digits > 15)
            return false;
        value = value * 10 + digit;
        unit = points ? unit * 10 : unit;
    }
    *seconds = value / unit;
    return digits && *seconds >= least && *seconds <= most;
}

/* Cuts `text` at the first `mark`: returns the text before it and leaves the text after it, or nothing. `found` may be
 * NULL. */
static doppel_slice cut(doppel_slice *text, char mark, bool *found) {
    const char *at = text->length ? memchr(text->data, mark, text->length) : NULL;
    doppel_slice before = {text->data, at ? (size_t)(at - text->data) : text->length};
    size_t skip = before.length + (at != NULL);
    *text = (doppel_slice){text->data + skip, text->length - skip};
    if (found)
        *found = at != NULL;
    return before;
}

enum { PORT = 6379, SENTINEL_PORT = 26379, MOST_ADDRESSES = 1000 };

static bool is(doppel_slice text, const char *name) {
    return text.length == strlen(name) && !memcmp(text.data, name, text.length);
}

/* ---- hosts ---- */

static doppel_status split_host(doppel_slice text, doppel_slice *host, doppel_slice *port, doppel_error *error) {
    bool has_port = false;
    if (text.length && *text.data == '[') {
        text = (doppel_slice){text.data + 1, text.length - 1};
        bool closed;
        *host = cut(&text, ']', &closed);
        if (!closed || (text.length && *text.data != ':'))
            return usage_error(error, "an address in brackets that is not [ADDRESS] or [ADDRESS]:PORT");
        cut(&text, ':', &has_port);
    } else {
        *host = cut(&text, ':', &has_port);
        if (text.length && memchr(text.data, ':', text.length))
            return usage_error(error, "more than one colon in HOST:PORT (IPv6 addresses stand in brackets)");
    }
    *port = has_port ? text : (doppel_slice){NULL, 0};
    if (!host->length)
        return usage_error(error, "a host is missing");
    return has_port && !text.length ? usage_error(error, "a port is missing behind its colon") : DOPPEL_OK;
}

static doppel_status add_address(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    doppel_slice host = {0}, port = {0};
    DP_TRY(split_host(text, &host, &port, error));
    uint64_t number = url->kind == DP_REDIS_SENTINEL ? SENTINEL_PORT : PORT;
    if (port.length && (!read_number(port, 65535, &number) || !number))
        return usage_error(error, "a port that is not a number from 1 to 65535");
    dp_redis_address *grown = realloc(url->address, (url->addresses + 1) * sizeof *grown);
    if (!grown)
        return dp_no_memory(error);
    url->address = grown;
    url->address[url->addresses] = (dp_redis_address){NULL, (int)number};
    return copy_part(host, &url->address[url->addresses++].host, error);
}

static doppel_status read_hosts(dp_redis_url *url, doppel_slice hosts, doppel_error *error) {
    bool more = true, many = url->kind == DP_REDIS_SENTINEL || url->kind == DP_REDIS_CLUSTER;
    while (more) {
        doppel_slice host = cut(&hosts, ',', &more);
        if (more && !many)
            return usage_error(error, "several hosts (that is redis+sentinel:// or redis+cluster://)");
        if (url->addresses == MOST_ADDRESSES)
            return usage_error(error, "over 1000 hosts");
        DP_TRY(add_address(url, host, error));
    }
    return DOPPEL_OK;
}

/* USER:PASSWORD, :PASSWORD or USER. */
static doppel_status read_login(dp_redis_url *url, doppel_slice login, doppel_error *error) {
    bool has_password;
    doppel_slice user = cut(&login, ':', &has_password);
    if (user.length)
        DP_TRY(copy_part(user, &url->user, error));
    return has_password && login.length ? copy_part(login, &url->password, error) : DOPPEL_OK;
}

/* ---- what follows the hosts ---- */

static doppel_status read_db(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    uint64_t db;
    if (!read_number(text, 1000000, &db))
        return usage_error(error, "a db that is not a number");
    if (db && url->kind == DP_REDIS_CLUSTER)
        return usage_error(error, "a Cluster has db 0 only (prefix=NAME tells indexes apart)");
    url->db = (int)db;
    return DOPPEL_OK;
}

/* /DB, of Sentinels /SERVICE[/DB], of a unix socket all of the path. */
static doppel_status read_path(dp_redis_url *url, doppel_slice path, doppel_error *error) {
    if (url->kind == DP_REDIS_UNIX) {
        url->address = calloc(1, sizeof *url->address);
        if (!url->address)
            return dp_no_memory(error);
        url->addresses = 1;
        return path.length < 2 ? usage_error(error, "the path of the socket is missing (redis+unix:///PATH)")
                               : copy_part(path, &url->address->host, error);
    }
    cut(&path, '/', NULL);
    if (url->kind == DP_REDIS_SENTINEL) {
        doppel_slice service = cut(&path, '/', NULL);
        if (!service.length)
            return usage_error(error, "the name of the service is missing (redis+sentinel://HOST/SERVICE)");
        DP_TRY(copy_part(service, &url->service, error));
    }
    return path.length ? read_db(url, path, error) : DOPPEL_OK;
}

static doppel_status read_prefix(dp_redis_url *url, doppel_slice value, doppel_error *error) {
    DP_TRY(copy_part(value, &url->prefix, error));
    if (!*url->prefix || strlen(url->prefix) > DP_REDIS_LONGEST_PREFIX || strpbrk(url->prefix, "{}"))
        return usage_error(error, "prefix= takes 1 to 100 bytes without braces");
    return DOPPEL_OK;
}

static doppel_status read_option(dp_redis_url *url, doppel_slice name, doppel_slice value, doppel_error *error) {
    if (is(name, "prefix"))
        return read_prefix(url, value, error);
    if (is(name, "db"))
        return read_db(url, value, error);
    if (is(name, "sentinel_password"))
        return copy_part(value, &url->sentinel_password, error);
    bool sense;
    uint64_t replicas = 0;
    if (is(name, "replicas"))
        sense = read_number(value, 1000, &replicas);
    else if (is(name, "timeout"))
        sense = read_seconds(value, 0.01, 3600, &url->timeout);
    else if (is(name, "retry"))
        sense = read_seconds(value, 0, 1e6, &url->retry);
    else if (is(name, "count"))
        sense = read_number(value, UINT64_MAX, &url->count);
    else
        return usage_error(error,
                           "it has prefix, db, replicas, timeout, retry, count, sentinel_password and no other option");
    if (is(name, "replicas"))
        url->replicas = (int)replicas;
    return sense ? DOPPEL_OK
                 : usage_error(error, "replicas= takes 0 to 1000, timeout= 0.01 to 3600 (seconds), retry= 0 to 1000000 "
                                      "(seconds), count= a number");
}

static doppel_status read_options(dp_redis_url *url, doppel_slice options, doppel_error *error) {
    while (options.length) {
        doppel_slice value = cut(&options, '&', NULL), name = cut(&value, '=', NULL);
        DP_TRY(read_option(url, name, value, error));
    }
    return DOPPEL_OK;
}

/* ---- all of it ---- */

static const char *const schemes[] = {"redis", "redis+unix", "redis+sentinel", "redis+cluster"};

/* The URL for messages: without passwords and options that do not change the location. */
static bool make_name(dp_redis_url *url) {
    dp_buffer name = {0};
    bool made =
        dp_buffer_printf(&name, "%s://%s%s", schemes[url->kind], url->user ? url->user : "", url->user ? "@" : "");
    for (size_t i = 0; made && i < url->addresses; i++) {
        const dp_redis_address *at = &url->address[i];
        bool bare = !strchr(at->host, ':') || url->kind == DP_REDIS_UNIX;
        made = dp_buffer_printf(&name, bare ? "%s%s" : "%s[%s]", i ? "," : "", at->host) &&
               (url->kind == DP_REDIS_UNIX || dp_buffer_printf(&name, ":%d", at->port));
    }
    made = made && (!url->service || dp_buffer_printf(&name, "/%s", url->service)) &&
           (!url->db || dp_buffer_printf(&name, url->kind == DP_REDIS_UNIX ? "?db=%d" : "/%d", url->db)) &&
           dp_buffer_printf(&name, "%sprefix=%s", url->kind == DP_REDIS_UNIX && url->db ? "&" : "?", url->prefix) &&
           dp_buffer_add(&name, "", 1);
    url->name = name.data;
    return made;
}

static doppel_status complete(dp_redis_url *url, doppel_error *error) {
    const char *password = getenv("DOPPEL_REDIS_PASSWORD");
    if (!url->password && password && *password && !(url->password = strdup(password)))
        return dp_no_memory(error);
    if (url->user && !url->password)
        return usage_error(error, "a user without a password (USER:PASSWORD@HOST, or :PASSWORD@HOST)");
    if (!url->prefix && !(url->prefix = strdup("doppel")))
        return dp_no_memory(error);
    return make_name(url) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status read_parts(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    doppel_slice options = text, path = cut(&options, '?', NULL);
    size_t length = 0;
    while (length < path.length && path.data[length] != '/')
        length++;
    doppel_slice hosts = {path.data, length};
    path = (doppel_slice){path.data + length, path.length - length};
    const char *at = length ? memrchr(hosts.data, '@', length) : NULL;
    if (at) {
        DP_TRY(read_login(url, (doppel_slice){hosts.data, (size_t)(at - hosts.data)}, error));
        hosts = (doppel_slice){at + 1, (size_t)(hosts.data + length - at - 1)};
    }
    if (url->kind != DP_REDIS_UNIX)
        DP_TRY(read_hosts(url, hosts, error));
    else if (hosts.length)
        return usage_error(error, "a host before the path of a socket (redis+unix:///PATH)");
    DP_TRY(read_path(url, path, error));
    return read_options(url, options, error);
}

doppel_status dp_redis_url_parse(const char *text, dp_redis_url *url, doppel_error *error) {
    *url = (dp_redis_url){.timeout = 5, .retry = 30};
    size_t kind = 0, length = 0;
    for (; kind < sizeof schemes / sizeof *schemes; kind++) {
        length = strlen(schemes[kind]);
        if (!strncmp(text, schemes[kind], length) && !strncmp(text + length, "://", 3))
            break;
    }
    if (kind == sizeof schemes / sizeof *schemes)
        return usage_error(error, "it begins with redis://, redis+unix://, redis+sentinel:// or redis+cluster://");
    url->kind = (dp_redis_kind)kind;
    text += length + 3;
    doppel_status status = read_parts(url, (doppel_slice){text, strlen(text)}, error);
    DP_THEN(status, complete(url, error));
    if (status)
        dp_redis_url_free(url);
    return status;
}

void dp_redis_url_free(dp_redis_url *url) {
    for (size_t i = 0; i < url->addresses; i++)
        free(url->address[i].host);
    char *held[] = {url->user, url->password, url->sentinel_password, url->service, url->prefix, url->name};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        free(held[i]);
    free(url->address);
    *url = (dp_redis_url){0};
}
