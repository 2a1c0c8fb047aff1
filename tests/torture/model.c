/* model.c - what may be there after a crash.
 *
 * For each id the model has the outcomes that are allowed: one when its last step was acknowledged, more while a step
 * is under way or was refused, and, where acknowledged steps may be lost, all since the last comparison. */
#include "model.h"

#include <inttypes.h>

/* ---- the table of ids: open addressing, a power of two ---- */

static size_t slot_of(const tt_model *model, uint64_t id) {
    uint64_t state = id;
    size_t at = (size_t)next_random(&state) & (model->room - 1);
    while (model->entries[at].used && model->entries[at].id != id)
        at = (at + 1) & (model->room - 1);
    return at;
}

static void make_room(tt_model *model, size_t room) {
    tt_entry *old = model->entries;
    size_t old_room = model->room;
    model->room = room;
    if (!(model->entries = calloc(room, sizeof *model->entries)))
        wrong("no memory");
    for (size_t i = 0; i < old_room; i++)
        if (old[i].used)
            model->entries[slot_of(model, old[i].id)] = old[i];
    free(old);
}

tt_entry *model_find(const tt_model *model, uint64_t id) {
    tt_entry *found = &model->entries[slot_of(model, id)];
    return found->used ? found : NULL;
}

/* An id that is new is absent. */
static tt_entry *find_or_make(tt_model *model, uint64_t id) {
    if (2 * (model->count + 1) > model->room)
        make_room(model, 2 * model->room);
    tt_entry *found = &model->entries[slot_of(model, id)];
    if (!found->used) {
        *found = (tt_entry){.used = true, .id = id, .count = 1};
        model->count++;
    }
    return found;
}

tt_model *model_create(void) {
    tt_model *made = calloc(1, sizeof *made);
    if (!made)
        wrong("no memory");
    make_room(made, 1024);
    return made;
}

void model_free(tt_model *model) {
    if (model)
        free(model->entries);
    free(model);
}

tt_model *model_copy(const tt_model *old) {
    tt_model *made = malloc(sizeof *made);
    if (!made || !(*made = *old, made->entries = malloc(old->room * sizeof(tt_entry))))
        wrong("no memory");
    memcpy(made->entries, old->entries, old->room * sizeof(tt_entry));
    return made;
}

uint64_t model_count(const tt_model *model) {
    return model->present;
}

/* ---- steps ---- */

static void offer(tt_entry *entry, const tt_step *step) {
    if (entry->count == MOST_OUTCOMES)
        wrong("too many steps at plant %" PRIu64, entry->id);
    entry->outcome[entry->count++] =
        (tt_outcome){.presence = step->kind == STEP_ADD ? MAYBE : ABSENT, .plant = step->plant, .pending = true};
    entry->clique |= step->clique;
}

/* Whoever is named by an acknowledged verdict is there, even if its own acknowledgement has not come. */
static void named(tt_model *model, const tt_step *step) {
    tt_entry *original = model_find(model, step->original);
    if (!original)
        wrong("plant %" PRIu64 " is called a copy of %" PRIu64 ", which was never offered", step->plant.id,
              step->original);
    tt_outcome *last = &original->outcome[original->count - 1];
    if (last->pending && last->presence == MAYBE && last->plant.text == step->plant.text) {
        last->presence = PRESENT;
        original->outcome[0] = *last;
        original->count = 1;
    }
}

static void done(tt_model *model, tt_entry *entry, const tt_step *step, bool lossy) {
    tt_outcome *last = &entry->outcome[entry->count - 1];
    *last = (tt_outcome){.plant = step->plant};
    if (step->kind == STEP_ADD) {
        last->presence = !step->duplicate || step->kept ? PRESENT : ABSENT;
        last->copy = step->duplicate;
        last->original = step->original;
    }
    if (!lossy) {
        entry->outcome[0] = *last;
        entry->count = 1;
        if (step->kind == STEP_ADD && step->duplicate)
            named(model, step);
    }
    entry->changed |= step->kind == STEP_REMOVE;
}

void model_step(tt_model *model, const tt_step *step, bool lossy) {
    if (step->kind != STEP_ADD && step->kind != STEP_REMOVE)
        return;
    tt_entry *entry = find_or_make(model, step->plant.id);
    if (step->phase == STEP_OFFERED) {
        /* A version before it: copies of it may go. */
        entry->changed |= entry->outcome[entry->count - 1].presence != ABSENT;
        offer(entry, step);
    } else if (step->phase == STEP_DONE) {
        done(model, entry, step, lossy);
    }
    /* What was refused may be there or not: both are allowed already. */
}
