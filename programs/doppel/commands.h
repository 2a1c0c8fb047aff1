/* commands.h - the commands: each is a file cmd_NAME.c and an entry of the table in commands.c. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "common/args.h"
#include "shared/inputs.h"
#include "shared/outputs.h"
#include "shared/recipes.h"

extern const struct cli_manual doppel_manual;

extern const cli_option fingerprint_options[], compare_options[], df_options[], pairs_options[], cluster_options[],
    dedup_options[], trim_options[], overlap_options[], mirrors_options[], join_options[], plan_options[],
    report_options[], serve_options[], add_options[], check_options[], remove_options[], similar_options[],
    get_options[], stream_options[], stats_options[], compact_options[], prepare_options[], backup_options[],
    verify_options[], export_options[], import_options[];
extern const cli_topic join_topic; /* the files that join takes */
int cmd_fingerprint(const cli_args *args);
int cmd_compare(const cli_args *args);
int cmd_df(const cli_args *args);
int cmd_pairs(const cli_args *args);
int cmd_cluster(const cli_args *args);
int cmd_dedup(const cli_args *args);
int cmd_trim(const cli_args *args);
int cmd_overlap(const cli_args *args);
int cmd_mirrors(const cli_args *args);
int cmd_join(const cli_args *args);
int cmd_plan(const cli_args *args);
int cmd_report(const cli_args *args);
int cmd_add(const cli_args *args);
int cmd_serve(const cli_args *args);
int cmd_check(const cli_args *args);
int cmd_remove(const cli_args *args);
int cmd_stream(const cli_args *args);
int cmd_similar(const cli_args *args);
int cmd_get(const cli_args *args);
int cmd_stats(const cli_args *args);
int cmd_compact(const cli_args *args);
int cmd_prepare(const cli_args *args);
int cmd_backup(const cli_args *args);
int cmd_verify(const cli_args *args);
int cmd_export(const cli_args *args);
int cmd_import(const cli_args *args);

#endif
