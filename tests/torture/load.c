/* load.c - threads that add, replace, link, remove, check and ask for documents, each its own, but for cliques, which
 * all add; and one that compacts, purges and makes backups. Each step is reported before it is tried and after. */
#include "torture.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

enum { MOST_OWN = 1 << 12, BATCH = 5, MOST_THREADS = 64 };

typedef struct tt_own {
    tt_plant plant;
    int replaced; /* how often */
    bool gone;    /* removed, or another version has its place */
    bool removed; /* and can be added again */
} tt_own;

typedef struct tt_worker {
    const tt_load *load;
    int number;
    uint64_t state, next, cliques;
    size_t count;
    tt_own own[MOST_OWN]; /* originals that were acknowledged */
    atomic_bool *end;
} tt_worker;

/* Ids do not meet: 2^32 a round, 2^24 a thread. */
static uint64_t new_id(tt_worker *worker) {
    return worker->load->round << 32 | (uint64_t)worker->number << 24 | worker->next++;
}

static tt_plant new_plant(tt_worker *worker) {
    uint64_t id = new_id(worker);
    return (tt_plant){.id = id, .text = id + 1, .at = worker->load->now};
}

/* Whether a call went well; where none may fail, that is the end otherwise. */
static bool well(const tt_worker *worker, doppel_status status, const doppel_error *error, const char *what) {
    if (!worker->load->tolerant || status == DOPPEL_ERROR_USAGE || status == DOPPEL_ERROR_INPUT)
        must(status, error, what);
    return status == DOPPEL_OK;
}

/* Whether what was acknowledged may be taken back: without durability, when a commit fails. */
static bool forgets(const tt_worker *worker) {
    return worker->load->lossy && worker->load->tolerant;
}

static void report(const tt_worker *worker, const tt_step *step) {
    worker->load->report(step, worker->load->user);
}

/* ---- adding ---- */

static void remember(tt_worker *worker, const tt_step *step) {
    if (step->duplicate || step->clique || step->plant.ttl || worker->count == MOST_OWN)
        return;
    worker->own[worker->count++] = (tt_own){.plant = step->plant};
}

static void report_verdict(tt_worker *worker, tt_step *step, doppel_status status, const doppel_verdict *verdict) {
    step->phase = status == DOPPEL_OK ? STEP_DONE : STEP_REFUSED;
    if (status == DOPPEL_OK) {
        step->duplicate = verdict->is_duplicate;
        step->kept = verdict->is_duplicate && worker->load->keeps_copies;
        if (verdict->is_duplicate && !plant_number(verdict->original_id, &step->original))
            wrong("an original of a strange name: %.*s", (int)verdict->original_id.length, verdict->original_id.data);
    }
    report(worker, step);
}

/* Adds one; `expected` is the original it must name, 0: none, UINT64_MAX: whatever. Gives whether it is no new
 * original.
 */
static bool add(tt_worker *worker, tt_plant plant, bool clique, uint64_t expected) {
    plant_room room;
    doppel_item item = plant_item(&plant, &room);
    doppel_verdict verdict = {0};
    doppel_error error;
    tt_step step = {.kind = STEP_ADD, .plant = plant, .clique = clique};
    report(worker, &step);
    doppel_status status = doppel_engine_add(worker->load->engine, &item, &verdict, &error);
    report_verdict(worker, &step, status, &verdict);
    doppel_verdict_free(&verdict);
    if (!well(worker, status, &error, "add"))
        return true;
    if (!forgets(worker) && expected != UINT64_MAX && (step.duplicate ? step.original : 0) != expected)
        wrong("plant %" PRIu64 " is called a copy of %" PRIu64 ", not of %" PRIu64, plant.id,
              step.duplicate ? step.original : 0, expected);
    remember(worker, &step);
    return step.duplicate;
}

