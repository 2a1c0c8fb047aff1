/* respond.h - answers of requests as responses of libmicrohttpd. */
#ifndef SERVER_RESPOND_H
#define SERVER_RESPOND_H

#include "server/service.h"

#include <microhttpd.h>

/* Queues the answer of a request, with its headers. */
enum MHD_Result respond(request *r, struct MHD_Connection *to);

#endif
