/* indexes.c - the indexes of a server, by name: the files of their folder; the settings of an index, from JSON;
 * opening, using, creating and dropping indexes. */
#include "server/indexes.h"

#include "common/args.h"
#include "common/message.h"
#include "doppel.h"
#include "server/files.h"
#include "server/service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- files of the folder; names are checked by the caller ---- */

/* A small file, read whole. */
typedef struct folder_file {
    char *bytes; /* to be freed, also after a failure */
    size_t length;
} folder_file;

enum { LARGEST = 1 << 20 };

/* FOLDER/NAMEENDING, allocated; NULL: no memory. */
static char *folder_path(const char *folder, const char *name, const char *ending) {
    char *path = NULL;
    return asprintf(&path, "%s/%s%s", folder, name, ending) < 0 ? NULL : path;
}

static doppel_status failed(const char *path, const char *what, doppel_error *error) {
    doppel_status status = path ? DOPPEL_ERROR_IO : DOPPEL_ERROR_MEMORY;
    *error = (doppel_error){.code = status};
    snprintf(error->message, sizeof error->message, "cannot %s: %s", what, strerror(path ? errno : ENOMEM));
    if (path)
        snprintf(error->file, sizeof error->file, "%s", path);
    return status;
}

static doppel_status folder_read(const char *folder, const char *name, const char *ending, folder_file *into,
                                 doppel_error *error) {
    char *path = folder_path(folder, name, ending);
    FILE *file = path ? fopen(path, "re") : NULL;
    into->bytes = malloc(LARGEST);
    into->length = file && into->bytes ? fread(into->bytes, 1, LARGEST, file) : 0;
    doppel_status status = DOPPEL_OK;
    if (!file || !into->bytes || ferror(file))
        status = failed(path, "read", error);
    if (file)
        fclose(file);
    free(path);
    return status;
}

static bool sync_folder(const char *folder) {
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool fine = file >= 0 && !fsync(file);
    if (file >= 0)
        close(file);
    return fine;
}

/* Writes a file that is complete or absent, and on disk. */
static doppel_status folder_write(const char *folder, const char *name, const char *ending, doppel_slice bytes,
                                  doppel_error *error) {
    char *path = folder_path(folder, name, ending), *beside = folder_path(folder, name, ".new");
    int file = path && beside ? open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool fine = file >= 0 && file_write(file, bytes.data, bytes.length) && !fsync(file) && !rename(beside, path) &&
                sync_folder(folder);
    doppel_status status = fine ? DOPPEL_OK : failed(beside ? path : NULL, "write", error);
    if (file >= 0)
        close(file);
    free(path);
    free(beside);
    return status;
}

static doppel_status folder_unlink(const char *folder, const char *name, const char *ending, doppel_error *error) {
    char *path = folder_path(folder, name, ending);
    bool fine = path && !unlink(path) && sync_folder(folder);
    doppel_status status = fine ? DOPPEL_OK : failed(path, "remove", error);
    free(path);
    return status;
}

