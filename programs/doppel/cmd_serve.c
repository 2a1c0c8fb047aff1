/* cmd_serve.c - doppel serve: the HTTP server over an index. */
#include "commands.h"
#include "engine/engine_command.h"
#include "server/serve.h"

const cli_option serve_options[] = {
    INDEX_OPTION,
    {"listen", 'l', OPTION_TEXT, "HOST:PORT",
     "where to listen (default 127.0.0.1:7700); anywhere but on loopback needs --tokens"},
    {"indexes", 0, OPTION_FILE, "DIR", "the folder of further indexes, which are made and dropped by the API"},
    {"backups", 0, OPTION_FILE, "DIR", "the folder that backups asked for by the API go to"},
    {"tokens", 0, OPTION_FILE, "FILE",
     "who may do what, a line each: NAME RIGHT TOKEN, with the right read, write or admin; read again at SIGHUP"},
    {"certificate", 0, OPTION_FILE, "FILE", "serve TLS with this certificate (PEM), and --key"},
    {"key", 0, OPTION_FILE, "FILE", "the key of --certificate"},
    {"origins", 0, OPTION_TEXT, "LIST",
     "the addresses it has behind a proxy, separated by commas (https://doppel.example): their names are taken in "
     "Host, and their pages may use it; pages of other sites may not"},
    {"config", 0, OPTION_FILE, "FILE",
     "read what is not given here from this file of lines NAME = VALUE; before that, from DOPPEL_NAME of the "
     "environment"},
    {"access-log", 0, OPTION_FILE, "FILE", "a JSON line for each request, at the file's end; - is stdout"},
    {"rate", 0, OPTION_COUNT, "N", "at most N requests a second from one address (default: any number)"},
    {"max-body", 0, OPTION_SIZE, "BYTES", "refuse larger bodies, and longer lines of a batch (default 16M)"},
    {"max-buffered", 0, OPTION_SIZE, "BYTES", "hold at most so much of all bodies at a time (default 1G)"},
    {"max-ratio", 0, OPTION_COUNT, "N",
     "refuse compressed bodies that unpack to more than N times their size, beyond 1 MiB (default 100; 0: any)"},
    {"max-answer", 0, OPTION_SIZE, "BYTES",
     "end the answer of a batch here; lines after it are not worked on (default 256M; 0: never)"},
    {"max-spooled", 0, OPTION_SIZE, "BYTES", "hold at most so much of all answers of batches at a time (default 1G)"},
    {"max-head", 0, OPTION_SIZE, "BYTES", "memory of a connection; heads are shorter (default 32K)"},
    {"max-connections", 0, OPTION_COUNT, "N", "at most N connections (default 4096)"},
    {"max-per-client", 0, OPTION_COUNT, "N",
     "at most N of them from one address, 0 for any number (default: a quarter of --max-connections)"},
    {"timeout", 0, OPTION_COUNT, "SECONDS", "shut connections that send or take nothing for so long (default 30)"},
    {"receive-timeout", 0, OPTION_COUNT, "SECONDS", "shut those whose body is not there by then (default 60)"},
    {"stop-timeout", 0, OPTION_COUNT, "SECONDS", "at SIGTERM, finish what was accepted for so long (default 30)"},
    {"user", 0, OPTION_TEXT, "NAME", "become this user once the socket is open"},
    {"sandbox", 0, OPTION_TEXT, "ON", "on (the default) or off: give up files and system calls that are not needed"},
    {"tmp", 0, OPTION_FILE, "DIR", "where long answers are held (default: $TMPDIR, else /tmp)"},
    DUPLICATE_OPTION,
    DECIDE_OPTIONS,
    WRITE_OPTIONS,
    MAKE_OPTIONS,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

int cmd_serve(const cli_args *args) {
    engine_command e = {0};
    serve_config config = {0};
    int code = serve_configure(&config, args);
    if (code == EXIT_DONE)
        code = engine_prepare(&e, args, ENGINE_MAKE);
    if (code == EXIT_DONE)
        code = serve(args, &(served_index){e.place.path, &e.options});
    code = engine_close(&e, code);
    serve_config_free(&config);
    return code;
}
