/* local_clock.c - the time an index uses. Documents match and are purged by it.
 *
 * The system clock may be wrong for a moment: an empty battery, a virtual machine that resumes, an operator's mistake.
 * So a reading is believed at once only if it follows from the one before: by the uptime since then (within the same
 * boot), to within SLACK; or, if that is not known, to within a day. Any other is doubted. The time of the index then
 * advances with the machine's uptime, until the new one has been seen for a while (options.clock_settle); then the
 * index uses that, forward or back. If the clock returns before that, nothing changes.
 *
 * While it is doubted, documents match by the time of the index; they are purged by the earlier of the two, and new
 * documents expire by the later: no reading, right or wrong, makes a document expire early. The state is stored with
 * the folder, so that short-lived processes share it. */
#include "known/local.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    DAY = 86400,
    SLACK = 300 /* a step of a network-set clock, and the error of reading whole seconds */
};

static uint64_t apart(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

dp_clock_event dp_clock_step(dp_clock *clock, const dp_clock_reading *read, uint64_t settle) {
    const dp_clock was = *clock;
    bool same_boot = read->boot && read->boot == was.boot && read->uptime >= was.uptime;
    uint64_t passed = same_boot ? read->uptime - was.uptime : 0, expected = was.time + passed;
    *clock = (dp_clock){.time = read->time, .boot = read->boot, .uptime = read->uptime};
    if (!was.time)
        return DP_CLOCK_FOLLOWED;
    if (apart(read->time, expected) <= (read->boot && was.boot ? SLACK : DAY) || settle == DOPPEL_CLOCK_TRUSTED) {
        /* A step back of less than a day is waited for. */
        if (read->time < was.time && was.time - read->time <= DAY)
            clock->time = was.time;
        return was.doubted ? DP_CLOCK_RETURNED : DP_CLOCK_FOLLOWED;
    }
    clock->time = expected;
    clock->doubted = read->time;
    /* Does it continue from the doubted one? */
    if (!was.doubted || (same_boot ? apart(read->time, was.doubted + passed) > SLACK : read->time < was.doubted))
        return DP_CLOCK_DOUBTED;
    uint64_t more = same_boot ? passed : read->time - was.doubted;
    clock->seen = was.seen + more;
    if (clock->seen < settle)
        return DP_CLOCK_DOUBTED;
    /* After another gap of unknown length, it is the time before the gap that was seen twice. */
    bool again = !same_boot && more > DAY;
    clock->time = again ? was.doubted : read->time;
    clock->doubted = again ? read->time : 0;
    clock->seen = 0;
    return DP_CLOCK_SETTLED;
}

/* ---- readings ---- */

static uint64_t boottime(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec;
}

static bool read_text(const char *path, char text[64]) {
    int number = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = number < 0 ? -1 : read(number, text, 63);
    if (number >= 0)
        close(number);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Which boot this is (0: not known), and what to add to CLOCK_BOOTTIME for the time it has lasted. Read from /proc and
 * not through the C library, which a faketime-like preload may intercept. */
static struct {
    pthread_once_t once;
    uint64_t boot, offset;
} machine = {.once = PTHREAD_ONCE_INIT};

static void know_machine(void) {
    char id[64], uptime[64];
    if (!read_text("/proc/sys/kernel/random/boot_id", id) || !read_text("/proc/uptime", uptime))
        return;
    int digits = 0;
    for (const char *at = id; *at && digits < 16; at++) {
        char digit[2] = {*at, 0}, *end;
        uint64_t value = strtoull(digit, &end, 16);
        if (end == digit)
            continue;
        machine.boot = machine.boot << 4 | value;
        digits++;
    }
    machine.offset = strtoull(uptime, NULL, 10) - boottime();
}

static dp_clock_reading read_clock(const dp_local *local, uint64_t time) {
    dp_clock_reading reading = {.time = time};
    if (local->known.options.now)
        return reading;
    pthread_once(&machine.once, know_machine);
    reading.boot = machine.boot;
    reading.uptime = machine.boot ? boottime() + machine.offset : 0;
    return reading;
}

/* ---- the log ---- */

static const char *date_of(uint64_t seconds, char text[32]) {
    time_t time = (time_t)seconds;
    struct tm utc;
    if (!gmtime_r(&time, &utc) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc))
        text[0] = 0;
    return text;
}

static bool is_jump(const dp_clock *clock) {
    return clock->doubted && apart(clock->doubted, clock->time) > DAY;
}

/* A time later than the index's may only mean that nobody has written to it for that long. Within a boot that is known;
 * after a reboot only the writer reports it, and for a folder without a stored boot nothing can be reported. */
static bool is_worth_reporting(const dp_local *local, const dp_clock *was) {
    const dp_clock *is = &local->clock;
    /* The first to see it has reported it. */
    if (was->doubted && apart(was->doubted, is->doubted) <= DAY)
        return false;
    if (is->doubted < is->time || !is->boot || is->boot == was->boot)
        return true;
    return was->boot && !local->known.options.read_only;
}

/* Reports a jump of more than a day, once, and its outcome. `clock_lock` is held. */
static void report_jump(dp_local *local, const dp_clock *was, dp_clock_event event) {
    const dp_clock *is = &local->clock;
    char before[32], after[32];
    /* A reader leaves it to the writer to report what another process has seen. */
    if (is_jump(was) && event == DP_CLOCK_RETURNED && (local->clock_reported || !local->known.options.read_only))
        dp_known_log(
            &local->known, DOPPEL_LOG_WARNING, "CLOCK_RETURNED",
            "the clock of the system, which had said %s, says %s again: nothing was purged; documents that were "
            "added in between expire by the later of the two",
            date_of(was->doubted, before), date_of(is->time, after));
    if (is_jump(was) && event == DP_CLOCK_SETTLED)
        dp_known_log(&local->known, DOPPEL_LOG_WARNING, "CLOCK_SETTLED",
                     "the clock of the system has jumped for good: the index goes by %s from now on, before by %s",
                     date_of(is->time, after), date_of(was->time, before));
    if (is_jump(is) && is_worth_reporting(local, was))
        dp_known_log(
            &local->known, DOPPEL_LOG_WARNING, "CLOCK_JUMP",
            "the clock of the system says %s, the time of the index is %s (%llu days %s). If the clock is wrong, set "
            "it right; if the index was not used for so long, all is well. Until the clock has said so for %llu s, "
            "documents match and are purged by the time of the index",
            date_of(is->doubted, after), date_of(is->time, before),
            (unsigned long long)(apart(is->doubted, is->time) / DAY), is->doubted > is->time ? "earlier" : "later",
            (unsigned long long)local->known.options.clock_settle);
    local->clock_reported = is_jump(is);
}

/* ---- the time of an index ---- */

/* Takes in a reading; `clock_lock` is held. */
static void take_reading(dp_local *local, uint64_t time) {
    const dp_clock_reading reading = read_clock(local, time);
    const dp_clock was = local->clock;
    dp_clock *is = &local->clock;
    dp_clock_event event = dp_clock_step(is, &reading, local->known.options.clock_settle);
    atomic_store(&local->now, is->time);
    atomic_store(&local->latest, is->doubted > is->time ? is->doubted : is->time);
    atomic_store(&local->purge, is->doubted && is->doubted < is->time ? is->doubted : is->time);
    atomic_store(&local->reading, time);
    local->clock_news = local->clock_news || event != DP_CLOCK_FOLLOWED;
    report_jump(local, &was, event);
}

uint64_t dp_local_now(dp_local *local) {
    uint64_t read =
        local->known.options.now ? local->known.options.now(local->known.options.now_user) : dp_wall_seconds();
    if (atomic_load(&local->reading) != read) {
        pthread_mutex_lock(&local->clock_lock);
        take_reading(local, read);
        pthread_mutex_unlock(&local->clock_lock);
    }
    return atomic_load(&local->now);
}

uint64_t dp_local_latest(dp_local *local) {
    (void)dp_local_now(local);
    return atomic_load(&local->latest);
}

uint64_t dp_local_purge_time(dp_local *local) {
    (void)dp_local_now(local);
    return atomic_load(&local->purge);
}

void dp_local_set_clock(dp_local *local, const dp_clock *stored) {
    const dp_clock *last = &local->stored_clock;
    pthread_mutex_lock(&local->clock_lock);
    if (stored->time != last->time || stored->uptime != last->uptime || stored->doubted != last->doubted ||
        stored->boot != last->boot) {
        local->clock = local->stored_clock = *stored;
        atomic_store(&local->reading, 0);
    }
    pthread_mutex_unlock(&local->clock_lock);
}

dp_clock dp_local_get_clock(dp_local *local, bool *news) {
    pthread_mutex_lock(&local->clock_lock);
    dp_clock clock = local->clock;
    *news = local->clock_news;
    local->clock_news = false;
    pthread_mutex_unlock(&local->clock_lock);
    return clock;
}
