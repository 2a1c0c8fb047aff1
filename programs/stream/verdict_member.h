/* verdict_member.h - a member added to a JSON object. */
#ifndef STREAM_VERDICT_MEMBER_H
#define STREAM_VERDICT_MEMBER_H

#include "common/text.h"

/* Puts the object into `to`, with "key":value as its last member and everything else unchanged: `value` is JSON. The
 * object is one that a JSON parser has accepted. False: it is not an object. `to->failed` is set when there is no
 * memory. */
bool object_with(text_buffer *to, doppel_slice object, const char *key, doppel_slice value);

#endif
