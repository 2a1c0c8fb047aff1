/* scenario.c - everything an engine can do, once. Takes no memory of its own: that may be what fails. */
#include "scenario.h"

#include <inttypes.h>

enum { BATCH = 5 };

typedef struct tt_run {
    doppel_engine *engine;
    tt_outcomes *out;
    uint64_t next;
} tt_run;

tt_setup scenario_setup(const char *folder, bool by_distance) {
    return (tt_setup){.folder = folder,
                      .by_similarity = !by_distance,
                      .durability = DOPPEL_DURABLE_BATCH,
                      .on_duplicate = DOPPEL_DUPLICATE_LINK,
                      .now = 1700000000};
}

/* ---- what came of it ---- */

static void record(tt_run *run, const tt_step *step) {
    if (run->out->count == MOST_STEPS)
        wrong("too many steps");
    run->out->steps[run->out->count++] = *step;
}

/* Whether a call went well. Errors say which kind they are, and something. */
static bool well(tt_run *run, doppel_status status, const doppel_error *error, const char *what) {
    if (status == DOPPEL_OK)
        return true;
    if (status != DOPPEL_ERROR_MEMORY && status != DOPPEL_ERROR_IO && status != DOPPEL_ERROR_STORE)
        wrong("%s fails with \"%s\": %s", what, doppel_status_name(status), error->message);
    if (!error->message[0] || error->code != status)
        wrong("%s fails without a message", what);
    if (!run->out->refusals++)
        snprintf(run->out->first, sizeof run->out->first, "%s: %s: %s", what, doppel_status_name(status),
                 error->message);
    return false;
}

static void expect(tt_run *run, bool right, const char *what, uint64_t id) {
    if (!right && !run->out->refusals && !run->out->surprises++)
        snprintf(run->out->first_surprise, sizeof run->out->first_surprise, "%s of plant %" PRIu64, what, id);
}

/* ---- calls ---- */

static void done(tt_run *run, tt_step *step, bool well_done, const doppel_verdict *verdict) {
    step->phase = well_done ? STEP_DONE : STEP_REFUSED;
    step->duplicate = well_done && verdict->is_duplicate;
    step->kept = step->duplicate;
    if (step->duplicate && !plant_number(verdict->original_id, &step->original))
        wrong("an original of a strange name");
    record(run, step);
}

/* Adds; `original` is whose copy it is, 0: nobody's, UINT64_MAX: who knows. */
static void add(tt_run *run, tt_plant plant, uint64_t original) {
    plant_room room;
    doppel_item item = plant_item(&plant, &room);
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    tt_step step = {.kind = STEP_ADD, .plant = plant};
    record(run, &step);
    bool fine = well(run, doppel_engine_add(run->engine, &item, &verdict, &error), &error, "add");
    done(run, &step, fine, &verdict);
    bool right = original == UINT64_MAX || (step.duplicate ? step.original : 0) == original;
    expect(run, !fine || right, "the verdict", plant.id);
    doppel_verdict_free(&verdict);
}

static tt_plant new_plant(tt_run *run) {
    uint64_t id = ++run->next;
    return (tt_plant){.id = id, .text = id, .at = scenario_setup(NULL, false).now};
}

static void add_batch(tt_run *run) {
    plant_room room[BATCH];
    doppel_item items[BATCH];
    doppel_verdict verdicts[BATCH] = {0};
    doppel_error errors[BATCH] = {0};
    tt_step steps[BATCH];
    doppel_error error = {0};
    for (int i = 0; i < BATCH; i++) {
        steps[i] = (tt_step){.kind = STEP_ADD, .plant = new_plant(run)};
        if (i == BATCH - 1)
            steps[i].plant.text = steps[0].plant.text;
        items[i] = plant_item(&steps[i].plant, &room[i]);
        record(run, &steps[i]);
    }
    doppel_status all = doppel_engine_add_batch(run->engine, items, BATCH, verdicts, errors, &error);
    bool fine = well(run, all, &error, "add_batch"), whole = true;
    for (int i = 0; i < BATCH; i++)
        whole &= errors[i].code == DOPPEL_OK;
    run->out->refusals += fine && !whole;
    for (int i = 0; i < BATCH; i++) {
        done(run, &steps[i], fine && errors[i].code == DOPPEL_OK, &verdicts[i]);
        expect(run, steps[i].duplicate == (i == BATCH - 1), "the verdict in a batch", steps[i].plant.id);
        doppel_verdict_free(&verdicts[i]);
    }
}

