/* page.h - between page.c and page_repair.c. */
#ifndef DP_PAGE_H
#define DP_PAGE_H

#include "base/base.h"

/* Takes what the parser cannot handle out of a page: *html is then borrowed from `out`. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_page_repair(dp_buffer *out, doppel_slice *html);

#endif
