/* title.c - normalised titles: the words of the default recipe, one space between. */
#include "sketch/sketch.h"

doppel_status dp_title_sketcher_create(doppel_sketcher **sketcher, doppel_error *error) {
    return doppel_sketcher_create(dp_recipe_default(), DOPPEL_WANT_TEXT, sketcher, error);
}

doppel_status dp_title_normalise(doppel_sketcher *sketcher, const char *title, size_t length,
                                 doppel_slice *normalised) {
    doppel_sketch sketch;
    *normalised = (doppel_slice){NULL, 0};
    if (!title)
        return DOPPEL_OK;
    doppel_status status = doppel_sketcher_run(sketcher, title, length, &sketch);
    if (status == DOPPEL_OK)
        *normalised = (doppel_slice){sketch.text, sketch.text_length};
    return status;
}
