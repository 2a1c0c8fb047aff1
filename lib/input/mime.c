/* mime.c - mail messages: fields, parameters, and the walk over their parts. */
#include "input/mime.h"

#include <strings.h>

/* The longest boundary that is taken; RFC 2046 allows 70 bytes. */
#define BOUNDARY 256

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static doppel_slice trim(const char *p, const char *end) {
    while (p < end && is_space(*p))
        p++;
    while (p < end && is_space(end[-1]))
        end--;
    return (doppel_slice){p, (size_t)(end - p)};
}

/* Where the next line begins. */
static const char *next_line(const char *p, const char *end) {
    const char *line = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return line ? line + 1 : end;
}

dp_mime_part dp_mime_split(doppel_slice bytes) {
    const char *p = bytes.data, *end = p + bytes.length;
    while (p < end && *p != '\n' && !(*p == '\r' && p + 1 < end && p[1] == '\n'))
        p = next_line(p, end);
    const char *body = next_line(p, end);
    return (dp_mime_part){{bytes.data, (size_t)(p - bytes.data)}, {body, (size_t)(end - body)}};
}

doppel_slice dp_mime_field(doppel_slice head, const char *name) {
    size_t length = strlen(name);
    for (const char *p = head.data, *end = p + head.length, *next; p < end; p = next) {
        /* Lines that begin with white space go on with the one before. */
        for (next = next_line(p, end); next < end && (*next == ' ' || *next == '\t');)
            next = next_line(next, end);
        if ((size_t)(next - p) <= length || strncasecmp(p, name, length) != 0)
            continue;
        const char *colon = p + length;
        while (colon < next && (*colon == ' ' || *colon == '\t'))
            colon++;
        if (colon < next && *colon == ':')
            return trim(colon + 1, next);
    }
    return (doppel_slice){0};
}

/* ---- parameters ---- */

/* Reads a word or a quoted string at p into `to`; gives where it ends. *fits is cleared when there is too little room.
 */
static const char *read_word(const char *p, const char *end, doppel_slice stop, char *to, size_t room, bool *fits) {
    bool quoted = p < end && *p == '"';
    size_t length = 0;
    for (p += quoted; p < end; p++) {
        if (quoted ? *p == '"' : memchr(stop.data, *p, stop.length) != NULL)
            break;
        if (quoted && *p == '\\' && p + 1 < end)
            p++;
        if (length + 1 < room)
            to[length++] = *p;
        else
            *fits = false;
    }
    to[length] = 0;
    return p + (quoted && p < end);
}

bool dp_mime_parameter(doppel_slice value, const char *name, char *to, size_t room) {
    static const doppel_slice name_end = {"=; \t\r\n", 6}, word_end = {"; \t\r\n", 5};
    const char *p = value.data ? value.data : "", *end = p + value.length;
    char found[40];
    *to = 0;
    while (p < end && (p = memchr(p, ';', (size_t)(end - p)))) {
        bool name_fits = true, fits = true;
        for (p++; p < end && is_space(*p);)
            p++;
        p = read_word(p, end, name_end, found, sizeof found, &name_fits);
        while (p < end && is_space(*p))
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && is_space(*p);)
            p++;
        p = read_word(p, end, word_end, to, room, &fits);
        if (name_fits && fits && !strcasecmp(found, name) && *to)
            return true;
    }
    *to = 0;
    return false;
}

/* ---- parts ---- */

/* Whether a value begins so, in any case. */
static bool starts(doppel_slice value, const char *with) {
    size_t length = strlen(with);
    return value.length >= length && !strncasecmp(value.data, with, length);
}

/* The next line that is the boundary, which begins with two dashes; NULL: there is none. */
static const char *find_boundary(const char *p, const char *end, const char *boundary) {
    size_t length = strlen(boundary);
    const char *start = p;
    while (p < end && (p = memmem(p, (size_t)(end - p), boundary, length))) {
        const char *behind = p + length;
        bool closing = end - behind >= 2 && behind[0] == '-' && behind[1] == '-';
        if ((p == start || p[-1] == '\n') && (closing || behind == end || is_space(*behind)))
            return p;
        p = behind;
    }
    return NULL;
}

/* The first part that is not blank: many messages have an empty text beside their page. */
static void take_text(dp_mime_part part, doppel_slice type, dp_mime_text *text) {
    if (text->body.data || !trim(part.body.data, part.body.data + part.body.length).length)
        return;
    text->body = part.body;
    text->encoding = dp_mime_field(part.head, "Content-Transfer-Encoding");
    dp_mime_parameter(type, "charset", text->charset, sizeof text->charset);
}

static void walk(dp_mime_part part, int depth, dp_mime_content *content);

/* The parts between boundaries; false when there is no boundary. */
static bool walk_parts(dp_mime_part whole, doppel_slice type, int depth, dp_mime_content *content) {
    char boundary[BOUNDARY] = "--";
    if (depth == DP_MIME_DEPTH || !dp_mime_parameter(type, "boundary", boundary + 2, sizeof boundary - 2))
        return false;
    const char *end = whole.body.data + whole.body.length;
    const char *p = find_boundary(whole.body.data, end, boundary);
    if (!p)
        return false;
    while (p && content->parts < DP_MIME_PARTS) {
        const char *behind = p + strlen(boundary);
        if (end - behind >= 2 && behind[0] == '-' && behind[1] == '-')
            break;
        const char *start = next_line(behind, end), *next = find_boundary(start, end, boundary);
        const char *stop = next ? next : end;
        /* The line end ahead of a boundary belongs to it. */
        stop -= next && stop > start;
        stop -= next && stop > start && stop[-1] == '\r';
        walk(dp_mime_split((doppel_slice){start, (size_t)(stop - start)}), depth + 1, content);
        p = next;
    }
    return true;
}

static void walk(dp_mime_part part, int depth, dp_mime_content *content) {
    doppel_slice type = dp_mime_field(part.head, "Content-Type");
    content->parts++;
    if (starts(dp_mime_field(part.head, "Content-Disposition"), "attachment"))
        return;
    if (starts(type, "multipart/") && walk_parts(part, type, depth, content))
        return;
    if (starts(type, "text/html"))
        take_text(part, type, &content->html);
    else if (!type.length || starts(type, "text/plain") ||
             (!depth && (starts(type, "text") || starts(type, "multipart/"))))
        take_text(part, type, &content->plain);
}

void dp_mime_find(dp_mime_part message, dp_mime_content *content) {
    memset(content, 0, sizeof *content);
    walk(message, 0, content);
}
