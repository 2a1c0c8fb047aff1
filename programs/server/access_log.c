/* access_log.c - a JSON line a request: who, what, how it ended, how long it took. Routes are named as the table has
 * them, so that neither ids nor texts of documents get into the log. */
#include "server/service.h"

#include "common/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

bool access_log_open(service *s) {
    const char *path = s->options.access_log;
    if (!path)
        return true;
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "ae") : stdout;
    if (!file) {
        message("%s: cannot open the access log: %s", path, strerror(errno));
        return false;
    }
    setvbuf(file, NULL, _IOLBF, 1 << 14);
    pthread_mutex_lock(&s->log_lock);
    FILE *old = s->access_log;
    s->access_log = file;
    pthread_mutex_unlock(&s->log_lock);
    if (old && old != stdout)
        fclose(old);
    return true;
}

void access_log_close(service *s) {
    if (s->access_log && s->access_log != stdout)
        fclose(s->access_log);
    s->access_log = NULL;
}

static void write_when(text *out) {
    struct timeval now;
    struct tm parts;
    char when[32];
    gettimeofday(&now, NULL);
    gmtime_r(&now.tv_sec, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    text_format(out, "{\"time\":\"%s.%03dZ\"", when, (int)(now.tv_usec / 1000));
}

void access_log_write(service *s, const request *r, uint64_t microseconds) {
    text out = {0};
    if (!s->options.access_log)
        return;
    write_when(&out);
    text_member_string(&out, "client", slice_of(r->client));
    if (r->token[0])
        text_member_string(&out, "token", slice_of(r->token));
    text_member_string(&out, "method", slice_of(r->route ? r->route->method : NULL));
    text_member_string(&out, "route", slice_of(r->route ? r->route->path : NULL));
    if (r->index)
        text_member_string(&out, "index", slice_of(r->index->name));
    text_member_count(&out, "status", (uint64_t)r->status);
    text_member_count(&out, "received", r->received);
    text_member_count(&out, "sent", r->sent);
    text_member_count(&out, "microseconds", microseconds);
    text_put(&out, "}\n");
    pthread_mutex_lock(&s->log_lock);
    if (s->access_log && !out.failed)
        fwrite(out.data, 1, out.length, s->access_log);
    pthread_mutex_unlock(&s->log_lock);
    text_free(&out);
}
