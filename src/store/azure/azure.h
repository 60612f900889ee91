/*
 * azure.h - a store in a container of Azure Blob Storage.
 *
 *      azure://ACCOUNT/CONTAINER[/PREFIX][?endpoint=URL&style=path|virtual&ca=FILE&proxy=URL
 *                                          &credentials=FILE]
 *
 *      endpoint     AZURE_STORAGE_SERVICE_ENDPOINT, https://ACCOUNT.blob.core.windows.net
 *      style        path (HOST/ACCOUNT/CONTAINER) if an endpoint is given, otherwise virtual
 *      credentials  azure/secret.h
 *
 * Each object is a block blob that one request writes. A put if absent has the field
 * If-None-Match: *. What the answers mean:
 *
 *      409   BlobAlreadyExists: the name is taken; any other 409: nothing was decided
 *      412   the name is taken
 *      5xx   unknown, also 503 ServerBusy
 *      403   if the clocks differ by more than 5 minutes, the request is signed again with the
 *            store's time; if the file of credentials has changed, with its new content
 *
 * Azure has no "list names behind this one": a list begins with the first name of the prefix, or
 * with a marker, which the answer before gave. The driver keeps the markers of the last pages, so
 * that the next page of a list is one request.
 */
#ifndef STORE_AZURE_AZURE_H
#define STORE_AZURE_AZURE_H

#include "store/store.h"

extern const struct store_ops store_azure;

#endif
