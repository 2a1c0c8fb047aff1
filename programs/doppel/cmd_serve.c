/* cmd_serve.c - doppel serve: the HTTP server over an index. */
#include "commands.h"
#include "engine/engine_command.h"
#include "server/serve.h"
#include "shared/choices.h"

const cli_option serve_options[] = {
    INDEX_OPTION,
    {"listen", 'l', OPTION_TEXT, "HOST:PORT",
     "where to listen (default 127.0.0.1:7700); any address but loopback needs --tokens"},
    {"indexes", 0, OPTION_FILE, "DIR", "the folder of further indexes, which are created and dropped through the API"},
    {"backups", 0, OPTION_FILE, "DIR", "the folder for backups requested through the API"},
    {"tokens", 0, OPTION_FILE, "FILE",
     "access tokens, one per line: NAME RIGHT TOKEN, where RIGHT is read, write or admin, and TOKEN has at least 16 "
     "bytes; other users must not be able to read the file (chmod 600); reloaded on SIGHUP"},
    {"certificate", 0, OPTION_FILE, "FILE", "serve TLS with this certificate (PEM), and --key"},
    {"key", 0, OPTION_FILE, "FILE", "the private key of --certificate"},
    {"origins", 0, OPTION_TEXT, "LIST",
     "the server's addresses behind a proxy, separated by commas (https://doppel.example): they are accepted in Host, "
     "and their pages may use the server; pages of other sites may not"},
    {"config", 0, OPTION_FILE, "FILE",
     "read options that are not given here from this file of lines NAME = VALUE; environment variables DOPPEL_NAME "
     "take precedence over it"},
    {"access-log", 0, OPTION_FILE, "FILE", "append a JSON line for each request to this file; - is stdout"},
    {"rate", 0, OPTION_COUNT, "N", "at most N requests a second from one address (default: no limit)"},
    {"max-body", 0, OPTION_SIZE, "BYTES", "refuse larger bodies, and longer lines of a batch (default 16M)"},
    {"max-buffered", 0, OPTION_SIZE, "BYTES", "buffer at most this much of all bodies at a time (default 1G)"},
    {"max-ratio", 0, OPTION_COUNT, "N",
     "refuse compressed bodies that decompress to more than N times their size, beyond 1 MiB (default 100; 0: any)"},
    {"max-answer", 0, OPTION_SIZE, "BYTES",
     "end the answer of a batch at this size; lines after it are not processed (default 256M; 0: never)"},
    {"max-spooled", 0, OPTION_SIZE, "BYTES",
     "spool at most this much of batch answers and uploaded files at a time (default 1G)"},
    {"max-run", 0, OPTION_SIZE, "BYTES",
     "refuse files to deduplicate, and archives of files, that are larger when decompressed (default 512M)"},
    {"max-runs", 0, OPTION_COUNT, "N", "keep at most N files to deduplicate at a time; 0 refuses all (default 8)"},
    {"run-ttl", 0, OPTION_COUNT, "SECONDS", "delete such files and their results after this long (default 3600)"},
    {"run-idle", 0, OPTION_COUNT, "SECONDS",
     "if there is no room for another file, delete results that have not been requested for this long "
     "(default 60)"},
    {"max-head", 0, OPTION_SIZE, "BYTES", "memory of a connection; request heads must be shorter (default 32K)"},
    {"max-connections", 0, OPTION_COUNT, "N", "at most N connections (default 4096)"},
    {"max-per-client", 0, OPTION_COUNT, "N",
     "at most N connections from one address, 0 for any number (default: a quarter of --max-connections)"},
    {"timeout", 0, OPTION_COUNT, "SECONDS", "close connections that are idle for this long (default 30)"},
    {"receive-timeout", 0, OPTION_COUNT, "SECONDS",
     "close connections whose request body has not arrived after this long (default 60)"},
    {"stop-timeout", 0, OPTION_COUNT, "SECONDS",
     "on SIGTERM, finish accepted requests for at most this long (default 30)"},
    {"user", 0, OPTION_TEXT, "NAME", "run as this user once the socket is open"},
    {"sandbox", 0, OPTION_TEXT, "ON", "on (the default) or off: block files and system calls that are not needed"},
    {"tmp", 0, OPTION_FILE, "DIR",
     "where long answers, and files to deduplicate, are kept (default: $TMPDIR, else /tmp)"},
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
    unsigned sandbox = true;
    int code = serve_configure(&config, args);
    if (code == EXIT_DONE && !choose_one(args, "sandbox", &sandbox))
        code = EXIT_USAGE;
    if (code == EXIT_DONE)
        code = engine_prepare(&e, args, ENGINE_MAKE);
    if (code == EXIT_DONE)
        code = serve(args, &(served_index){e.place.path, &e.options});
    code = engine_close(&e, code);
    serve_config_free(&config);
    return code;
}