static void forget(tt_run *run, uint64_t id) {
    plant_room room;
    tt_step step = {.kind = STEP_REMOVE, .plant = {.id = id, .text = id}};
    doppel_item item = plant_item(&step.plant, &room);
    doppel_error error = {0};
    bool removed = false;
    record(run, &step);
    bool fine = well(run, doppel_engine_remove(run->engine, item.document.id, &removed, &error), &error, "remove");
    step.phase = fine ? STEP_DONE : STEP_REFUSED;
    record(run, &step);
    expect(run, !fine || removed, "the removal", id);
}

static void look(tt_run *run, uint64_t id) {
    plant_room room;
    doppel_item item = plant_item(&(tt_plant){.id = id, .text = id}, &room);
    doppel_verdict verdict = {0};
    doppel_stored_list list = {0};
    doppel_error error = {0};
    doppel_engine_stats stats;
    if (well(run, doppel_engine_check(run->engine, &item, &verdict, &error), &error, "check"))
        expect(run, verdict.is_duplicate, "a check", id);
    if (well(run, doppel_engine_get(run->engine, doppel_slice_of(room.id), &list, &error), &error, "get"))
        expect(run, list.count == 1, "a get", id);
    doppel_stored_list_free(&list);
    item.document.id.data = item.document.url.data = NULL;
    item.document.id.length = item.document.url.length = 0;
    list = (doppel_stored_list){0};
    if (well(run, doppel_engine_find_similar(run->engine, &item, NULL, &list, &error), &error, "similar"))
        expect(run, list.count > 0, "what is similar", id);
    doppel_stored_list_free(&list);
    list = (doppel_stored_list){0};
    if (well(run, doppel_engine_groups(run->engine, 5, &list, &error), &error, "groups"))
        doppel_stored_list_free(&list);
    doppel_engine_get_stats(run->engine, &stats);
    doppel_verdict_free(&verdict);
}

static void keep_house(tt_run *run, const char *backup) {
    doppel_error error = {0};
    tt_step step = {.kind = STEP_BACKUP};
    well(run, doppel_engine_expire(run->engine, NULL, &error), &error, "expire");
    well(run, doppel_engine_compact(run->engine, &error), &error, "compact");
    add(run, new_plant(run), 0);
    record(run, &step);
    if (well(run, doppel_engine_backup(run->engine, backup, &error), &error, "backup")) {
        step.phase = STEP_DONE;
        record(run, &step);
    }
}

/* ---- sessions ---- */

static bool open_it(tt_run *run, const char *folder) {
    tt_setup setup = scenario_setup(folder, run->out->by_distance);
    doppel_error error = {0};
    run->engine = NULL;
    return well(run, setup_try(&setup, &run->engine, &error), &error, "open");
}

static void first_session(tt_run *run, const char *backup) {
    for (int i = 0; i < 5; i++)
        add(run, new_plant(run), 0); /* 1 to 5 */
    tt_plant copy = new_plant(run), near = new_plant(run), again = {.id = 3, .text = 1000, .at = copy.at};
    copy.text = near.text = 1;
    near.change = 17;
    add(run, copy, 1);
    add(run, near, run->out->by_distance ? UINT64_MAX : 1);
    add_batch(run);
    forget(run, 2);
    add(run, again, 0);
    look(run, 4);
    keep_house(run, backup);
    look(run, 4);
    add(run, new_plant(run), 0);
}

static void second_session(tt_run *run) {
    look(run, 4);
    forget(run, 5);
    tt_plant copy = new_plant(run);
    copy.text = 4;
    add(run, copy, 4);
    add(run, new_plant(run), 0);
}

void scenario_run(const char *folder, const char *backup, tt_outcomes *out) {
    tt_run run = {.out = out};
    for (int session = 0; session < 2; session++) {
        if (!open_it(&run, folder))
            continue;
        if (session)
            second_session(&run);
        else
            first_session(&run, backup);
        doppel_engine_close(run.engine);
    }
    out->finished = true;
}
