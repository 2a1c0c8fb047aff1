/* address.c - the address of a document: canonical forms in memory that grows. */
#include "text/text.h"

doppel_status dp_url_make(doppel_slice url, const doppel_slice *base, unsigned without, dp_buffer *to) {
    size_t base_length = base ? base->length : 0, most = SIZE_MAX / 8;
    to->size = 0;
    if (url.length > most || base_length > most ||
        !dp_reserve(&to->data, &to->capacity, 3 * (url.length + base_length) + 64, 1))
        return DOPPEL_ERROR_MEMORY;
    if (!url.data || !url.length)
        return DOPPEL_OK;
    return doppel_url_canonical(url.data, url.length, base, without, to->data, to->capacity, &to->size);
}

doppel_status dp_document_address(const doppel_document *document, const doppel_page *page, unsigned without,
                                  dp_buffer *to) {
    doppel_slice url = {document->url, document->url_length}, *base = document->url ? &url : NULL;
    if (document->alias)
        return dp_url_make((doppel_slice){document->alias, document->alias_length}, base, without, to);
    if (page->canonical_length)
        return dp_url_make((doppel_slice){page->canonical, page->canonical_length}, base, without, to);
    return dp_url_make(url, NULL, without, to);
}