/* Removes a folder with the plain files in it; a folder with others is not removed. */
static void folder_remove(const char *path) {
    struct dirent *found;
    DIR *folder = opendir(path);
    while (folder && (found = readdir(folder)))
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            unlinkat(dirfd(folder), found->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* ---- settings ---- */

/* The number of a name in a list of choices separated by |, counted from 1; 0: it is not in the list. */
static int choice_of(const char *choices, doppel_slice name) {
    int number = 1;
    for (const char *at = choices; at; number++) {
        size_t length = strcspn(at, "|");
        if (length == name.length && !memcmp(at, name.data, length))
            return number;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

static int choice_member(const json *j, const json_value *object, const char *key, const char *choices) {
    const json_value *value = json_member(j, object, key);
    return value && value->kind == JSON_STRING ? choice_of(choices, value->text) : 0;
}

static double number_member(const json *j, const json_value *object, const char *key, double otherwise) {
    const json_value *value = json_member(j, object, key);
    return value && value->kind == JSON_NUMBER ? strtod(value->text.data, NULL) : otherwise;
}

static doppel_switch switch_member(const json *j, const json_value *object, const char *key) {
    const json_value *value = json_member(j, object, key);
    if (!value || (value->kind != JSON_TRUE && value->kind != JSON_FALSE))
        return DOPPEL_SWITCH_PRESET;
    return value->kind == JSON_TRUE ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF;
}

/* A string of an object, copied to *place, which is advanced; NULL: it has none. */
static const char *string_member(const json *j, const json_value *object, const char *key, char **place) {
    const json_value *value = json_member(j, object, key);
    if (!value || value->kind != JSON_STRING)
        return NULL;
    char *copy = *place;
    memcpy(copy, value->text.data, value->text.length);
    copy[value->text.length] = 0;
    *place += value->text.length + 1;
    return copy;
}

static bool set_recipe(index_entry *entry, const char *recipe, doppel_error *error) {
    if (recipe && doppel_recipe_parse(recipe, NULL, &entry->recipe, error) != DOPPEL_OK)
        return false;
    entry->options.recipe = entry->recipe;
    return true;
}

static void set_numbers(doppel_engine_options *o, const json *j) {
    const json_value *object = j->values;
    o->similarity = number_member(j, object, "similarity", 0);
    o->title_similarity = number_member(j, object, "titleSimilarity", 0);
    o->min_words = (uint64_t)number_member(j, object, "minWords", 0);
    o->ttl = (uint64_t)number_member(j, object, "ttl", 0);
    o->sample = (uint64_t)number_member(j, object, "sample", 0);
    const json_value *distance = json_member(j, object, "distance");
    o->distance = distance && distance->kind == JSON_NUMBER ? (int)strtod(distance->text.data, NULL) : 0;
    o->distance_zero = distance && distance->kind == JSON_NUMBER && !o->distance;
}

bool index_settings(index_entry *entry, doppel_slice bytes, doppel_error *error) {
    json j = {0};
    doppel_engine_options *o = &entry->options;
    *error = (doppel_error){.code = DOPPEL_ERROR_MEMORY, .message = "no memory"};
    *o = (doppel_engine_options){.size = sizeof *o};
    bool fine = json_read(&j, bytes.data, bytes.length) && j.values->kind == JSON_OBJECT;
    if (!fine && !j.no_memory) {
        error->code = DOPPEL_ERROR_STORE;
        snprintf(error->message, sizeof error->message, "the settings of the index are damaged: %s", j.why);
    }
    /* Strings are never longer than in the JSON, where each has quotes: room for its NUL. */
    char *place = entry->settings = fine ? malloc(bytes.length + 1) : NULL;
    if (fine && place) {
        const json_value *object = j.values;
        o->preset = string_member(&j, object, "preset", &place);
        o->fields = string_member(&j, object, "fields", &place);
        o->near = (doppel_near_by)choice_member(&j, object, "near", "distance|similarity");
        o->on_duplicate = (doppel_on_duplicate)choice_member(&j, object, "onDuplicate", "skip|link|store");
        o->on_same_url = (doppel_on_same_url)choice_member(&j, object, "onSameUrl", "duplicate|refresh");
        o->durability = (doppel_durability)choice_member(&j, object, "durability", "none|batch|each");
        o->titles = switch_member(&j, object, "titles");
        o->title_veto = switch_member(&j, object, "titleVeto");
        o->keep_text = switch_member(&j, object, "keepText");
        set_numbers(o, &j);
        fine = set_recipe(entry, string_member(&j, object, "recipe", &place), error);
    }
    fine = fine && entry->settings;
    json_free(&j);
    return fine;
}

bool index_name_allowed(doppel_slice name) {
    if (!name.length || name.length > INDEX_NAME)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return true;
}

/* ---- the history of an index ----
 *
 * That of an index folder is in a file of it, which only the one writer of the folder reads and writes. Names that
 * begin with doppel.index are the store's own (lib/store/lmdb_folder.c), and it ignores this one. */

static const char history_name[] = "doppel.index-history";

/* Reads the file of the history, if there is one; one that cannot be used is replaced by the next write. */
static void history_load(index_entry *entry, uint64_t now) {
    char *path = folder_path(entry->history_folder, history_name, "");
    folder_file file = {0};
    doppel_error error;
    if (path && !access(path, F_OK)) {
        if (folder_read(entry->history_folder, history_name, "", &file, &error) != DOPPEL_OK)
            message_error(&error);
        else if (!history_read(entry->history, now, (doppel_slice){file.bytes, file.length}))
            message("%s: the file is damaged or truncated, and is ignored: the history of the index `%s` begins now",
                    path, entry->name);
    }
    free(file.bytes);
    free(path);
}

/* False: no memory. */
static bool history_open(index_entry *entry, const char *path) {
    uint64_t now = (uint64_t)time(NULL);
    entry->history = history_create(now);
    if (!entry->history)
        return false;
    if (!entry->needs.folder || entry->options.read_only)
        return true;
    entry->history_folder = strdup(path);
    if (entry->history_folder)
        history_load(entry, now);
    return entry->history_folder;
}

static void history_save(index_entry *entry, uint64_t now) {
    text_buffer out = {0};
    doppel_error error;
    history_write(entry->history, now, &out);
    bool fine = !out.failed && folder_write(entry->history_folder, history_name, "",
                                            (doppel_slice){out.data, out.length}, &error) == DOPPEL_OK;
    if (!fine && !entry->history_failed && !out.failed) {
        message_error(&error);
        message("the history of the index `%s` is kept in memory until it can be written", entry->name);
    }
    entry->history_failed = !fine;
    text_free(&out);
}

void index_history_update(index_entry *entry, bool write) {
    doppel_engine_stats stats;
    uint64_t now = (uint64_t)time(NULL);
    if (!entry->history)
        return;
    index_stats(entry, &stats);
    history_add(entry->history, now, &stats);
    if (write && entry->history_folder && history_is_due(entry->history, now))
        history_save(entry, now);
}

static void history_close(index_entry *entry) {
    index_history_update(entry, false);
    if (entry->history_folder && !entry->dropped)
        history_save(entry, (uint64_t)time(NULL));
    history_free(entry->history);
    free(entry->history_folder);
}

/* ---- one index ---- */

static void entry_free(index_entry *entry) {
    if (!entry)
        return;
    history_close(entry);
    watch_close(&entry->watch);
    doppel_engine_close(entry->engine);
    doppel_recipe_free(entry->recipe);
    free(entry->fields.text);
    free(entry->settings);
    free(entry);
}

static index_entry *entry_create(doppel_slice name) {
    index_entry *entry = calloc(1, sizeof *entry);
    if (entry)
        memcpy(entry->name, name.data, name.length);
    return entry;
}

static doppel_status entry_open(index_entry *entry, const char *path, doppel_error *error) {
    doppel_status status = doppel_engine_get_needs(path, &entry->needs, error);
    if (status == DOPPEL_OK)
        status = doppel_engine_open(path, &entry->options, &entry->engine, error);
    if (status != DOPPEL_OK)
        return status;
    entry->bits = doppel_recipe_bits(doppel_engine_get_options(entry->engine)->recipe);
    if (split_names(&entry->fields, doppel_engine_get_options(entry->engine)->fields) &&
        watch_open(&entry->watch, entry->engine, &entry->needs, "requests that need it get 503") &&
        history_open(entry, path))
        return DOPPEL_OK;
    *error = (doppel_error){.code = DOPPEL_ERROR_MEMORY, .message = "no memory, or no threads"};
    return DOPPEL_ERROR_MEMORY;
}

static bool add_entry(indexes *all, index_entry *entry) {
    index_entry **grown = realloc(all->list, (all->count + 1) * sizeof(index_entry *));
    if (!grown)
        return false;
    all->list = grown;
    all->list[all->count++] = entry;
    return true;
}

/* Options of the command line that apply to all indexes. */
static void take_over(index_entry *entry, const index_entry *first) {
    entry->options.group_readable = first->options.group_readable;
    entry->options.clock_settle = first->options.clock_settle;
}

/* ---- opening ---- */

static int complain(const char *path, doppel_status status, doppel_error *error) {
    if (!error->file[0] && path && !strstr(error->message, path))
        snprintf(error->file, sizeof error->file, "%s", path);
    message_error(error);
    return exit_code(status);
}

/* An index that is damaged, or that cannot be opened for another reason, does not prevent the others from being served.
 * One whose store does not answer does: it may answer soon, and only a restart opens it. */
static bool add_unavailable(indexes *all, index_entry *entry, doppel_status status) {
    if (!entry || (status != DOPPEL_ERROR_STORE && status != DOPPEL_ERROR_IO) || !add_entry(all, entry))
        return false;
    doppel_engine_close(entry->engine);
    entry->engine = NULL;
    entry->unavailable = true;
    message("requests for the index `%s` get 503 until it can be opened and the server is started again", entry->name);
    return true;
}

static int open_default(indexes *all, const served_index *first) {
    doppel_error error = {.code = DOPPEL_ERROR_MEMORY, .message = "no memory"};
    index_entry *entry = entry_create((doppel_slice){"default", 7});
    doppel_status status = DOPPEL_ERROR_MEMORY;
    if (entry) {
        entry->options = first->options ? *first->options : (doppel_engine_options){.size = sizeof entry->options};
        status = entry_open(entry, first->path, &error);
    }
    if (status == DOPPEL_OK && add_entry(all, entry))
        return EXIT_DONE;
    int code = complain(entry && entry->needs.folder ? first->path : NULL, status, &error);
    if (!all->folder || !add_unavailable(all, entry, status))
        entry_free(entry);
    return code;
}

/* Opens an index of the folder by its settings, NAME.json. */
static doppel_status open_other(indexes *all, doppel_slice name, doppel_error *error) {
    index_entry *entry = entry_create(name);
    char *path = NULL;
    folder_file settings = {0};
    doppel_status status = DOPPEL_ERROR_MEMORY;
    *error = (doppel_error){.code = status, .message = "no memory"};
    if (entry && (path = folder_path(all->folder, entry->name, "")))
        status = folder_read(all->folder, entry->name, ".json", &settings, error);
    if (status == DOPPEL_OK && !index_settings(entry, (doppel_slice){settings.bytes, settings.length}, error))
        status = error->code;
    if (status == DOPPEL_OK) {
        take_over(entry, all->list[0]);
        entry->options.must_exist = true;
        status = entry_open(entry, path, error);
    }
    if (status == DOPPEL_OK && !add_entry(all, entry))
        status = DOPPEL_ERROR_MEMORY;
    free(path);
    free(settings.bytes);
    if (status == DOPPEL_OK)
        return status;
    complain(entry ? entry->name : NULL, status, error);
    if (add_unavailable(all, entry, status))
        return DOPPEL_OK;
    entry_free(entry);
    return status;
}

static int open_others(indexes *all) {
    struct dirent *found;
    doppel_error error;
    int code = EXIT_DONE;
    bool made = !mkdir(all->folder, 0700) || errno == EEXIST;
    DIR *folder = made ? opendir(all->folder) : NULL;
    if (!folder) {
        message("%s: cannot %s the folder of indexes: %s", all->folder, made ? "read" : "make", strerror(errno));
        return EXIT_STORE;
    }
    while (code == EXIT_DONE && (found = readdir(folder))) {
        size_t length = strlen(found->d_name);
        doppel_slice name = {found->d_name, length > 5 ? length - 5 : 0};
        if (length <= 5 || strcmp(found->d_name + length - 5, ".json") != 0 || !index_name_allowed(name))
            continue;
        code = exit_code(open_other(all, name, &error));
    }
    closedir(folder);
    return code;
}

int indexes_open(indexes *all, const served_index *first, const char *folder) {
    *all = (indexes){.folder = folder};
    pthread_mutex_init(&all->lock, NULL);
    pthread_mutex_init(&all->changes, NULL);
    pthread_cond_init(&all->idle, NULL);
    int code = open_default(all, first), others = EXIT_DONE;
    if (code != EXIT_DONE && !all->count)
        return code;
    if (folder)
        others = open_others(all);
    for (size_t i = 0; i < all->count && others == EXIT_DONE; i++)
        if (!all->list[i]->unavailable)
            return EXIT_DONE;
    return others != EXIT_DONE ? others : code;
}

void indexes_close(indexes *all) {
    for (size_t i = 0; i < all->count; i++)
        entry_free(all->list[i]);
    free(all->list);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->changes);
    pthread_cond_destroy(&all->idle);
    *all = (indexes){0};
}

/* ---- using ---- */

/* The place of a name, or `count`; the lock is held. */
static size_t find(const indexes *all, doppel_slice name) {
    size_t i = 0;
    while (i < all->count &&
           (strlen(all->list[i]->name) != name.length || memcmp(all->list[i]->name, name.data, name.length) != 0))
        i++;
    return i;
}

index_entry *indexes_at(indexes *all, size_t n) {
    pthread_mutex_lock(&all->lock);
    index_entry *entry = n < all->count ? all->list[n] : NULL;
    if (entry)
        entry->users++;
    pthread_mutex_unlock(&all->lock);
    return entry;
}

index_entry *indexes_acquire(indexes *all, doppel_slice name) {
    pthread_mutex_lock(&all->lock);
    size_t i = name.data ? find(all, name) : 0;
    index_entry *entry = i < all->count ? all->list[i] : NULL;
    if (entry)
        entry->users++;
    pthread_mutex_unlock(&all->lock);
    return entry;
}

void indexes_release(indexes *all, index_entry *entry) {
    pthread_mutex_lock(&all->lock);
    if (!--entry->users && entry->dropped)
        pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
}

bool index_is_away(index_entry *entry) {
    return watch_is_away(&entry->watch);
}

bool indexes_connect(indexes *all) {
    bool found = false;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++)
        found = found || all->list[i]->needs.connects;
    pthread_mutex_unlock(&all->lock);
    return found;
}

void indexes_stop_waiting(indexes *all) {
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++)
        doppel_engine_stop_waiting(all->list[i]->engine);
    pthread_mutex_unlock(&all->lock);
}

void index_stats(index_entry *entry, doppel_engine_stats *stats) {
    if (entry->unavailable)
        *stats = (doppel_engine_stats){0};
    else
        watch_stats(&entry->watch, stats);
}

/* ---- making and dropping ---- */

/* A folder that has no settings beside it: one without documents is left from a creation that did not finish, and is
 * removed. One with documents has lost its settings, and is left alone. */
static doppel_status clear_leftover(const char *path, doppel_error *error) {
    doppel_engine_options options = {.size = sizeof options, .read_only = true, .must_exist = true};
    doppel_engine *engine = NULL;
    doppel_engine_stats stats = {0};
    char *index = folder_path(path, "doppel.index", "");
    bool there = index && !access(index, F_OK);
    free(index);
    if (!index)
        return DOPPEL_ERROR_MEMORY;
    /* Without the file, opening the folder finds out what it is. */
    if (!there)
        return DOPPEL_OK;
    doppel_status status = doppel_engine_open(path, &options, &engine, error);
    if (status == DOPPEL_OK)
        doppel_engine_get_stats(engine, &stats);
    doppel_engine_close(engine);
    if (status == DOPPEL_OK && !stats.last)
        folder_remove(path);
    if (status != DOPPEL_OK || !stats.last)
        return status;
    *error = (doppel_error){.code = DOPPEL_ERROR_STORE};
    snprintf(error->file, sizeof error->file, "%s", path);
    snprintf(error->message, sizeof error->message,
             "the folder has an index with %llu documents, but %s.json is missing beside it: restore it, or move the "
             "folder away",
             (unsigned long long)stats.documents, strrchr(path, '/') + 1);
    return DOPPEL_ERROR_STORE;
}

/* A similarity or a distance implies that kind of near, whatever the preset says. An existing folder keeps the kind it
 * was created with. */
static void choose_near(doppel_engine_options *o) {
    if (!o->near && o->similarity > 0)
        o->near = DOPPEL_NEAR_SIMILARITY;
    else if (!o->near && o->distance)
        o->near = DOPPEL_NEAR_DISTANCE;
}

/* Creates the folder and its settings; the settings come last: without them it is not an index. */
static doppel_status make(indexes *all, index_entry *entry, doppel_slice settings, doppel_error *error) {
    char *path = folder_path(all->folder, entry->name, "");
    doppel_status status = DOPPEL_ERROR_MEMORY;
    *error = (doppel_error){.code = status, .message = "no memory"};
    if (!path)
        return status;
    status = index_settings(entry, settings, error) ? DOPPEL_OK : error->code;
    choose_near(&entry->options);
    if (status == DOPPEL_OK)
        status = clear_leftover(path, error);
    take_over(entry, all->list[0]);
    if (status == DOPPEL_OK)
        status = entry_open(entry, path, error);
    if (status == DOPPEL_OK)
        status = folder_write(all->folder, entry->name, ".json", settings, error);
    pthread_mutex_lock(&all->lock);
    if (status == DOPPEL_OK && !add_entry(all, entry))
        status = DOPPEL_ERROR_MEMORY;
    pthread_mutex_unlock(&all->lock);
    free(path);
    return status;
}

index_result indexes_create(indexes *all, doppel_slice name, doppel_slice settings, doppel_status *status,
                            doppel_error *error) {
    if (!all->folder)
        return INDEX_OFF;
    if (!index_name_allowed(name))
        return INDEX_NO_NAME;
    if (pthread_mutex_trylock(&all->changes))
        return INDEX_BUSY;
    pthread_mutex_lock(&all->lock);
    index_result result = find(all, name) < all->count ? INDEX_EXISTS
                          : all->count >= INDEX_MOST   ? INDEX_FULL
                                                       : INDEX_FAILED;
    pthread_mutex_unlock(&all->lock);
    if (result == INDEX_FAILED) {
        *error = (doppel_error){.code = DOPPEL_ERROR_MEMORY, .message = "no memory"};
        index_entry *entry = entry_create(name);
        *status = entry ? make(all, entry, settings, error) : DOPPEL_ERROR_MEMORY;
        if (*status == DOPPEL_OK)
            result = INDEX_FINE;
        else
            entry_free(entry);
    }
    pthread_mutex_unlock(&all->changes);
    return result;
}

/* Takes an index out of the list, and waits until it is not in use. NULL: there is none, or it is the default one. */
static index_entry *take_out(indexes *all, doppel_slice name, index_result *result) {
    index_entry *entry = NULL;
    pthread_mutex_lock(&all->lock);
    size_t i = find(all, name);
    *result = !i ? INDEX_DEFAULT : i == all->count ? INDEX_ABSENT : INDEX_FINE;
    if (*result == INDEX_FINE) {
        entry = all->list[i];
        memmove(&all->list[i], &all->list[i + 1], (all->count - i - 1) * sizeof(index_entry *));
        all->count--;
        entry->dropped = true;
        while (entry->users)
            pthread_cond_wait(&all->idle, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return entry;
}

index_result indexes_drop(indexes *all, doppel_slice name, doppel_status *status, doppel_error *error) {
    index_result result;
    if (!all->folder)
        return INDEX_OFF;
    if (pthread_mutex_trylock(&all->changes))
        return INDEX_BUSY;
    index_entry *entry = take_out(all, name, &result);
    if (entry) {
        char *path = folder_path(all->folder, entry->name, ""),
             *dropped = folder_path(all->folder, entry->name, ".dropped");
        /* The settings are removed first: from here on it is not an index, whatever happens. The name is free again at
         * once: no other index can be called NAME.dropped. */
        *status = folder_unlink(all->folder, entry->name, ".json", error);
        entry_free(entry);
        if (dropped)
            folder_remove(dropped);
        if (path && dropped)
            folder_remove(rename(path, dropped) ? path : dropped);
        free(path);
        free(dropped);
        result = *status == DOPPEL_OK ? INDEX_FINE : INDEX_FAILED;
    }
    pthread_mutex_unlock(&all->changes);
    return result;
}