static void add_batch(tt_worker *worker) {
    plant_room room[BATCH];
    doppel_item items[BATCH];
    doppel_verdict verdicts[BATCH] = {0};
    doppel_error errors[BATCH];
    tt_step steps[BATCH];
    doppel_error error;
    for (int i = 0; i < BATCH; i++) {
        steps[i] = (tt_step){.kind = STEP_ADD, .plant = new_plant(worker)};
        if (i == BATCH - 1) /* a copy in the same batch */
            steps[i].plant.text = steps[0].plant.text;
        items[i] = plant_item(&steps[i].plant, &room[i]);
        report(worker, &steps[i]);
    }
    doppel_status all = doppel_engine_add_batch(worker->load->engine, items, BATCH, verdicts, errors, &error);
    well(worker, all, &error, "add_batch");
    for (int i = 0; i < BATCH; i++) {
        doppel_status one = all == DOPPEL_OK ? errors[i].code : all;
        report_verdict(worker, &steps[i], one, &verdicts[i]);
        if (!worker->load->tolerant && steps[i].duplicate != (i == BATCH - 1))
            wrong("document %d of a batch has the wrong verdict", i);
        if (one == DOPPEL_OK)
            remember(worker, &steps[i]);
        doppel_verdict_free(&verdicts[i]);
    }
}

/* ---- what is done to a document of its own ---- */

static void add_copy(tt_worker *worker, tt_own *of, bool near) {
    tt_plant copy = new_plant(worker);
    copy.text = of->plant.text;
    copy.change = of->plant.change;
    if (near)
        copy.change = 1 + (uint32_t)below(&worker->state, 100000);
    bool known = !near || worker->load->by_similarity;
    add(worker, copy, false, known ? of->plant.id : UINT64_MAX);
}

static void replace(tt_worker *worker, tt_own *of) {
    tt_plant plant = of->plant;
    if (of->replaced++ >= 2)
        return;
    plant.text = plant.id + ((uint64_t)of->replaced << 56);
    of->gone = true; /* the new version is remembered in its place */
    if (!add(worker, plant, false, 0))
        worker->own[worker->count - 1].replaced = of->replaced;
}

static void forget(tt_worker *worker, tt_own *of) {
    plant_room room;
    doppel_item item = plant_item(&of->plant, &room);
    doppel_error error;
    bool removed = false;
    tt_step step = {.kind = STEP_REMOVE, .plant = of->plant};
    report(worker, &step);
    doppel_status status = doppel_engine_remove(worker->load->engine, item.document.id, &removed, &error);
    bool fine = well(worker, status, &error, "remove");
    step.phase = fine ? STEP_DONE : STEP_REFUSED;
    report(worker, &step);
    if (fine && !removed && !forgets(worker))
        wrong("%s was not there to be removed", room.id);
    of->gone = true;
    of->removed = fine && of->replaced < 3;
}

/* What was removed comes again, and is new. */
static void revive(tt_worker *worker, tt_own *of) {
    of->removed = false;
    if (!add(worker, of->plant, false, worker->load->by_similarity ? 0 : UINT64_MAX))
        worker->own[worker->count - 1].replaced = 3; /* once only */
}

static void look(tt_worker *worker, const tt_own *of) {
    plant_room room;
    doppel_item item = plant_item(&of->plant, &room);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    doppel_error error;
    item.document.id.data = item.document.url.data = NULL;
    item.document.id.length = item.document.url.length = 0;
    if (well(worker, doppel_engine_check(worker->load->engine, &item, &verdict, &error), &error, "check")) {
        uint64_t original;
        bool right = verdict.is_duplicate && plant_number(verdict.original_id, &original) && original == of->plant.id;
        if (!right && !forgets(worker))
            wrong("a check does not find %s, which was acknowledged", room.id);
    }
    bool asked =
        well(worker, doppel_engine_find_similar(worker->load->engine, &item, NULL, &list, &error), &error, "similar");
    if (asked && !list.count && !forgets(worker))
        wrong("nothing is similar to %s, which was acknowledged", room.id);
    doppel_stored_list_free(&list);
    doppel_verdict_free(&verdict);
}

/* ---- one step after the other ---- */

