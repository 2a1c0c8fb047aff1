/* address.h - operands that are addresses of the web, or look like one. */
#ifndef SHARED_ADDRESS_H
#define SHARED_ADDRESS_H

#include "doppel.h"

/* What to add to a message about something that is not there: a hint if it looks like an address without its scheme,
 * else "". */
const char *address_hint(const char *given);

/* The canonical form of an address, to be freed; NULL: it is no address, or there is no memory. */
char *canonical_address(const char *given);

/* Whether a document has a URL with this canonical form; NULL: none has. */
bool has_address(const doppel_document *document, const char *canonical);

#endif
