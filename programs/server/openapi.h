/* openapi.h - what the two files share that write /openapi.json. */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include "common/text.h"
#include "server/routes.h"

/* "enum":[...] as a member. */
void openapi_choices(text *out, const char *choices, bool or_null);

/* A reference to a shape. */
void openapi_reference(text *out, const shape_info *shape);

/* A shape and those inside it, each once: `done` holds the names, with a space around each. */
void openapi_schemas(text *out, const shape_info *shape, text *done);

#endif