static void step_clique(tt_worker *worker) {
    tt_plant plant = new_plant(worker);
    plant.text = worker->load->round << 32 | 0xFF000000u | worker->cliques++;
    plant.change = worker->load->by_similarity ? (uint32_t)worker->number : 0;
    add(worker, plant, true, UINT64_MAX);
}

/* A copy whose original is removed is new when it comes again. */
static void step_orphan(tt_worker *worker) {
    tt_plant first = new_plant(worker), copy = new_plant(worker);
    copy.text = first.text;
    if (add(worker, first, false, 0) || worker->count == MOST_OWN)
        return;
    tt_own *of = &worker->own[worker->count - 1];
    add(worker, copy, false, first.id);
    forget(worker, of);
    if (of->removed)
        add(worker, copy, false, 0);
    of->removed = false;
}

static void step_once(tt_worker *worker) {
    tt_own *of = worker->count ? &worker->own[below(&worker->state, worker->count)] : NULL;
    uint64_t choice = below(&worker->state, 100);
    if (of && of->removed && choice >= 55 && worker->count < MOST_OWN) {
        revive(worker, of);
        return;
    }
    if (of && of->gone)
        of = NULL;
    if (choice < 6) {
        step_clique(worker);
    } else if (choice < 8) {
        step_orphan(worker);
    } else if (choice < 14) {
        add_batch(worker);
    } else if (choice < 20) {
        tt_plant plant = new_plant(worker);
        plant.ttl = 500;
        add(worker, plant, false, 0);
    } else if (choice < 55 || !of || worker->count == MOST_OWN) {
        add(worker, new_plant(worker), false, 0);
    } else if (choice < 75) {
        add_copy(worker, of, choice < 65);
    } else if (choice < 80) {
        replace(worker, of);
    } else if (choice < 90) {
        forget(worker, of);
    } else {
        look(worker, of);
    }
}

static void *work(void *given) {
    tt_worker *worker = given;
    for (uint64_t i = 0; !worker->load->steps || i < worker->load->steps; i++)
        step_once(worker);
    return NULL;
}

/* ---- keeping house ---- */

static void back_up(const tt_worker *worker, uint64_t number) {
    char name[32];
    doppel_error error;
    tt_step step = {.kind = STEP_BACKUP, .plant.id = worker->load->round << 32 | number};
    snprintf(name, sizeof name, "%" PRIu64, step.plant.id);
    report(worker, &step);
    doppel_status status = doppel_engine_backup(worker->load->engine, beside(worker->load->backups, name), &error);
    step.phase = well(worker, status, &error, "backup") ? STEP_DONE : STEP_REFUSED;
    report(worker, &step);
}

static void *keep_house(void *given) {
    tt_worker *worker = given;
    doppel_error error;
    for (uint64_t i = 0; !atomic_load(worker->end); i++) {
        usleep((useconds_t)(5000 + below(&worker->state, 40000)));
        if (i % 3 == 0)
            back_up(worker, i);
        else if (i % 3 == 1)
            well(worker, doppel_engine_compact(worker->load->engine, &error), &error, "compact");
        else
            well(worker, doppel_engine_expire(worker->load->engine, NULL, &error), &error, "expire");
    }
    return NULL;
}

void load_run(const tt_load *load) {
    tt_worker *workers = calloc((size_t)load->threads + 1, sizeof *workers);
    pthread_t threads[MOST_THREADS + 1];
    atomic_bool end = false;
    int all = load->threads + (load->backups != NULL);
    if (!workers)
        wrong("no memory");
    for (int i = 0; i < all; i++) {
        workers[i].load = load;
        workers[i].number = i;
        workers[i].state = load->seed * 1000 + (uint64_t)i;
        workers[i].end = &end;
        if (pthread_create(&threads[i], NULL, i < load->threads ? work : keep_house, &workers[i]))
            wrong("no thread");
    }
    for (int i = 0; i < load->threads; i++)
        pthread_join(threads[i], NULL);
    end = true;
    if (load->backups)
        pthread_join(threads[load->threads], NULL);
    free(workers);
}
