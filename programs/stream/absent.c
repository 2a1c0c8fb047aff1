/* absent.c - doppel stream where its libraries were not found at build time. */
#include "stream/stream.h"

#include "common/message.h"

int stream_check(const cli_args *args) {
    (void)args;
    message("this doppel was built without doppel stream: librdkafka and libmicrohttpd are needed to build it");
    return EXIT_USAGE;
}

int stream_run(const stream_job *job) {
    return stream_check(job->args);
}
