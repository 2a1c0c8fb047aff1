/* 03_keep_one_of_each.c - reads documents, decides which are copies, and writes one of each to stdout.
 *
 * Build it with: cc 03_keep_one_of_each.c $(pkg-config --cflags --libs doppel)
 *
 * Its arguments are files of documents; without any it makes a small file of its own. */
#include <doppel.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char documents[] =
    "{\"id\":1,\"text\":\"The committee will meet on Monday to discuss the budget for the coming year\"}\n"
    "{\"id\":2,\"text\":\"Rain is expected in the north, with strong winds along the coast by evening\"}\n"
    "{\"id\":3,\"text\":\"The COMMITTEE will meet on Monday, to discuss the budget for the coming year!\"}\n";

/* Called for every document with the decision: near->a is its original, near->b the document itself. */
static doppel_status take(doppel_slice record, const doppel_near *near, void *user) {
    (void)user;
    if (near->a == near->b)
        printf("%.*s\n", (int)record.length, record.data);
    else
        fprintf(stderr, "document %llu is a copy of document %llu (%s, similarity %.2f)\n",
                (unsigned long long)near->b + 1, (unsigned long long)near->a + 1, doppel_reason_name(near->reason),
                near->similarity);
    return DOPPEL_OK;
}

static int run(const char *const *paths, size_t count) {
    doppel_batch *batch;
    doppel_error error;
    doppel_batch_options options = {.size = sizeof options, .similarity = 0.8, .keep = "longest,first"};
    doppel_status status = doppel_batch_create(&options, &batch, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, paths, count, false, NULL, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, &error);
    if (status == DOPPEL_OK)
        status = doppel_batch_write(batch, take, NULL, &error);
    if (status != DOPPEL_OK)
        fprintf(stderr, "%s\n", error.message);
    doppel_batch_free(batch);
    return status == DOPPEL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return run((const char *const *)argv + 1, (size_t)argc - 1);
    char path[] = "/tmp/doppel-example-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, documents, sizeof documents - 1) != (ssize_t)sizeof documents - 1)
        return EXIT_FAILURE;
    close(file);
    const char *one = path;
    int code = run(&one, 1);
    unlink(path);
    return code;
}
